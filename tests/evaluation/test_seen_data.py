from pathlib import Path

import pytest
import yaml

from evaluation.seen_data import seen_data
from judging.files.questions import write_question_hashes
from judging.judge.card import SHIPPED
from tests.evaluation.made_up import example


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    hashes = {"a.jsonl": "aa", "v.jsonl": "bb", "c.jsonl": "cc", "t.jsonl": "dd"}
    data = {"train": ["a.jsonl"], "val": "v.jsonl", "cal": "c.jsonl", "test": "t.jsonl"}
    recipe = {"data": data, "provenance": {"sha256": hashes}}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return tmp_path


@pytest.mark.parametrize(
    ("sha256", "use"),
    [
        ("aa", "trained on"),
        ("bb", "chosen by"),
        ("cc", "calibrated on"),
        ("dd", None),
        (None, None),
    ],
)
def test_the_very_file(folder: Path, sha256: str | None, use: str | None) -> None:
    assert seen_data(folder, sha256, [example()]) == {"file": use, "rows": None}


@pytest.mark.parametrize(
    ("judge", "file", "use"),
    [
        ("embedded-benchmarks", "data/benchmarks/train.jsonl", "trained on"),
        ("embedded-benchmarks", "data/benchmarks/test.jsonl", None),
        ("embedded-ea", "data/mixed/train.jsonl", "trained on"),  # replayed
        ("embedded-qs", "data/options_cal/cal.jsonl", "calibrated on"),
    ],
)
def test_the_files_of_judges_that_training_wrote(judge: str, file: str, use: str | None) -> None:
    recipe = yaml.safe_load((SHIPPED / judge / "recipe.yaml").read_text())
    sha256 = recipe["provenance"]["sha256"][file]
    seen = seen_data(SHIPPED / judge, sha256, [])
    assert seen is not None and seen["file"] == use


def test_questions(folder: Path) -> None:
    write_question_hashes(folder, [example(question="What is 6 x 7?")])
    rows = [example(question="what is  6 x 7"), example(question="Why?")]
    assert seen_data(folder, "ff", rows) == {"file": None, "rows": 1}


@pytest.mark.parametrize(
    "text",
    [
        *("", "[", "data: 1", "provenance: {sha256: [x]}", "\x00"),
        "{provenance: {sha256: {a: aa}}, data: a}",
        "{provenance: {sha256: {a: aa}}, data: {train: [{path: a}]}}",
    ],
)
def test_a_recipe_that_is_not_ours_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "recipe.yaml").write_text(text)
    assert seen_data(tmp_path, "aa", [example()]) == {"file": None, "rows": None}
    assert seen_data(None, "aa", [example()]) is None
