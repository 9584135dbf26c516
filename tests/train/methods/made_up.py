"""Recipes and rows for training on critiques that a tiny judge draws itself."""

from pathlib import Path
from typing import Any

from judging.types import LabelledExample
from tests.train.made_up import critique_pair, recipe_file


def labelled_pair(number: int, **fields: Any) -> LabelledExample:
    """A pair with a label and without a critique; the response "green" is better."""
    return critique_pair(number, critique=None, confidence=None, mode=None, **fields)


def write_recipe(folder: Path, backbone: str, **sections: Any) -> Path:
    """Write a recipe in float32, with rows for all splits; sections are merged."""
    parts = {"train": (0, 8), "val": (100, 3), "cal": (200, 6), "test": (300, 4)}
    rows = {
        name: [
            labelled_pair(
                start + i,
                question=f"Which {name} river {i}?",
                critique_tokens=6,
                **({"label": "None"} if i == 5 else {}),  # calibrations need every label
            )
            for i in range(count)
        ]
        for name, (start, count) in parts.items()
    }
    given: dict[str, Any] = {
        "critiques": {"drawn": 2, "max_tokens": 6},
        "optim": {"batch_size": 4},
        "run": {"log_every": 1},
    }
    for name, section in sections.items():
        given[name] = {**given.get(name, {}), **section}
    return recipe_file(folder, backbone, rows, **given)
