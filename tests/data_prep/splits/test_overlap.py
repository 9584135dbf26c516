"""Overlap between splits, on rows whose overlap is plain to see."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.splits.overlap import Overlap, find_overlaps, paraphrases_left_out
from data_prep.splits.splits import split_examples
from judging.types import LabelledExample
from tests.tiny import save_picture

FOUNDER = "Who founded the first printing house of the old town by the river?"


def row(question: str, response: str = "Ann", **fields: Any) -> LabelledExample:
    given = {"references": ("Ann",), "label": "Correct"} | fields
    return LabelledExample(question=question, responses=(response,), **given)


def only(train: list[LabelledExample], test: list[LabelledExample]) -> Overlap | None:
    overlaps = find_overlaps({"train": train, "test": test})
    assert len(overlaps) <= 1
    return overlaps[0] if overlaps else None


def test_each_kind_is_counted_under_its_strongest_name() -> None:
    train = [row(FOUNDER), row("Which tower leans?", "Pisa", group="towers")]
    test = [
        row(FOUNDER),
        row("WHO founded  first printing house of the old town by river", "Bob"),
        row("Who founded the first printing house of the very old town by the river?"),
        row("Which bridge fell?", group="towers"),
        row("How deep is the harbour?"),
    ]
    overlap = only(train, test)
    assert overlap is not None
    assert overlap.counts == {"row": 1, "question": 1, "near-duplicate": 1, "group": 1}
    assert overlap.example == (test[0], train[0])
    assert overlap.describe() == (
        "of 5 test rows, 1 is a row of train too and 1 shares a question with train and "
        "1 asks nearly the same as train and 1 belongs to a group of train"
    )


def test_the_nearest_row_is_named() -> None:
    lake = "Who founded the first printing house of the old town by the lake?"
    train = [row(lake.replace("lake", "lake or the sea")), row(lake), row("How deep is it?")]
    overlap = only(train, [row(lake.replace("old town", "old towns"))])
    assert overlap is not None
    assert overlap.example[1] == train[1]


def test_another_name_is_another_question() -> None:
    assert only([row(FOUNDER)], [row(FOUNDER.replace("river", "lake"))]) is None


def test_other_words_are_found_by_the_sentence_model_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is a stand-in that takes all that ask of a printing house for the same."""

    def embed(texts: list[str]) -> Any:
        return np.array([[1.0, 0.0] if "print" in text else [0.0, 1.0] for text in texts])

    train = [row(FOUNDER), row("How deep is the harbour?")]
    test = [row("Which person was it that began to print books there?")]
    monkeypatch.setattr("data_prep.splits.overlap.minilm", lambda: None)
    assert only(train, test) is None
    monkeypatch.setattr("data_prep.splits.overlap.minilm", lambda: embed)
    overlap = only(train, test)
    assert overlap is not None
    assert overlap.counts == {"paraphrase": 1}
    assert not overlap.is_certain
    assert overlap.example == (test[0], train[0])
    with_row = only(train, [*test, train[0]])
    assert with_row is not None
    assert with_row.is_certain


def test_what_was_not_looked_for_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"train": [row(f"{number}?") for number in range(3)]}
    monkeypatch.setattr("data_prep.splits.overlap.has_sentence_model", lambda: False)
    assert "custos[sentences]" in (paraphrases_left_out(rows) or "")
    monkeypatch.setattr("data_prep.splits.overlap.has_sentence_model", lambda: True)
    assert paraphrases_left_out(rows) is None
    monkeypatch.setattr("data_prep.splits.overlap.MOST_EMBEDDED", 2)
    assert "more than 2" in (paraphrases_left_out(rows) or "")


def test_another_number_is_another_question() -> None:
    assert only([row(FOUNDER + " In 1480?")], [row(FOUNDER + " In 1490?")]) is None


def test_one_question_about_two_pictures_is_two_questions(tmp_path: Path) -> None:
    first, second = (save_picture(tmp_path / f"{n}.png", 40 + n, 40) for n in (0, 1))
    question = "Which bar is the highest?"
    assert only([row(question, images=(first,))], [row(question, images=(second,))]) is None
    assert only([row(question, images=(first,))], [row(question)]) is None
    (tmp_path / "copies").mkdir()
    copy = str(shutil.copy(first, tmp_path / "copies" / "c.png"))
    overlap = only([row(question, images=(first,))], [row(question, images=(copy,))])
    assert overlap is not None
    assert overlap.counts == {"row": 1}


def test_pictures_that_are_not_there_are_told_apart_by_name(tmp_path: Path) -> None:
    first, second = str(tmp_path / "a.png"), str(tmp_path / "b.png")
    assert only([row("Which bar?", images=(first,))], [row("Which bar?", images=(second,))]) is None


def test_groups_of_the_maker_say_what_belongs_together() -> None:
    lake = FOUNDER.replace("river", "lake")
    assert only([row(FOUNDER, group="w1")], [row(lake, group="w2")]) is None
    assert only([row(FOUNDER, group="w1")], [row(FOUNDER, group="w2", references=("Zoe",))]) is None
    same = only([row(FOUNDER, group="w1")], [row(FOUNDER, "Bob", group="w2")])
    assert same is not None
    assert same.counts == {"question": 1}
    beside = only([row(FOUNDER)], [row(FOUNDER, group="w2", references=("Zoe",))])
    assert beside is not None, "a row without a group is told apart by its question alone"
    elsewhere = only([row("Which?", group="1", source="a")], [row("When?", group="1", source="b")])
    assert elsewhere is None, "two data sets may both number their groups"


def test_other_answer_options_make_another_question() -> None:
    question = "Which of the following statements is true?"
    assert only([row(question, choices=("x", "y"))], [row(question, choices=("x", "z"))]) is None


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from("abcdefgh"), min_size=12, max_size=40), st.integers(0, 5))
def test_what_prep_divides_never_overlaps(names: list[str], seed: int) -> None:
    rows = [row(f"Which {name} of the {names[0]} is it?", str(i)) for i, name in enumerate(names)]
    splits = split_examples(rows, seed=seed)
    assert find_overlaps({str(name): part for name, part in splits.items()}) == []


@pytest.mark.parametrize("splits", [{}, {"train": []}, {"train": [row("Why?")], "test": []}])
def test_nothing_to_compare(splits: dict[str, list[LabelledExample]]) -> None:
    assert find_overlaps(splits) == []
