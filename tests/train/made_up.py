"""A tiny task that a tiny model can learn, and recipes for it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
import torch
import yaml

from judging.models.backbones import Backbone, load_backbone
from judging.scoring.prompts import Encoder
from judging.types import LabelledExample
from tests.forks import ROOT
from tests.gpu.host_waits import META, no_host_waits
from tests.tiny import save_picture
from train.loop.accelerator import first_device, make_accelerator
from train.loop.batches import MicroBatch, StepPlan
from train.loop.checkpoint import trainable
from train.loop.objective import TextModel
from train.loop.trainer import Trainer
from train.methods.base import LossMethod
from train.methods.focal import Focal, FocalRecipe
from train.rows.data import RunSplits
from train.rows.rows import Rows, Supervision
from train.setup.recipe import Recipe

RecipeT = TypeVar("RecipeT", bound=Recipe)

TOKEN_BUDGET = 200
"""Some rows of :func:`example`: a step of eight is cut."""


def example(number: int, **fields: Any) -> LabelledExample:
    """Right when the answer is "green", wrong when it is "brown"; lengths vary."""
    right = number % 3 == 0
    given: dict[str, Any] = {
        "id": str(number),
        "question": "Which river" + " runs" * (number % 4) + "?",
        "references": ("green",),
        "reference_mode": "any",
        "responses": ("green" if right else "brown",),
        "label": "Correct" if right else "Wrong",
    }
    return LabelledExample.model_validate(given | fields)


def examples(count: int, start: int = 0) -> list[LabelledExample]:
    return [example(number) for number in range(start, start + count)]


LABELS = (
    "Correct",
    "Wrong; Reasoning Error",
    "Wrong; Image Misunderstanding",
    "Wrong; Unanswerable",
    "Wrong; Overthinking",
    "Wrong; Other",
)


def analysed(folder: Path, count: int, start: int = 0) -> list[LabelledExample]:
    """Rows of every error type, two in three with a picture."""
    picture = save_picture(folder / "a.png", 60, 60)
    return [
        LabelledExample(
            id=f"ea{i}",
            task="hieval-ea",
            question=f"Which bar {i // 4}?",
            references=("7",),
            reference_mode="any",
            responses=("green " * (i % 6 + 1),),
            label=LABELS[i % 6],
            error_type=LABELS[i % 6].partition("; ")[2] or None,
            images=(picture,) if i % 3 else (),
        )
        for i in range(start, start + count)
    ]


def critique_pair(number: int, **fields: Any) -> LabelledExample:
    """A pair with a critique; the response "green" is better."""
    better = "AB"[number % 2]
    given: dict[str, Any] = {
        "id": str(number),
        "task": "truthful-pair",
        "question": "Which river" + " runs" * (number % 3) + "?",
        "responses": ("green", "brown")[:: 1 if better == "A" else -1],
        "label": better,
        "critique": f"{better} says green." + " It is." * (number % 4),
        "confidence": 0.75,
        "mode": "critique",
    }
    return LabelledExample.model_validate(given | fields)


def labelled_pair(number: int, **fields: Any) -> LabelledExample:
    """A pair with a label and without a critique; the response "green" is better."""
    return critique_pair(number, critique=None, confidence=None, mode=None, **fields)


def recipe(output: Path, backbone: str = "unused", **overrides: Any) -> FocalRecipe:
    """A recipe of focal loss in float32; keys are ``section__key``."""
    return recipe_of(FocalRecipe, output, backbone, **overrides)


def recipe_of(
    kind: type[RecipeT], output: Path, backbone: str = "unused", **overrides: Any
) -> RecipeT:
    """A recipe of any method, as :func:`recipe`."""
    values: dict[str, Any] = {
        "backbone": backbone,
        "data": {"train": ["unused.jsonl"], "val": "unused.jsonl"},
        "adapter": {"r": 4, "alpha": 8, "dropout": 0.0},
        "optim": {"lr": 5e-3, "batch_size": 8, "token_budget": TOKEN_BUDGET, "epochs": 2},
        "run": {"output": str(output), "precision": "fp32", "log_every": 2},
    }
    for key, value in overrides.items():
        section, _, name = key.partition("__")
        values.setdefault(section, {})[name] = value
    return kind.model_validate(values)


def trainer(
    recipe: Recipe,
    folder: str,
    train: list[LabelledExample],
    val: list[LabelledExample] | None = None,
    method: type[LossMethod] = Focal,
) -> Trainer:
    """A trainer over a fresh copy of a tiny backbone, by any method that minimises a loss."""
    accelerator = make_accelerator(recipe.run)
    backbone = load_backbone(
        folder,
        dtype=recipe.run.dtype,
        device="cpu",
        quantization=recipe.run.quantization,
        held_on=first_device(accelerator),
    )
    encoder = Encoder(backbone, shows_all_pictures=True)
    chosen = method(recipe, splits(train, val or examples(6, 900)))
    return chosen.trainer(encoder, accelerator, {})


def splits(train: Sequence[LabelledExample], val: Sequence[LabelledExample]) -> RunSplits:
    """The splits of a run, in memory."""
    rows: Any = (train, val)
    return RunSplits(*rows)


def steps_of(plan: StepPlan) -> list[list[MicroBatch]]:
    """The micro-batches of every step of a run."""
    return [plan.micro_batches(step) for step in range(plan.total_steps)]


def adapter_of(learner: Trainer) -> dict[str, torch.Tensor]:
    """Copies of the parameters that a run trains, by name."""
    return {name: p.detach().clone() for name, p in trainable(learner.tree_model).items()}


def losses(trained: Trainer) -> list[float]:
    """The training losses that a run has reported, in order."""
    return [entry["train_loss"] for entry in trained.progress.history if "train_loss" in entry]


def take_step_without_waits(
    method: type[LossMethod], backbone: str, folder: Path, **keys: Any
) -> None:
    """Compute the loss of a step and its gradient; raise ``HostWait`` if the host would wait.

    The recipe has ``keys``, as :func:`recipe`. A method that reads two prompts of a row, or learns
    texts, gets pairs with critiques; others rows with types of error.
    """
    encoder = Encoder(load_backbone(backbone, weights=False), shows_all_pictures=True)
    is_on_pairs = method.learns_text or method.prompts > 1
    rows = [critique_pair(i) for i in range(4)] if is_on_pairs else analysed(folder, 4)
    chosen = method(recipe_of(method.recipe_class, folder, **keys), splits(rows, rows))
    objective = chosen.objective()
    part = list(Rows(rows, chosen.supervision(encoder), "train"))
    num_prompts, slots = sum(len(row.requests) for row in part), part[0].tree.num_slots
    shape = torch.Size((num_prompts, slots, len(encoder.backbone.tokenizer)))
    if issubclass(objective.model_class, TextModel):
        shape = objective.inputs(part)["targets"].shape
    outputs = torch.empty(shape, device=META, requires_grad=True)
    objective.loss_sum(outputs, part, step=0)  # moves what the loss holds, once
    with no_host_waits():
        objective.loss_sum(outputs, part, step=8).backward()
    assert outputs.grad is not None


def torchrun(processes: int, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a module in processes of torchrun itself."""
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node")
    return subprocess.run(
        [*launcher, str(processes), "-m", module, *arguments],
        env=os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


class KilledError(Exception):
    """Ends a run as a kill would."""


@contextmanager
def killed_after(step: int) -> Iterator[None]:
    """Kill the run that the block trains once the checkpoint of a step is written."""
    save: Any = Trainer.save

    def save_and_die(self: Trainer) -> None:
        save(self)
        if self.progress.step == step:
            raise KilledError

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(Trainer, "save", save_and_die)
        yield


def encoded(backbone: Backbone, rows: list[LabelledExample]) -> Rows:
    return Rows(rows, Supervision(Encoder(backbone, shows_all_pictures=True)), "train")


def write_split(path: Path, rows: Sequence[LabelledExample]) -> str:
    lines = (json.dumps(row.model_dump(mode="json", exclude_unset=True)) for row in rows)
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def recipe_file(
    folder: Path, backbone: str, rows: Mapping[str, Sequence[LabelledExample]], **sections: Any
) -> Path:
    """A recipe file in float32 and, beside it, the rows of its splits; sections are merged."""
    files = {split: write_split(folder / f"{split}.jsonl", part) for split, part in rows.items()}
    values: dict[str, Any] = {
        "backbone": backbone,
        "data": {**files, "train": [files["train"]]},
        "adapter": {"r": 4, "alpha": 8, "dropout": 0.0},
        "optim": {"lr": 1e-2, "batch_size": 8, "epochs": 1},
        "run": {"output": str(folder / "run"), "precision": "fp32"},
    }
    for name, section in sections.items():
        merged = isinstance(section, dict)
        values[name] = {**values.get(name, {}), **section} if merged else section
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return path


def write_recipe(folder: Path, backbone: str, **overrides: Any) -> Path:
    """A recipe file with all four splits beside it."""
    given = {
        "data__train": [write_split(folder / "train.jsonl", examples(24))],
        "data__val": write_split(folder / "val.jsonl", examples(6, 100)),
        "data__cal": write_split(folder / "cal.jsonl", examples(12, 200)),
        "data__test": write_split(folder / "test.jsonl", examples(9, 300)),
        "data__allow_overlap": True,  # there are four questions only
        "optim__epochs": 1,
    }
    made = recipe(folder / "run", backbone, **(given | overrides))
    path = folder / "tiny.yaml"
    values = {**made.model_dump(mode="json"), "method": "focal"}
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return path
