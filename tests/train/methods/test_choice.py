"""Which method a recipe is trained with, and that a file is all that a new one takes."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from judging.errors import FieldError
from train.loop.checkpoint import run_identity
from train.methods import method_of, methods
from train.methods.focal import FocalRecipe
from train.setup.recipe import parse_recipe

SECTIONS: dict[str, Any] = {
    "backbone": "embedded",
    "data": {"train": ["train.jsonl"], "val": "val.jsonl"},
    "optim": {"lr": 1e-4},
    "run": {"output": "runs/x"},
}


def _method(values: dict[str, Any], default: str | None = None) -> str:
    return method_of(Path("x.yaml"), values, default).name


def test_the_recipe_names_it() -> None:
    for name in ("focal", "joint", "critique", "reward", "dpo", "grpo"):
        assert _method({**SECTIONS, "method": name}, "focal") == name
    assert _method(SECTIONS, "joint") == "joint"


def test_a_recipe_without_one_asks_for_it() -> None:
    with pytest.raises(FieldError) as raised:
        _method(SECTIONS)
    assert raised.value.field == "method"
    assert all(
        f"{name} (train/{way.script}.py)" in str(raised.value) for name, way in methods().items()
    )


@pytest.mark.parametrize("name", ["focl", "base", "trainer", "../x", 3])
def test_a_method_that_does_not_exist(name: Any) -> None:
    with pytest.raises(FieldError) as raised:
        _method({**SECTIONS, "method": name})
    assert raised.value.field == "method"


def test_checkpoints_that_name_no_method_go_on(tmp_path: Path) -> None:
    """But a later method does not go on from the checkpoint of another with the same keys."""
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump(SECTIONS), encoding="utf-8")
    before = run_identity(parse_recipe(FocalRecipe, path), None, {})
    assert run_identity(parse_recipe(FocalRecipe, path, ["method=focal"]), None, {}) == before
    assert run_identity(parse_recipe(FocalRecipe, path, ["method=other"]), None, {}) != before
