"""Quick-score rows: labels follow from what is claimed; wordings do not tell them."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.made.behaviours import BEHAVIOURS
from data_prep.made.quick_scores import generate_examples, questions, responses
from data_prep.made.words.wordings import WordingSplit
from data_prep.made.worlds import OPEN_WORLDS, SET_WORLDS
from judging.types import LabelledExample
from tests.data_prep.examples import values_of

HELD_OUT = {wording.id for wording in responses() if wording.held_out}
HELD_OUT_QUESTIONS = {question.id for question in questions() if question.held_out}

seeds = st.integers(min_value=-(2**63), max_value=2**63)
splits: st.SearchStrategy[WordingSplit] = st.sampled_from(("train", "test", "all"))


def test_labels_come_in_their_shares(quick_train: list[LabelledExample]) -> None:
    sets = Counter(row.label for row in quick_train if row.reference_mode == "all")
    shares = {label: count / sets.total() for label, count in sets.items()}
    assert shares == pytest.approx({"Correct": 0.45, "Partial": 0.20, "Wrong": 0.35}, abs=0.05)


@settings(deadline=None)
@given(seeds, splits)
def test_rows_are_consistent(seed: int, wordings: WordingSplit) -> None:
    for row in generate_examples(8, seed, wordings):
        assert (row.task, row.source) == ("hieval-qs", "synthetic")
        assert row.references
        assert "{" not in row.response.replace("\\boxed{", "")
        alone = row.reference_mode == "any" or len(row.references) == 1
        assert not (row.label == "Partial" and alone)
        assert row.response.strip() or row.label == "Wrong"
        if row.variant == "tolerance":
            assert all(reference[0].isdigit() for reference in row.references)
        if row.response in row.references and row.metadata["form"].endswith("bare.and"):
            assert row.label == ("Correct" if alone else "Partial")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_family_and_world_is_worded_in_each_language_on_both_sides(language: str) -> None:
    used = {f"{language}.{family}" for b in BEHAVIOURS for family in b.families}
    for held_out in (False, True):
        worded = {wording.family for wording in responses() if wording.held_out == held_out}
        assert {family for family in worded if family.startswith(language)} == used
    worlds = {f"{language}.{world}" for world in SET_WORLDS | OPEN_WORLDS}
    asked = {question.family for question in questions() if not question.held_out}
    assert worlds == {family for family in asked if family.startswith(language)}


def test_held_out_wordings_are_for_the_test_alone(
    quick_train: list[LabelledExample], quick_test: list[LabelledExample]
) -> None:
    every = {wording.id for wording in responses()}
    assert values_of(quick_train, "form") == every - HELD_OUT
    assert not values_of(quick_train, "question_form") & HELD_OUT_QUESTIONS
    assert values_of(quick_test, "form") == HELD_OUT
    assert values_of(quick_test, "question_form") >= HELD_OUT_QUESTIONS


def test_wording_alone_does_not_give_the_label_away(quick_train: list[LabelledExample]) -> None:
    labels: dict[str, set[str]] = {}
    for row in quick_train:
        labels.setdefault(row.metadata["form"], set()).add(row.label)
    one_sided = {wording.split(".")[1] for wording, seen in labels.items() if len(seen) == 1}
    assert one_sided <= {"refusal", "cut", "empty", "guesses"}
