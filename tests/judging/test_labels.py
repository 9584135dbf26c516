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


EA = get_task("hieval-ea").labels("plain/all")


@pytest.mark.parametrize(
    ("text", "labels", "meant"),
    [
        ("correct", GRADES, "Correct"),
        ("RIGHT", GRADES, "Correct"),
        (" true. ", GRADES, "Correct"),
        ("1", GRADES, None),
        ("0.5", GRADES, None),
        ("positive", GRADES, None),
        ("partly", GRADES, "Partial"),
        ("partly", ("Correct", "Wrong"), None),
        ("wrong", ("Named", "Missed"), None),
        ("no", GRADES, "Wrong"),
        ("sort of", GRADES, None),
        ("", GRADES, None),
        ("first", ("A", "B", "None"), None),  # a place is no response of a pair
        ("2", ("A", "B", "None"), None),
        ("wrong;reasoning_error", EA, "Wrong; Reasoning Error"),
        ("wrong", EA, None),
    ],
)
def test_words_for_labels(text: str, labels: tuple[str, ...], meant: str | None) -> None:
    assert likely_label(text, labels) == meant


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


@pytest.mark.parametrize("name", task_names())
def test_every_declared_label_is_found_in_lower_case(name: str) -> None:
    task = get_task(name)
    for rubric in ("plain/all", "plain/any") if "hieval" in name else task.variants:
        for label in task.labels(rubric):
            assert likely_label(label.lower(), task.labels(rubric)) == label


def test_the_option_can_be_copied_into_a_shell() -> None:
    option = labels_option(dict.fromkeys(("it's so-so", "fine; $(rm)"), GRADES))
    assert shlex.split(option or "") == ["--labels", "it's so-so=?,fine; $(rm)=?"]
    for label in ("a,b", "a=b", "two\nlines", "\x1b[31m"):
        assert labels_option({label: GRADES}) is None


def test_normalised_probabilities_sum_to_one_however_small_they_are() -> None:
    found = normalise({"A": -4000.0, "B": -4000.0 + math.log(3), "C": -math.inf})
    assert found == pytest.approx({"A": 0.25, "B": 0.75, "C": 0.0})
    logprobs = log_probabilities({"A": 1.0, "B": 0.0})
    assert logprobs["A"] == 0
    assert -1000 < logprobs["B"] < -500, "the logarithm of zero is finite"


def test_a_score_has_the_probability_of_all_its_types_and_is_decided_before_them() -> None:
    typed = {"Correct": 0.2, "Wrong; A": 0.3, "Wrong; B": 0.5}
    found = score_logprobs({label: math.log(p) for label, p in typed.items()})
    assert found == pytest.approx({"Correct": math.log(0.2), "Wrong": math.log(0.8)})
    assert best_label({"Correct": 0.4, "Wrong; A": 0.25, "Wrong; B": 0.35}) == "Wrong; B"
    assert best_label({"Correct": 0.3, "Wrong": 0.7}) == "Wrong"
