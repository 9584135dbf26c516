"""Shipped recipes on tiny checkpoints: ten steps, or a kill in their middle.

``python -m tests.gpu.recipes RECIPE CHECKPOINT FOLDER`` is killed before the sixth step.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from accelerate.state import AcceleratorState
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from judging.types import LabelledExample
from tests.gpu.figures import DEVICE
from tests.gpu.steps import rows_of
from tests.train.made_up import write_split
from train.plan.run_plan import plan_run
from train.setup.recipe import read_values
from train.setup.recipe_files import find_recipe, recipe_names, script_of

KIND_OF_SCRIPT = {
    "hieval_stage1": "focal",
    "hieval_stage2": "joint",
    "truthful_judge": "critique",
    "bradley_terry": "reward",
}
STEPS = 10
KILLED_BEFORE = 6
SPLITS = {"train": STEPS * 8, "val": 4, "cal": 12, "test": 8}


@dataclass(frozen=True)
class ShortRun:
    """What a short run of a recipe took."""

    folder: Path
    tokens_per_second: float
    peak_bytes: int
    """Most bytes of tensors on the GPU; 0 on a CPU."""


def script_of_recipe(name: str) -> str:
    """Return the script of a recipe that came with custos."""
    path = find_recipe(name)
    return script_of(path, read_values(path))


NAMES = [name for name in recipe_names() if script_of_recipe(name) in KIND_OF_SCRIPT]
"""Recipes of our own training loop."""


def family_of(name: str) -> str:
    """Return the published checkpoint of which a tiny copy stands in for a recipe's backbone."""
    backbone = str(read_values(find_recipe(name))["backbone"])
    return "Qwen3-VL-4B-Instruct" if "Qwen3" in backbone else "Qwen2.5-VL-7B-Instruct"


def rows_of_recipe(name: str, split: str) -> list[LabelledExample]:
    """Return made-up rows for a split of a recipe."""
    start = 1000 * list(SPLITS).index(split)
    rows = rows_of(KIND_OF_SCRIPT[script_of_recipe(name)], SPLITS[split], None, start)
    if not name.endswith("critique_score"):
        return rows
    return [
        LabelledExample(
            id=row.id,
            task="truthful-critique-score",
            question=row.question,
            responses=row.responses[:1],
            label=str(number % 11),
            critique=row.critique,
            mode="critique",
        )
        for number, row in enumerate(rows)
    ]


def keys_of(name: str, checkpoint: str, folder: Path, init: Path | None = None) -> list[str]:
    """Return what a short run changes in a recipe; model, data and length, and no more.

    The last adapter is chosen: with few steps the best one may be that of the start, and a judge
    that was never trained would pass for a finished one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    values = read_values(find_recipe(name))
    replay, data = values.get("replay"), values["data"]
    files = {
        split: write_split(folder / f"{split}.jsonl", rows_of_recipe(name, split))
        for split in SPLITS
        if split in data or split in ("train", "val")
    }
    keys = {
        "backbone": checkpoint,
        "adapter.init": init or "null",
        **{f"data.{split}": f"[{path}]" if split == "train" else path
           for split, path in files.items()},
        **{"data.allow_overlap": "true", "optim.max_steps": STEPS, "optim.epochs": 100},
        **{"run.output": folder / "run", "run.log_every": 1, "run.select": "last"},
        **{"run.eval_every": STEPS, "run.save_every": KILLED_BEFORE - 2},
    }  # fmt: skip
    if replay:
        earlier = write_split(folder / "earlier.jsonl", rows_of("focal", SPLITS["train"], None))
        keys |= {"replay.train": f"[{earlier}]"}
        keys |= {"replay.val": "null"} if "val" in replay else {}
    return [f"{key}={value}" for key, value in keys.items()]


def train(name: str, keys: list[str]) -> None:
    """Run a recipe's script in this process, as one process."""
    AcceleratorState._reset_state(reset_partial_state=True)
    script = import_module(f"train.{script_of_recipe(name)}")
    script.main(["--config", str(find_recipe(name)), *keys])


def timed_run(name: str, keys: list[str], folder: Path) -> ShortRun:
    """Train ten steps of a recipe; the first two, which warm up, are left out of the speed."""
    ends: list[float] = []

    def note_time(*_: Any) -> None:
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        ends.append(time.perf_counter())

    if DEVICE == "cuda":
        torch.cuda.reset_peak_memory_stats()
    hook = register_optimizer_step_post_hook(note_time)
    try:
        train(name, keys)
    finally:
        hook.remove()
    plan = plan_run(name, keys, gpus=int(DEVICE == "cuda"), memory=None, rate=None)
    assert len(ends) == STEPS
    seconds = (ends[-1] - ends[1]) / (STEPS - 2)
    peak = torch.cuda.max_memory_allocated() if DEVICE == "cuda" else 0
    return ShortRun(folder / "run", plan.tokens_per_step / seconds, peak)


def main(name: str, checkpoint: str, folder: Path) -> None:
    """Train until the process is killed, without a chance to tidy up."""
    calls: list[int] = []

    def kill(*_: Any) -> None:
        calls.append(1)
        if len(calls) == KILLED_BEFORE:
            os.kill(os.getpid(), signal.SIGKILL)

    register_optimizer_step_pre_hook(kill)
    train(name, keys_of(name, checkpoint, folder))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
