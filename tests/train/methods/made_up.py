"""Recipes and rows for training on critiques that a tiny judge draws itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from judging.types import LabelledExample
from tests.train.made_up import critique_pair, write_split


def labelled_pair(number: int, **fields: Any) -> LabelledExample:
    """A pair with a label and without a critique; the response "green" is better."""
    return critique_pair(number, critique=None, confidence=None, mode=None, **fields)


def write_recipe(folder: Path, backbone: str, **sections: Any) -> Path:
    """Write a recipe in float32, with rows for all splits; sections are merged."""
    parts = {"train": (0, 8), "val": (100, 3), "cal": (200, 6), "test": (300, 4)}
    files = {
        name: write_split(
            folder / f"{name}.jsonl",
            [
                labelled_pair(
                    start + i,
                    question=f"Which {name} river {i}?",
                    critique_tokens=6,
                    **({"label": "None"} if i == 5 else {}),  # calibrations need every label
                )
                for i in range(count)
            ],
        )
        for name, (start, count) in parts.items()
    }
    values: dict[str, Any] = {
        "backbone": backbone,
        "data": {**files, "train": [files["train"]]},
        "adapter": {"r": 4, "alpha": 8, "dropout": 0.0},
        "critiques": {"drawn": 2, "max_tokens": 6},
        "optim": {"lr": 1e-2, "batch_size": 4, "epochs": 1},
        "run": {"output": str(folder / "run"), "precision": "fp32", "log_every": 1},
    }
    for name, section in sections.items():
        values[name] = {**values.get(name, {}), **section}
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return path
