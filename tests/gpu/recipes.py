"""Shipped recipes on tiny checkpoints: ten steps, or a kill in their middle.

``python -m tests.gpu.recipes RUN FOLDER OUT`` is killed before the sixth step of a run in
:data:`RUNS`; FOLDER holds the checkpoints.
"""

import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from accelerate.state import AcceleratorState
from torch.optim.optimizer import register_optimizer_step_pre_hook

from judging.types import LabelledExample
from tests.gpu.steps import rows_of
from tests.train.made_up import write_split
from train.methods import method_of
from train.methods.base import Method
from train.setup.recipe import find_recipe, read_values

STEPS = 10
KILLED_BEFORE = 6
SPLITS = {"train": STEPS * 8, "val": 4, "cal": 12, "test": 8}


NF4 = ("run.quantization=nf4", "optim.optimizer=paged_adamw_8bit")
RUNS: dict[str, tuple[str, tuple[str, ...]]] = {
    # Processes that read rows ahead, as every run on a GPU has that does not say otherwise.
    "hieval_stage1": ("hieval_stage1", ("run.workers=2",)),
    "hieval_stage2": ("hieval_stage2", ()),
    "truthful_judge": ("truthful_judge", ()),
    "bradley_terry": ("bradley_terry", ()),
    "hieval_stage1-nf4": ("hieval_stage1", NF4),
    "truthful_judge-nf4": ("truthful_judge", NF4),
}
"""Recipes that differ on a GPU, and what a run changes beside :func:`keys_of`: every method, each
family, and both in four bits. The others differ in rows and numbers, which a CPU shows."""


def method_of_recipe(name: str) -> type[Method]:
    """Return the method of a recipe that came with custos."""
    path = find_recipe(name)
    return method_of(path, read_values(path))


def skip_without_bitsandbytes(run: str) -> None:
    """Skip a test of a run in four bits where bitsandbytes, which only GPUs need, is missing."""
    if NF4[0] in RUNS[run][1]:
        pytest.importorskip("bitsandbytes")


def family_of(name: str) -> str:
    """Return the published checkpoint of which a tiny copy stands in for a recipe's backbone."""
    backbone = str(read_values(find_recipe(name))["backbone"])
    return "Qwen3-VL-4B-Instruct" if "Qwen3" in backbone else "Qwen2.5-VL-7B-Instruct"


def rows_of_recipe(name: str, split: str) -> list[LabelledExample]:
    """Return made-up rows for a split of a recipe."""
    start = 1000 * list(SPLITS).index(split)
    return rows_of(method_of_recipe(name).name, SPLITS[split], None, start)


def keys_of(
    run: str, checkpoints: Path, folder: Path, init: Path | None = None, *, graded: bool = True
) -> list[str]:
    """Write the rows of a run; return what it changes in its recipe: model, data and length.

    Processes that read ahead would take longer to start than ten steps take. The last adapter is
    chosen: with few steps the best one may be that of the start, and a judge that was never trained
    would pass for a finished one.

    Args:
        run: Name in :data:`RUNS`.
        checkpoints: Folder of the checkpoints, by their published names.
        folder: Folder of the run and its rows.
        init: Adapter to start from.
        graded: Calibrate and test the judge, as the recipe does.
    """
    name, changes = RUNS[run]
    folder.mkdir(parents=True, exist_ok=True)
    values = read_values(find_recipe(name))
    replay, data = values.get("replay"), values["data"]
    files = {
        split: write_split(folder / f"{split}.jsonl", rows_of_recipe(name, split))
        if graded or split in ("train", "val")
        else "null"
        for split in SPLITS
        if split in data
    }
    keys = {
        "backbone": checkpoints / family_of(name),
        "adapter.init": init or "null",
        **{f"data.{split}": f"[{path}]" if split == "train" else path
           for split, path in files.items()},
        **{"data.allow_overlap": "true", "optim.max_steps": STEPS, "optim.epochs": 100},
        **{"run.output": folder / "run", "run.log_every": 1, "run.select": "last"},
        **{"run.eval_every": STEPS, "run.save_every": KILLED_BEFORE - 2},
        "run.workers": 0,
    }  # fmt: skip
    if replay:
        earlier = write_split(folder / "earlier.jsonl", rows_of("focal", SPLITS["train"], None))
        keys |= {"replay.train": f"[{earlier}]"}
        keys |= {"replay.val": "null"} if "val" in replay else {}
    return [*(f"{key}={value}" for key, value in keys.items()), *changes]


def train(name: str, keys: list[str]) -> None:
    """Run a recipe's script in this process, as one process."""
    AcceleratorState._reset_state(reset_partial_state=True)
    script = import_module(f"train.{method_of_recipe(name).script}")
    script.main(["--config", str(find_recipe(name)), *keys])


def main(run: str, checkpoints: Path, out: Path) -> None:
    """Train until the process is killed, without a chance to tidy up."""
    calls: list[int] = []

    def kill(*_: Any) -> None:
        calls.append(1)
        if len(calls) == KILLED_BEFORE:
            os.kill(os.getpid(), signal.SIGKILL)

    register_optimizer_step_pre_hook(kill)
    train(RUNS[run][0], keys_of(run, checkpoints, out, graded=False))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
