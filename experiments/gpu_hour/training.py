"""Step 4 and a part of step 6: training on random weights, beside TRL, killed, in 4 bits."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from experiments.gpu_hour.figures import (
    ABSENT,
    LARGE,
    Figure,
    Hour,
    backbone,
    made_rows,
    random_weights,
)
from experiments.gpu_hour.trl_steps import Trained, run_steps
from judging.errors import CustosError
from judging.files.records import write_records
from train.setup.recipe import find_recipe, read_values

RECIPE = "hieval_stage1"
GIGA = 1e9
KILLED_AT, SAVED_EVERY = 6, 4
PASSES_OF_TRL = (1, 4)
"""Forward passes in which TRL reads the rows of a step: as few as its memory allows."""


@dataclass(frozen=True)
class Length:
    """How many steps a run has, of how many rows, and how many are left out of its speed."""

    steps: int
    rows: int
    warm: int
    log_every: int

    @classmethod
    def of(cls, hour: Hour) -> Length:
        """Return the length of the runs of an hour: the recipe's batch size, on a GPU."""
        return cls(4, 2, 1, 1) if hour.rehearsal else cls(30, 32, 10, 5)


CHECKPOINTING = {"train, checkpointing": True, "train": False}
"""Parts of step 4, and whether each computes activations again for the gradient."""


def train(hour: Hour, part: str) -> Iterator[Figure]:
    """Train the recipe's shape for some steps; yield its speed, and its memory beside the plan."""
    length, run = Length.of(hour), hour.folder / part.replace(", ", "-")
    keys = _keys(hour, run, length, checkpointing=CHECKPOINTING[part])
    _wait_for(_start(keys))
    yield from _figures(hour, run, keys, length)


def trl(hour: Hour, part: str) -> Iterator[Figure]:
    """Train what a part trained with TRL's SFTTrainer; yield its speed and the ratio."""
    length = Length.of(hour)
    sizes = {"steps": length.steps, "warm": length.warm, "batch": length.rows}
    adapter = read_values(find_recipe(RECIPE))["adapter"]
    shape = (adapter["r"], adapter["alpha"], adapter["dropout"])
    trained = Trained(random_weights(hour, LARGE), *shape, CHECKPOINTING[part])
    file = _rows_file(hour, length)
    for passes in PASSES_OF_TRL:
        try:
            report = run_steps(file, trained, passes=passes, settings=_one_device(), **sizes)
            break
        except subprocess.CalledProcessError:
            yield Figure(f"{passes} passes a step", "did not end")
    else:
        raise CustosError("TRL did not end; its error is above")
    yield Figure("passes a step", passes)
    yield Figure("rows", report["rows_per_second"], "rows/s")
    yield Figure("peak memory", report["peak_mib"] * 2**20 / GIGA, "GB")
    if ours := hour.book.number(part, "rows"):
        yield Figure("custos over TRL", ours / report["rows_per_second"], "times")


def make_weights(hour: Hour, shape: str) -> Iterator[Figure]:
    """Draw the random weights of a shape; yield how long it took, if they were not there."""
    began = time.monotonic()
    folder = Path(random_weights(hour, shape))
    yield Figure("drawn in", time.monotonic() - began, "s")
    size = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    yield Figure("size", size / GIGA, "GB")


def quantised(hour: Hour) -> Iterator[Figure]:
    """Train in 4 bits with paged moments, kill the run, and let it go on.

    Without bitsandbytes the run is the recipe's own, so that a kill is shown anyway.
    """
    length, run = Length(12, hour.size(32, 4), 2, 1), hour.folder / "quantised"
    keys = [*_keys(hour, run, length, checkpointing=True), f"run.save_every={SAVED_EVERY}"]
    if find_spec("bitsandbytes"):
        keys += ["run.quantization=nf4", "optim.optimizer=paged_adamw_8bit"]
    else:
        yield Figure("bitsandbytes", f"{ABSENT}: in bfloat16 with AdamW")
    process = _start(keys)
    while process.poll() is None and _last_step(run) < KILLED_AT:
        time.sleep(0.02)
    if process.poll() is not None:
        _wait_for(process)
        raise CustosError("the run ended before it was killed")
    process.kill()  # on one device, custos train is the training process itself
    process.wait()
    yield Figure("killed after", _last_step(run), "steps")
    _wait_for(_start(keys))
    log = (run / "train.log").read_text(encoding="utf-8").splitlines()
    resumed = [int(line.rsplit(" ", 1)[1]) for line in log if "resuming " in line]
    yield Figure("resumed at", max(resumed, default=0), "steps", f">= {SAVED_EVERY}")
    yield from _figures(hour, run, keys, length)


def _figures(hour: Hour, run: Path, keys: list[str], length: Length) -> Iterator[Figure]:
    """Yield what a run reported after its first steps, and its memory beside the plan's."""
    from train.launch.run_plan import plan_run

    in_16_bits = not any("quantization" in key for key in keys)
    speed, mfu = (">= 12,000", ">= 0.35") if in_16_bits else ("", "")
    reports = [report for report in _reports(run) if report["step"] > length.warm]

    def median(name: str) -> float:
        return statistics.median(float(report[name]) for report in reports)

    yield Figure("speed", median("tokens_per_second"), "tokens/s", speed)
    yield Figure("rows", median("rows_per_second"), "rows/s")
    yield Figure("waiting for data", median("data_wait_share"), "of the time", "< 0.05")
    yield Figure("padding", median("padded_share"), "of the tokens")
    if hour.book.machine.peak_tflops:
        yield Figure("MFU", median("mfu"), "of the peak", mfu)
    keys = [*keys, f"backbone={random_weights(hour, LARGE)}"]
    plan = plan_run(RECIPE, keys, gpus=int(not hour.rehearsal), memory=None, rate=None)
    measured = max(report["peak_memory_gb"] for report in reports)
    yield Figure("peak memory", measured, "GB")
    planned = plan.memory.tensors / GIGA / measured
    yield Figure("planned memory", planned, "of measured", "0.85 to 1.15")


def _rows_file(hour: Hour, length: Length) -> Path:
    """Write the training rows, the same ones for every run of a length; return their file."""
    file = hour.folder / f"rows-{length.steps * length.rows}.jsonl"
    if not file.is_file():
        write_records(file, made_rows(hour, length.steps * length.rows))
    return file


def _keys(hour: Hour, run: Path, length: Length, *, checkpointing: bool) -> list[str]:
    """Return what a run in a new folder changes in the recipe: data, length and reports."""
    shutil.rmtree(run, ignore_errors=True)
    file, val = _rows_file(hour, length), hour.folder / "val.jsonl"
    write_records(val, made_rows(hour, 8, seed=1))
    keys = {
        **{"backbone": backbone(hour, LARGE), "data.train": f"[{file}]", "data.val": val},
        **{"data.cal": "null", "data.test": "null", "data.allow_overlap": "true"},
        **{"optim.batch_size": length.rows, "optim.epochs": 1, "run.output": run},
        **{"run.eval_every": length.steps, "run.save_every": length.steps, "run.select": "last"},
        **{"run.log_every": length.log_every, "run.trackers": "[]"},
        "run.gradient_checkpointing": str(checkpointing).lower(),
    }
    peak = hour.book.machine.peak_tflops
    return [f"{key}={value}" for key, value in keys.items()] + (
        [f"run.peak_tflops={peak}"] if peak else []
    )


def _start(keys: list[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "cli", "train", RECIPE, "--random-weights"]
    return subprocess.Popen([*command, *keys], env={**os.environ, **_one_device()})


def _one_device() -> dict[str, str]:
    """Return the environment with the first of the visible GPUs, if any is visible."""
    return {"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]}


def _wait_for(process: subprocess.Popen[bytes]) -> None:
    """Wait for a run, which must not fail."""
    if status := process.wait():
        raise CustosError(f"custos train ended with status {status}; its error is above")


def _reports(run: Path) -> list[dict[str, Any]]:
    """Return what a run reported on its steps, so far."""
    file = run / "metrics.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    reports = [json.loads(line) for line in lines if line.endswith("}")]
    return [report for report in reports if "tokens_per_second" in report]


def _last_step(run: Path) -> int:
    return max((int(report["step"]) for report in _reports(run)), default=0)
