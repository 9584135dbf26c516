"""A tiny task that a tiny model can learn, and recipes for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from judging.models.adapters import add_adapter
from judging.models.backbones import Backbone, load_backbone
from judging.scoring.prompts import Encoder
from judging.types import LabelledExample
from train.hieval_stage1 import Stage1Recipe
from train.loop.batches import Rows
from train.loop.trainer import Trainer
from train.objectives.focal import FocalObjective
from train.setup.run_identity import run_identity


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


def recipe(output: Path, backbone: str = "unused", **overrides: Any) -> Stage1Recipe:
    """A recipe in float32; keys are ``section__key``."""
    values: dict[str, Any] = {
        "backbone": backbone,
        "data": {"train": ["unused.jsonl"], "val": "unused.jsonl"},
        "adapter": {"r": 4, "alpha": 8, "dropout": 0.0},
        "optim": {
            "lr": 5e-3,
            "batch_size": 8,
            "micro_batch_size": 4,
            "epochs": 2,
        },
        "run": {"output": str(output), "precision": "fp32", "log_every": 2},
    }
    for key, value in overrides.items():
        section, _, name = key.partition("__")
        values.setdefault(section, {})[name] = value
    return Stage1Recipe.model_validate(values)


def trainer(
    recipe: Stage1Recipe,
    folder: str,
    train: list[LabelledExample],
    val: list[LabelledExample] | None = None,
) -> Trainer:
    """A trainer over a fresh copy of a tiny backbone."""
    backbone = load_backbone(folder, dtype="float32", device="cpu")
    rows, val_rows = encoded(backbone, train), encoded(backbone, val or examples(6, start=900))
    loss = recipe.loss
    objective = FocalObjective.for_rows(rows.rows, loss.gamma, loss.t_max, loss.weighting)
    adapter = recipe.adapter
    adapted = add_adapter(
        backbone.model,
        r=adapter.r,
        alpha=adapter.alpha,
        dropout=adapter.dropout,
        seed=recipe.run.seed,
    )
    identity = run_identity(recipe, backbone.version, {})
    return Trainer(recipe, backbone.with_model(adapted), rows, val_rows, objective, identity)


def encoded(backbone: Backbone, rows: list[LabelledExample]) -> Rows:
    return Rows(rows, Encoder(backbone))


def write_split(path: Path, rows: list[LabelledExample]) -> str:
    lines = (json.dumps(row.model_dump(mode="json", exclude_unset=True)) for row in rows)
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def write_recipe(folder: Path, backbone: str, **overrides: Any) -> Path:
    """A recipe file with all four splits beside it."""
    given = {
        "data__train": [write_split(folder / "train.jsonl", examples(24))],
        "data__val": write_split(folder / "val.jsonl", examples(6, 100)),
        "data__cal": write_split(folder / "cal.jsonl", examples(12, 200)),
        "data__test": write_split(folder / "test.jsonl", examples(9, 300)),
        "optim__epochs": 1,
    }
    made = recipe(folder / "run", backbone, **(given | overrides))
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(made.model_dump(mode="json")), encoding="utf-8")
    return path
