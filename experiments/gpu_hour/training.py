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

from experiments.cost.training_steps import Trained, run_steps
from experiments.gpu_hour.figures import ABSENT, Figure
from experiments.gpu_hour.subjects import LARGE, Hour, backbone, made_rows, random_weights
from judging.errors import CustosError
from judging.files.records import write_records

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


def part_name(*, checkpointing: bool) -> str:
    """Return the name of the part that trains with or without gradient checkpointing."""
    return f"train{', checkpointing' if checkpointing else ''}"


def train(hour: Hour, *, checkpointing: bool) -> Iterator[Figure]:
    """Train the recipe's shape for some steps; yield its speed, and its memory beside the plan."""
    length = Length.of(hour)
    run = hour.folder / f"train-{checkpointing}"
    shutil.rmtree(run, ignore_errors=True)
    keys = _keys(hour, run, length, checkpointing=checkpointing)
    _wait_for(_start(hour, keys, run))
    reports = [report for report in _reports(run) if report["step"] > length.warm]

    def median(name: str) -> float:
        return statistics.median(report[name] for report in reports)

    yield Figure("speed", median("tokens_per_second"), "tokens/s", ">= 12,000")
    yield Figure("rows", median("rows_per_second"), "rows/s")
    yield Figure("waiting for data", median("data_wait_share"), "of the time", "< 0.05")
    yield Figure("padding", median("padded_share"), "of the tokens")
    if hour.book.machine.peak_tflops:
        yield Figure("MFU", median("mfu"), "of the peak", ">= 0.35")
    yield from _memory(hour, keys, reports)


def trl(hour: Hour, *, checkpointing: bool) -> Iterator[Figure]:
    """Train the same shape on the same rows with TRL's SFTTrainer; yield its speed and the ratio.

    Raises:
        CustosError: If it does not end, as when its memory is not enough.
    """
    length = Length.of(hour)
    trained = Trained(random_weights(hour, LARGE), 64, 64, 0.05, checkpointing)
    settings = {"CUDA_VISIBLE_DEVICES": ""} if hour.rehearsal else {}
    for passes in PASSES_OF_TRL:
        try:
            report = run_steps(
                "TRL",
                _rows_file(hour, length),
                steps=length.steps,
                warm=length.warm,
                batch=length.rows,
                passes=passes,
                settings=settings,
                trained=trained,
            )
            break
        except subprocess.CalledProcessError:
            yield Figure(f"{passes} passes a step", "did not end")
    else:
        raise CustosError("TRL did not end; its error is above")
    yield Figure("passes a step", passes)
    yield Figure("rows", report["rows_per_second"], "rows/s")
    yield Figure("peak memory", report["peak_mib"] * 2**20 / GIGA, "GB")
    ours = hour.book.value(part_name(checkpointing=checkpointing), "rows")
    if ours:
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

    Raises:
        CustosError: If it ends before it is killed, or starts anew after it.
    """
    length = Length(12, 4, 2, 1) if hour.rehearsal else Length(12, 32, 2, 1)
    run = hour.folder / "quantised"
    shutil.rmtree(run, ignore_errors=True)
    keys = _keys(hour, run, length, checkpointing=True)
    if find_spec("bitsandbytes"):
        keys += ["run.quantization=nf4", "optim.optimizer=paged_adamw_8bit"]
    else:
        yield Figure("bitsandbytes", f"{ABSENT}: in bfloat16 with AdamW")
    keys = [key for key in keys if "save_every" not in key] + [f"run.save_every={SAVED_EVERY}"]
    process = _start(hour, keys, run)
    while process.poll() is None and _last_step(run) < KILLED_AT:
        time.sleep(0.02)
    if process.poll() is not None:
        _wait_for(process)
        raise CustosError("the run ended before it was killed")
    process.kill()  # no launcher: custos train has made itself the only training process
    process.wait()
    yield Figure("killed after", _last_step(run), "steps")
    _wait_for(_start(hour, keys, run))
    log = (run / "train.log").read_text(encoding="utf-8")
    resumed = [int(line.rsplit(" ", 1)[1]) for line in log.splitlines() if "resuming " in line]
    if not resumed:
        raise CustosError(f"{run / 'train.log'}: the run began anew")
    yield Figure("resumed at", resumed[-1], "steps", f">= {SAVED_EVERY}")
    reports = [report for report in _reports(run) if report["step"] > length.warm]
    speed = statistics.median(report["tokens_per_second"] for report in reports)
    yield Figure("speed", speed, "tokens/s")
    yield from _memory(hour, keys, reports)


def _memory(hour: Hour, keys: list[str], reports: list[dict[str, Any]]) -> Iterator[Figure]:
    """Yield the peak memory of a run, and the plan's."""
    from train.plan.run_plan import plan_run

    folder = random_weights(hour, LARGE)
    keys = [key for key in keys if not key.startswith("backbone=")] + [f"backbone={folder}"]
    plan = plan_run(RECIPE, keys, gpus=int(not hour.rehearsal), memory=None, rate=None)
    measured = max(report["peak_memory_gb"] for report in reports)
    yield Figure("peak memory", measured, "GB")
    planned = plan.memory.total / GIGA / measured
    yield Figure("planned memory", planned, "of measured", "0.85 to 1.15")


def _rows_file(hour: Hour, length: Length) -> Path:
    """Write the training rows, the same ones for every run of a length; return their file."""
    file = hour.folder / f"rows-{length.steps * length.rows}.jsonl"
    if not file.is_file():
        write_records(file, made_rows(hour, length.steps * length.rows))
    return file


def _keys(hour: Hour, run: Path, length: Length, *, checkpointing: bool) -> list[str]:
    """Return what a run changes in the recipe: its data, its length and its reports."""
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


def _start(hour: Hour, keys: list[str], run: Path) -> subprocess.Popen[bytes]:
    """Start ``custos train`` on one GPU, or on the CPU in a rehearsal."""
    command = [sys.executable, "-m", "cli", "train", RECIPE, "--random-weights"]
    devices = {"CUDA_VISIBLE_DEVICES": "" if hour.rehearsal else "0"}
    return subprocess.Popen([*command, *keys], env={**os.environ, **devices})


def _wait_for(process: subprocess.Popen[bytes]) -> None:
    """Wait for a run.

    Raises:
        CustosError: If it failed.
    """
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
