"""Splits that share questions, as a recipe meets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judging.errors import FieldError
from judging.files.questions import write_question_hashes
from judging.types import LabelledExample
from tests.train.made_up import example, write_split
from train.setup.data import read_splits
from train.setup.overlap import check_overlaps, count_known_to_start
from train.setup.recipe import AdapterSection, DataSection, OptimSection, Recipe, RunSection


def asking(*names: str) -> list[LabelledExample]:
    return [
        example(number, question=f"How long is the {name}?", references=(names[0],))
        for number, name in enumerate(names)
    ]


def section(folder: Path, **fields: Any) -> DataSection:
    splits: dict[str, Any] = {
        "train": [write_split(folder / "train.jsonl", asking("Elbe", "Danube", "Mississippi"))],
        "val": write_split(folder / "val.jsonl", asking("Thames")),
        "cal": write_split(folder / "cal.jsonl", asking("Congo", "Ganges")),
        "test": write_split(folder / "test.jsonl", asking("Loire", "Mississippi", "Ganges")),
    }
    return DataSection.model_validate(splits | fields)


def test_it_is_refused_with_counts_and_the_first_rows(tmp_path: Path) -> None:
    data = section(tmp_path)
    with pytest.raises(FieldError) as caught:
        check_overlaps(read_splits(data), data)
    assert caught.value.field == "data.test"
    message = caught.value.message
    assert "of 3 test rows, 1 shares a question with train; of 3 test rows, 1 shares" in message
    assert f"first: {tmp_path}/test.jsonl row 2 and {tmp_path}/train.jsonl row 3)" in message
    assert "data.allow_overlap=true" in message


@pytest.mark.parametrize("allowed", [True, [["train", "test"], ["test", "cal"]]])
def test_it_may_be_allowed(tmp_path: Path, allowed: Any) -> None:
    data = section(tmp_path, allow_overlap=allowed)
    overlaps = check_overlaps(read_splits(data), data)
    assert [(o.split, o.other, o.total) for o in overlaps] == [
        ("test", "train", 1),
        ("test", "cal", 1),
    ]


def test_other_pairs_of_splits_stay_refused(tmp_path: Path) -> None:
    data = section(tmp_path, allow_overlap=[["train", "test"]])
    with pytest.raises(FieldError, match=r"^field 'data.test': of 3 test rows, 1 shares .* cal \("):
        check_overlaps(read_splits(data), data)


def test_one_file_for_two_splits_is_named(tmp_path: Path) -> None:
    file = write_split(tmp_path / "all.jsonl", asking("Elbe", "Danube"))
    data = DataSection(train=(Path(file),), val=Path(file))
    with pytest.raises(FieldError, match=r"of 2 val rows, 2 are rows of train too \(both read /"):
        check_overlaps(read_splits(data), data)


def test_questions_that_the_start_was_trained_on(tmp_path: Path) -> None:
    start = tmp_path / "start"
    start.mkdir()
    recipe = Recipe(
        backbone="embedded",
        data=section(tmp_path),
        adapter=AdapterSection(init=start),
        optim=OptimSection(lr=1e-3),
        run=RunSection(output=tmp_path / "run"),
    )
    rows = asking("Loire", "Ganges")
    assert count_known_to_start(recipe, rows) == 0, "the start does not say"
    write_question_hashes(start, asking("Loire", "Elbe"))
    assert count_known_to_start(recipe, rows) == 1
    assert count_known_to_start(recipe, None) == 0
