"""The tables of wordings, and how rows use them."""

import pytest

from data_prep.made.behaviours import BEHAVIOURS
from data_prep.made.quick_scores import generate_examples, questions, responses
from data_prep.made.worlds import OPEN_WORLDS, SET_WORLDS
from judging.types import LabelledExample
from tests.data_prep.examples import values_of

HELD_OUT = {wording.id for wording in responses() if wording.held_out}
HELD_OUT_QUESTIONS = {question.id for question in questions() if question.held_out}


def test_there_are_at_least_sixty_wordings_and_fifteen_are_held_out() -> None:
    assert len({wording.id for wording in responses()}) == len(responses()) >= 60
    assert len({wording.id for wording in questions()}) == len(questions())
    assert len(HELD_OUT) >= 15


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("held_out", [False, True])
def test_every_family_is_worded_in_each_language_on_both_sides(
    language: str, held_out: bool
) -> None:
    used = {family for behaviour in BEHAVIOURS for family in behaviour.families}
    worded = {wording.family for wording in responses() if wording.held_out == held_out}
    assert {family for family in worded if family.startswith(language)} == {
        f"{language}.{family}" for family in used
    }


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_world_has_a_question_for_training(language: str) -> None:
    worlds = {f"{language}.{world.__name__}" for world, _ in (*SET_WORLDS, *OPEN_WORLDS)}
    asked = {question.family for question in questions() if not question.held_out}
    assert worlds == {family for family in asked if family.startswith(language)}


def test_held_out_wordings_never_occur_in_train(train_rows: list[LabelledExample]) -> None:
    assert not values_of(train_rows, "form") & HELD_OUT
    assert not values_of(train_rows, "question_form") & HELD_OUT_QUESTIONS


def test_test_is_worded_in_held_out_wordings_only(test_rows: list[LabelledExample]) -> None:
    assert values_of(test_rows, "form") == HELD_OUT
    assert values_of(test_rows, "question_form") >= HELD_OUT_QUESTIONS


def test_all_wordings_occur_in_all() -> None:
    assert values_of(list(generate_examples(8000, 3, "all")), "form") == {
        wording.id for wording in responses()
    }


def test_wording_alone_does_not_give_the_label_away(train_rows: list[LabelledExample]) -> None:
    labels: dict[str, set[str]] = {}
    for row in train_rows:
        labels.setdefault(row.metadata["form"], set()).add(row.label)
    one_sided = {wording.split(".")[1] for wording, seen in labels.items() if len(seen) == 1}
    assert one_sided <= {"refusal", "cut", "empty", "guesses"}
