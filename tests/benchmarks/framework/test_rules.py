"""The rules of benchmarks as a grader."""

from __future__ import annotations

import pytest

from benchmarks.framework.base import get_benchmark
from benchmarks.framework.rules import RuleGrader, verdicts_of_rules
from judging.errors import CustosError, FieldError
from judging.types import JudgeRequest, LabelledExample


def simplevqa(response: str, reference: str = "Johannes Vermeer") -> JudgeRequest:
    return JudgeRequest(
        id="1",
        task="simplevqa",
        variant="english",
        question="Who painted this?",
        references=(reference,),
        responses=(response,),
    )


@pytest.mark.parametrize(
    ("response", "label"),
    [
        ("It was johannes vermeer!", "Correct"),
        ("Rembrandt", "Incorrect"),
        ("I don't know.", "Not attempted"),
        ("抱歉，我不知道。", "Not attempted"),
        ("I am not sure, but I would say Johannes Vermeer.", "Correct"),
    ],
)
def test_simplevqa(response: str, label: str) -> None:
    [verdict] = RuleGrader(get_benchmark("simplevqa")).grade([simplevqa(response)])
    assert (verdict.id, verdict.status, verdict.label) == ("1", "scored", label)


def test_a_blank_reference_occurs_in_no_response() -> None:
    request = simplevqa("Rembrandt").model_copy(update={"references": (" ",)})
    [verdict] = RuleGrader(get_benchmark("simplevqa")).grade([request])
    assert verdict.label == "Incorrect"


@pytest.mark.parametrize(
    ("variant", "references", "choices", "response", "label"),
    [
        ("number", ("40 mm",), (), "41 mm", "Correct"),
        ("number", ("40 mm",), (), "4 cm", "Correct"),
        ("number", ("40%",), (), "60 %", "Incorrect"),
        ("number", ("40 mm",), (), "41 or 90", None),
        ("choice", ("Elm",), ("Ash", "Elm"), "2", "Correct"),
        ("choice", ("Elm",), ("Ash", "Elm"), "Ash", "Incorrect"),
        ("ranking", ("Ash", "Elm", "Fir"), (), "Ash, Elm, Fir", "Correct"),
        ("ranking", ("Ash", "Elm", "Fir"), (), "no idea", None),
    ],
)
def test_chartom_reads_requests_as_it_reads_items(
    variant: str,
    references: tuple[str, ...],
    choices: tuple[str, ...],
    response: str,
    label: str | None,
) -> None:
    request = JudgeRequest(
        task="chartom-fact",
        variant=variant,
        question="Rank them from largest to smallest." if variant == "ranking" else "Which?",
        references=references,
        choices=choices,
        responses=(response,),
    )
    [verdict] = RuleGrader(get_benchmark("chartom")).grade([request])
    assert verdict.label == label
    assert verdict.status == ("scored" if label else "abstain")


def test_a_key_that_is_no_number_is_named() -> None:
    request = JudgeRequest(
        task="chartom-fact", variant="number", question="?", references=("many",), responses=("5",)
    )
    with pytest.raises(FieldError, match="'many' is not a number"):
        get_benchmark("chartom").rule_label(request)


def test_a_benchmark_without_rules_is_refused() -> None:
    with pytest.raises(CustosError, match="'charthal' has no rules; chartom, simplevqa have some"):
        RuleGrader(get_benchmark("charthal"))


def test_examples_of_other_tasks_get_no_label() -> None:
    row = LabelledExample(**simplevqa("Rembrandt").model_dump(), label="Incorrect")
    other = row.model_copy(update={"task": "hieval-qs"})
    by_rules = verdicts_of_rules([row, other])
    assert by_rules
    assert [verdict.label for verdict in by_rules] == ["Incorrect", None]
    assert verdicts_of_rules([other]) is None
