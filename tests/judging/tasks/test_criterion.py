"""The task of a caller's own criteria, and who may answer it unmeasured."""

from typing import Any

import pytest

from data_prep.splits.near_duplicates import cluster_examples
from judging.errors import FieldError
from judging.files.questions import question_hash
from judging.judge.card import resolve
from judging.tasks import get_task, task_names
from judging.types import JudgeRequest, LabelledExample
from tests.judging.made_up import card

CRITERION = get_task("criterion")


def ask(**fields: Any) -> JudgeRequest:
    row = {"task": "criterion", "criteria": "is short", "response": "No."} | fields
    return JudgeRequest.model_validate(row)


def shown(request: JudgeRequest) -> list[tuple[str, str]]:
    return [(field.heading, field.text) for field in CRITERION.item(request)]


def test_question_and_reference_may_be_left_out() -> None:
    request = ask()
    CRITERION.check(request)
    assert CRITERION.rubric(request) == "plain"
    assert shown(request) == [("Criterion", "is short"), ("Response", "No.")]
    whole = ask(question="Why?", criteria=["a", " ", "b"], references=["x", "y"])
    assert CRITERION.rubric(whole) == "reference"
    assert shown(whole) == [
        ("Question", "Why?"),
        ("Reference", "x; y"),
        ("Criterion", "a"),
        ("Criterion", "b"),
        ("Response", "No."),
    ]
    any_of = whole.model_copy(update={"reference_mode": "any"})
    assert ("Reference", "x / y") in shown(any_of)


@pytest.mark.parametrize("criteria", [[], "", [" "]])
def test_a_criterion_is_needed(criteria: Any) -> None:
    with pytest.raises(FieldError) as caught:
        CRITERION.check(ask(question="Why?", criteria=criteria))
    assert caught.value.field == "criteria"


@pytest.mark.parametrize("name", [name for name in task_names() if name != "criterion"])
def test_other_tasks_still_need_their_question(name: str) -> None:
    """All but one, in which the options say what was asked."""
    task = get_task(name)
    request = JudgeRequest.model_validate({**task.example_row(), "question": " "})
    if name == "truthful-option":
        return task.check(request)
    with pytest.raises(FieldError) as caught:
        task.check(request)
    assert caught.value.field == "question"
    return None


def test_both_rubrics_tell_the_labels_and_one_tells_of_the_reference() -> None:
    plain, reference = (CRITERION.instruction(rubric) for rubric in ("plain", "reference"))
    assert set(CRITERION.rows_by_rubric()) == {"plain", "reference"}
    assert CRITERION.labels("plain") == ("Pass", "Fail")
    assert all(label in text for label in ("Pass", "Fail") for text in (plain, reference))
    assert "reference" not in plain.casefold()
    assert "reference" in reference.casefold()


def test_an_empty_response_fails_and_the_score_is_the_probability_of_pass() -> None:
    ruling = CRITERION.rule(ask(response=" \u200b"))
    assert ruling and (ruling.label, ruling.score) == ("Fail", 0.0)
    assert CRITERION.rule(ask(response="PASS")) is None
    assert CRITERION.parse("**PASS**.", "plain") == "Pass"
    assert CRITERION.parse("It does not pass", "plain") is None
    assert CRITERION.score({"Pass": 0.3, "Fail": 0.7}) == 0.3
    assert CRITERION.score_range == (0.0, 1.0)


def test_rows_without_a_question_are_told_apart_by_their_responses() -> None:
    """One criterion may be asked of any number of texts, which are not alike for that."""
    rows = [
        LabelledExample.model_validate({**ask(response=text).model_dump(), "label": "Pass"})
        for text in ("The tram leaves at nine.", "Bees make wax.", "Bees make wax.")
    ]
    one, other, same = cluster_examples(rows)
    assert one != other == same
    assert question_hash(rows[0]) != question_hash(rows[1]) == question_hash(rows[2])
    assert ask(question="Why?").asked == "Why?"


def test_a_judge_that_may_answer_untrained_takes_every_rubric() -> None:
    other = card(hieval_qs=("plain/any",))
    for request in (ask(), ask(references=["x"])):
        with pytest.raises(FieldError):
            resolve(request, "qs", ("hieval-qs",), other)
        allowed = resolve(request, "qs", ("hieval-qs", "criterion"), other)
        assert allowed.mode == "score"
    with pytest.raises(FieldError):
        resolve(ask(), "mine", ("criterion",), card(criterion=("reference",)))
