"""Time to the first batch, memory, and waiting for data, on many made rows, a third with pictures.

python -m experiments data_plane --out runs/data_plane.json

No weights are loaded: the model is a pause of 300 ms a step. Each number of workers runs in a
process of its own. With ``--full N`` the run with N workers then reads every row once, without the
pause, and its memory is measured after the first 1,000, 10,000 and 100,000 rows.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from judging.errors import CustosError
from judging.files.records import write_json

if TYPE_CHECKING:
    from train.rows.rows import Rows

PAUSE = 0.3
"""Seconds of a step of the model."""
BATCH_SIZE = 16
PAUSED_STEPS = 60
MEASURED_AFTER = (1_000, 10_000, 100_000)
WORDS = 4_000


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program, which calls itself with ``--measured`` for each number of workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 2, 4])
    parser.add_argument("--full", type=int, help="workers of the run that reads every row")
    parser.add_argument("--data", type=Path, help="keep the made rows here; default: nowhere")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--measured", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.measured is not None:
        is_full = arguments.full == arguments.measured
        sys.stdout.write(json.dumps(measure(arguments.data, arguments.measured, is_full)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        data = arguments.data or Path(temporary)
        if not (data / "val.jsonl").is_file():
            write_rows(data, arguments.rows)
        full = [] if arguments.full is None else ["--full", str(arguments.full)]
        summary = {
            f"{workers} workers": _in_a_process(data, workers, full)
            for workers in arguments.workers
        }
    if arguments.out:
        write_json(arguments.out, summary)
    Console().print_json(data=summary)


def write_rows(folder: Path, count: int) -> None:
    """Write training rows, each third one with a small picture of its own, and 200 to validate."""
    from PIL import Image

    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    rng = random.Random(0)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(rng.choices(letters, k=rng.randint(2, 6))) for _ in range(WORDS)]
    for name, size in (("train", count), ("val", 200)):
        with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for number in range(size):
                row = {
                    "id": f"{name}-{number}",
                    "question": f"{' '.join(rng.choices(words, k=rng.randint(5, 20)))}?",
                    "references": [rng.choice(words)],
                    "reference_mode": "any",
                    "responses": [" ".join(rng.choices(words, k=rng.randint(2, 30)))],
                    "label": rng.choice(["Correct", "Wrong"]),
                }
                if number % 3 == 0:
                    picture = folder / "pictures" / f"{name}-{number}.png"
                    colour = (rng.randrange(256), rng.randrange(256), rng.randrange(256))
                    sides = rng.randint(60, 160), rng.randint(60, 160)
                    Image.new("RGB", sides, colour).save(picture)
                    row["images"] = [str(picture.resolve())]
                file.write(json.dumps(row) + "\n")


def measure(data: Path, workers: int, is_full: bool) -> dict[str, Any]:
    """Measure the data plane of a run that trains on the rows of a folder."""
    started = time.perf_counter()
    from train.loop.batches import Loader, StepPlan
    from train.setup.recipe import OptimSection

    seconds: dict[str, float] = {"imports": time.perf_counter() - started}
    rows = _index(data, seconds)
    begun = time.perf_counter()
    optim = OptimSection(lr=1.0, batch_size=BATCH_SIZE)
    plan = StepPlan(rows, optim, 0)
    seconds["order"] = time.perf_counter() - begun
    loader = Loader({"train": rows}, workers)
    micro_batches = [plan.micro_batches(step) for step in range(plan.total_steps)]
    batches = loader.batches(rows, _flat(micro_batches))
    begun = time.perf_counter()
    result: dict[str, Any] = {}
    seen, waited, paused_for = 0, 0.0, 0.0
    memory = {}
    for step, parts in enumerate(micro_batches):
        before = loader.data_wait
        for _ in parts:
            seen += len(next(batches).rows)
        if step == 0:
            seconds["first batch"] = time.perf_counter() - begun
            result["seconds_to_step_0"] = time.perf_counter() - started
        elif step <= PAUSED_STEPS:
            waited += loader.data_wait - before
            time.sleep(PAUSE)
            paused_for += PAUSE
        for count in MEASURED_AFTER:
            if seen - sum(map(len, parts)) < count <= seen:
                memory[f"{count:,} rows"] = _memory()
        if step == PAUSED_STEPS and not is_full:
            break
    result["seconds"] = seconds
    result["waiting_share"] = waited / (waited + paused_for) if paused_for else None
    result["memory_mib"] = {**memory, "at the end": _memory()}
    loader.close()
    return result


def _index(data: Path, seconds: dict[str, float]) -> Rows:
    """Do what a training script does before it loads weights, and note how long it takes."""
    from judging.fingerprint import file_sha256
    from judging.models.backbones import load_backbone
    from judging.scoring.prompts import Encoder
    from train.methods.focal import FocalObjective
    from train.rows.data import check_overlaps, read_splits
    from train.rows.rows import Rows, Supervision
    from train.setup.recipe import DataSection

    def note(name: str) -> None:
        seconds[name] = time.perf_counter() - started - sum(seconds.values())

    started = time.perf_counter() - sum(seconds.values())
    section = DataSection(train=(data / "train.jsonl",), val=data / "val.jsonl")
    splits = read_splits(section)
    note("read")
    check_overlaps(splits, section)
    note("overlaps")
    FocalObjective.for_examples(splits.train, 1.0, 5.0, "sqrt")
    file_sha256(data / "train.jsonl")
    note("checks")
    backbone = load_backbone("embedded", weights=False).with_pixels()
    note("tokenizer")
    rows = Rows(splits.train, Supervision(Encoder(backbone, shows_all_pictures=True)), "train")
    note("index")
    return rows


def _flat(steps: Sequence[Sequence[list[int]]]) -> Iterator[list[int]]:
    return (part for step in steps for part in step)


def _memory() -> dict[str, float]:
    """Return the MiB of this process alone, and with its workers, shared pages counted once."""
    import psutil

    process = psutil.Process()
    everyone = [process, *process.children(recursive=True)]
    return {
        "main": process.memory_info().rss / 2**20,
        "all": sum(member.memory_full_info().pss for member in everyone) / 2**20,
    }


def _in_a_process(data: Path, workers: int, options: Sequence[str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "experiments", "data_plane", "--data", str(data)]
    done = subprocess.run(
        [*command, "--measured", str(workers), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CustosError(f"the run with {workers} workers failed: {done.stderr.strip()[-500:]}")
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured
