"""Streams of examples and their labels."""

from collections import Counter
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.made.behaviours import BEHAVIOURS
from data_prep.made.quick_scores import generate_examples
from data_prep.made.words.wordings import WordingSplit
from judging.types import LabelledExample
from tests.data_prep.examples import values_of

WORDING_SPLITS: tuple[WordingSplit, ...] = ("train", "test", "all")

seeds = st.integers(min_value=-(2**63), max_value=2**63)
splits = st.sampled_from(WORDING_SPLITS)


def test_same_seed_gives_the_same_rows() -> None:
    assert list(generate_examples(40, 7, "all")) == list(generate_examples(40, 7, "all"))


def test_a_longer_run_starts_with_the_shorter_one() -> None:
    assert list(generate_examples(100, 7, "train"))[:30] == list(generate_examples(30, 7, "train"))


def test_other_seeds_give_other_worlds() -> None:
    first, second = (
        {row.question for row in generate_examples(80, seed, "all")} for seed in (1, 2)
    )
    assert not first & second


def test_rows_are_drawn_one_by_one() -> None:
    assert len(list(islice(generate_examples(10**12, 0, "train"), 5))) == 5


def test_rows_of_a_group_share_their_question(train_rows: list[LabelledExample]) -> None:
    questions: dict[str, set[str]] = {}
    for row in train_rows:
        questions.setdefault(row.group, set()).add(row.question)
    assert all(len(texts) == 1 for texts in questions.values())
    assert len({row.id for row in train_rows}) == len(train_rows)


@pytest.mark.parametrize("side", ["train_rows", "test_rows"])
def test_everything_occurs_on_both_sides(side: str, request: pytest.FixtureRequest) -> None:
    rows: list[LabelledExample] = request.getfixturevalue(side)
    assert values_of(rows, "behaviour") == {behaviour.name for behaviour in BEHAVIOURS}
    assert values_of(rows, "language") == {"en", "zh"}
    assert {row.variant for row in rows} == {"plain", "tolerance"}
    assert {row.reference_mode for row in rows} == {"all", "any"}
    assert {len(row.references) for row in rows if row.reference_mode == "all"} == {1, 2, 3, 4, 5}


def test_labels_come_in_their_shares(train_rows: list[LabelledExample]) -> None:
    sets = Counter(row.label for row in train_rows if row.reference_mode == "all")
    shares = {label: count / sets.total() for label, count in sets.items()}
    assert shares == pytest.approx({"Correct": 0.45, "Partial": 0.20, "Wrong": 0.35}, abs=0.04)


@settings(deadline=None)
@given(seeds, splits)
def test_rows_are_consistent(seed: int, wordings: WordingSplit) -> None:
    for row in generate_examples(8, seed, wordings):
        assert (row.task, row.source) == ("hieval-qs", "synthetic")
        assert row.references
        assert "{" not in row.response.replace("\\boxed{", "")
        if row.label == "Partial":
            assert row.reference_mode == "all"
            assert len(row.references) > 1
        if not row.response.strip():
            assert row.label == "Wrong"
        if row.variant == "tolerance":
            assert all(reference[0].isdigit() for reference in row.references)
        if row.response in row.references and row.metadata["form"].endswith("bare.and"):
            alone = row.reference_mode == "any" or len(row.references) == 1
            assert row.label == ("Correct" if alone else "Partial")


def test_open_worlds_are_english_questions_with_alternatives() -> None:
    rows = list(generate_examples(200, 5, "train", "open"))
    assert {row.metadata["language"] for row in rows} == {"en"}
    assert {row.reference_mode for row in rows} == {"any"}
    assert {row.label for row in rows} == {"Correct", "Wrong"}
