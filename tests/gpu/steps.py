"""One training step of every kind, with its loss and the gradient of its adapter.

``python -m tests.gpu.steps FOLDER OUT STEP...`` takes steps on the CPU, in float32, for comparison.
FOLDER holds the checkpoints; the adapters that the steps start from are made in it, for both sides.
"""

import json
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import torch
import yaml
from accelerate.state import AcceleratorState
from safetensors.torch import save_file
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_pre_hook

from judging.types import LabelledExample
from tests.hub import save_hub_layout
from tests.tiny import save_picture
from tests.train.made_up import LABELS, critique_pair, example, write_split
from train import bradley_terry, hieval_stage1, hieval_stage2, truthful_judge
from train.loop.sharding import whole

FAMILIES = ("Qwen2.5-VL-7B-Instruct", "Qwen3-VL-4B-Instruct")
SCRIPTS: dict[str, Any] = {
    "focal": hieval_stage1,
    "joint": hieval_stage2,
    "critique": truthful_judge,
    "reward": bradley_terry,
}
ROWS = 6


@dataclass(frozen=True)
class Step:
    """Which step, of which model."""

    kind: str
    family: str
    pictures: bool
    checkpointing: bool

    def __str__(self) -> str:
        family = self.family.partition("-VL")[0]
        pictures = "pictures" if self.pictures else "text"
        return f"{self.kind}-{family}-{pictures}{'-checkpointing' if self.checkpointing else ''}"


_EVERY = (Step(*values) for values in product(SCRIPTS, FAMILIES, (False, True), (False, True)))
# The quick score, which focal loss trains, reads text alone.
STEPS = [step for step in _EVERY if not (step.kind == "focal" and step.pictures)]


def rows_of(kind: str, count: int, picture: str | None, start: int = 0) -> list[LabelledExample]:
    """Return labelled rows of a script's task, with a picture each or none."""
    images = (picture,) if picture else ()
    if kind == "joint":
        return [
            example(
                i,
                task="hieval-ea",
                label=LABELS[i % len(LABELS)],
                error_type=LABELS[i % len(LABELS)].partition("; ")[2] or None,
                images=images,
            )
            for i in range(start, start + count)
        ]
    if kind == "focal":
        return [example(i, images=images) for i in range(start, start + count)]
    return [  # without a tie among its rows, a judge of pairs cannot be calibrated
        critique_pair(i, images=images, **({"label": "None"} if i % 3 == 2 else {}))
        for i in range(start, start + count)
    ]


def take_step(step: Step, precision: str, folder: Path, out: Path) -> dict[str, Tensor]:
    """Take the first step of a run in a folder of its own; return loss and gradients, in float32.

    Args:
        step: The step.
        precision: ``fp32`` or ``bf16``.
        folder: Folder of the checkpoints and of the adapters to start from.
        out: Folder of the run and its rows, which must be new.
    """
    picture = str(folder / "picture.png") if step.pictures else None
    gradients: dict[str, Tensor] = {}
    with first_gradient_into(gradients):
        _train(step, precision, folder, out, picture, init=_start_of(step, folder) / "run")
    history = json.loads((out / "run" / "history.json").read_text(encoding="utf-8"))
    [loss] = [entry["train_loss"] for entry in history if "train_loss" in entry]
    return {**gradients, "loss": torch.tensor(loss)}


def save_checkpoints(folder: Path) -> None:
    """Make the checkpoints and the picture."""
    save_picture(folder / "picture.png", 160, 120)
    for family in FAMILIES:
        save_hub_layout(folder / family, family)


def save_starts(folder: Path, kinds: Iterable[str]) -> None:
    """Make adapters to start from, whose matrices are all different from 0."""
    for kind, family in product(kinds, FAMILIES):
        step = Step(kind, family, pictures=False, checkpointing=False)
        _train(step, "fp32", folder, _start_of(step, folder), None, init=None)


def relative_error(tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> float:
    """Return the norm of all gradients' differences, as a share of their norm."""
    assert tensors.keys() == expected.keys()
    names = sorted(tensors.keys() - {"loss"})
    found, wanted = (
        torch.cat([values[name].flatten().double() for name in names])
        for values in (tensors, expected)
    )
    assert wanted.norm() > 1e-4, "without a gradient there is nothing to compare"
    return float((found - wanted).norm() / wanted.norm())


def _start_of(step: Step, folder: Path) -> Path:
    return folder / f"start-{step.kind}-{step.family}"


def _train(
    step: Step, precision: str, folder: Path, out: Path, picture: str | None, init: Path | None
) -> None:
    """Run a script for one step, without calibration and report."""
    out.mkdir(parents=True)
    train = write_split(out / "train.jsonl", rows_of(step.kind, ROWS, picture))
    values = {
        "backbone": str(folder / step.family),
        "data": {
            "train": [train],
            "val": write_split(out / "val.jsonl", rows_of(step.kind, 2, None, 100)),
            "allow_overlap": True,
        },
        "adapter": {"r": 4, "alpha": 8, "dropout": 0.0, "init": str(init) if init else None},
        # The whole step at once: all rows, no clipping of the gradient.
        "optim": {
            **{"lr": 0.02, "warmup_ratio": 0.0, "max_steps": 1, "max_grad_norm": 1e9},
            **{"batch_size": ROWS, "token_budget": 400},
        },
        "run": {
            **{"output": str(out / "run"), "precision": precision, "select": "last"},
            **{"gradient_checkpointing": step.checkpointing, "log_every": 1, "workers": 0},
        },
    }
    recipe = out / "recipe.in.yaml"
    recipe.write_text(yaml.safe_dump(values), encoding="utf-8")
    AcceleratorState._reset_state(reset_partial_state=True)
    SCRIPTS[step.kind].main(["--config", str(recipe)])


@contextmanager
def first_gradient_into(gradients: dict[str, Tensor], learnt: int = 0) -> Iterator[None]:
    """Keep the gradient of the first optimizer step, whole and flat, while the block runs.

    Of processes that each hold a part of it, as long as those of the others, ``learnt`` is the
    number of all trained parameters.
    """

    def keep(optimizer: Any, *_: Any) -> None:
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        # Every process asks, in every step.
        flat = torch.cat([whole(p.grad).float().cpu().flatten() for p in parameters])
        if len(flat) < learnt:
            parts = [torch.empty_like(flat) for _ in range(torch.distributed.get_world_size())]
            torch.distributed.all_gather(parts, flat)
            flat = torch.cat(parts)[:learnt]
        gradients.setdefault("gradient", flat.clone())

    hook = register_optimizer_step_pre_hook(keep)
    try:
        yield
    finally:
        hook.remove()


def main(folder: Path, out: Path, names: Collection[str]) -> None:
    """Take steps on the CPU and save their results."""
    assert not torch.cuda.is_available(), "start it with CUDA_VISIBLE_DEVICES= in front"
    steps = [step for step in STEPS if str(step) in names]
    save_starts(folder, {step.kind for step in steps})
    results: dict[str, Tensor] = {}
    for step in steps:
        tensors = take_step(step, "fp32", folder, folder / "cpu" / str(step))
        results |= {f"{step}/{name}": tensor for name, tensor in tensors.items()}
    save_file(results, out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
