"""Arithmetic on label probabilities at its edges."""

from __future__ import annotations

import math
import shlex

import pytest

from judging.labels import (
    best_label,
    labels_option,
    likely_label,
    log_probabilities,
    normalise,
    score_logprobs,
)
from judging.tasks import get_task, task_names

GRADES = ("Correct", "Partial", "Wrong")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("correct", "Correct"),
        ("RIGHT", "Correct"),
        (" true. ", "Correct"),
        ("1", None),
        ("0.5", None),
        ("1.0", None),
        ("positive", None),
        ("partly", "Partial"),
        ("Incorrect", "Wrong"),
        ("no", "Wrong"),
        ("sort of", None),
        ("", None),
    ],
)
def test_words_for_grades(text: str, meant: str | None) -> None:
    assert likely_label(text, GRADES) == meant


@pytest.mark.parametrize("text", ["first", "second", "1", "2"])
def test_a_place_is_no_response_of_a_pair(text: str) -> None:
    assert likely_label(text, ("A", "B", "None")) is None


@pytest.mark.parametrize(
    ("labels", "column", "option"),
    [
        (GRADES, "is_correct", "--labels true=Correct,no=Wrong"),
        (GRADES, "verdict", "--labels true=Correct,no=Wrong"),
        (GRADES, "is_wrong", "--labels 'true=?,no=?'"),
        (("Faithful", "Hallucinated"), "verdict", "--labels 'true=?,no=?'"),
    ],
)
def test_truth_values_of_columns(labels: tuple[str, ...], column: str, option: str) -> None:
    """A column that asks for the fault, or a task about one, leaves open what "true" means."""
    assert labels_option(dict.fromkeys(("true", "no"), labels), column) == option


def test_a_meaning_that_the_rubric_lacks_has_no_label() -> None:
    assert likely_label("partly", ("Correct", "Wrong")) is None
    assert likely_label("wrong", ("Named", "Missed")) is None


def test_other_spellings_of_labels_with_an_error_type() -> None:
    labels = get_task("hieval-ea").labels("plain/all")
    assert likely_label("wrong;reasoning_error", labels) == "Wrong; Reasoning Error"
    assert likely_label("wrong", labels) is None


@pytest.mark.parametrize("name", task_names())
def test_every_declared_label_is_found_in_lower_case(name: str) -> None:
    task = get_task(name)
    for rubric in ("plain/all", "plain/any") if "hieval" in name else task.variants:
        for label in task.labels(rubric):
            assert likely_label(label.lower(), task.labels(rubric)) == label


def test_the_option_can_be_copied_into_a_shell() -> None:
    assert (
        labels_option(dict.fromkeys(("right", "wrong"), GRADES))
        == "--labels right=Correct,wrong=Wrong"
    )
    option = labels_option(dict.fromkeys(("it's so-so", "fine; $(rm)"), GRADES))
    assert option is not None
    assert shlex.split(option) == ["--labels", "it's so-so=?,fine; $(rm)=?"]


@pytest.mark.parametrize("label", ["a,b", "a=b", "two\nlines", "\x1b[31m"])
def test_no_option_for_labels_that_it_cannot_hold(label: str) -> None:
    assert labels_option({label: GRADES}) is None


def test_normalised_probabilities_sum_to_one_however_small_they_are() -> None:
    found = normalise({"A": -4000.0, "B": -4000.0 + math.log(3), "C": -math.inf})
    assert found == pytest.approx({"A": 0.25, "B": 0.75, "C": 0.0})


def test_the_logarithm_of_zero_is_finite() -> None:
    logprobs = log_probabilities({"A": 1.0, "B": 0.0})
    assert logprobs["A"] == 0
    assert -1000 < logprobs["B"] < -500


def test_a_score_has_the_probability_of_all_its_types() -> None:
    typed = {"Correct": math.log(0.2), "Wrong; A": math.log(0.3), "Wrong; B": math.log(0.5)}
    assert score_logprobs(typed) == pytest.approx(
        {"Correct": math.log(0.2), "Wrong": math.log(0.8)}
    )


def test_the_score_is_decided_before_its_type() -> None:
    split = {"Correct": 0.4, "Wrong; A": 0.25, "Wrong; B": 0.35}
    assert best_label(split) == "Wrong; B"
    assert best_label({"Correct": 0.3, "Wrong": 0.7}) == "Wrong"
