import shlex

import pytest

from judging.labels import labels_option, likely_label
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
