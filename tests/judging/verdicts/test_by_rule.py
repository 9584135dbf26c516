"""The rules of tasks as a grader."""

from __future__ import annotations

import pytest

from evaluation.baselines import verdicts_of_rules
from judging.types import JudgeRequest, LabelledExample
from judging.verdicts.by_rule import RuleGrader


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
    [verdict] = RuleGrader().grade([simplevqa(response)])
    assert (verdict.id, verdict.status, verdict.label) == ("1", "scored", label)


def test_a_blank_reference_occurs_in_no_response() -> None:
    request = simplevqa("Rembrandt").model_copy(update={"references": (" ", "Vermeer")})
    [verdict] = RuleGrader().grade([request])
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
    [verdict] = RuleGrader().grade([request])
    assert verdict.label == label
    assert verdict.status == ("scored" if label else "abstain")


@pytest.mark.parametrize("key", ["many", "40-50 mm", "40 or more", "10, 20", "40 (35 to 45)"])
def test_a_key_that_is_no_single_number_is_left_to_a_judge(key: str) -> None:
    request = JudgeRequest(
        task="chartom-fact", variant="number", question="?", references=(key,), responses=("40",)
    )
    [verdict] = RuleGrader().grade([request])
    assert (verdict.status, verdict.label) == ("abstain", None)


def test_a_key_is_read_with_its_thousands_and_its_unit() -> None:
    request = JudgeRequest(
        task="chartom-fact",
        variant="number",
        question="?",
        references=("1,200 km",),
        responses=("1200000 m",),
    )
    [verdict] = RuleGrader().grade([request])
    assert verdict.label == "Correct"


def test_examples_of_other_tasks_get_no_label() -> None:
    row = LabelledExample(**simplevqa("Rembrandt").model_dump(), label="Incorrect")
    other = row.model_copy(update={"task": "hieval-qs"})
    by_rules = verdicts_of_rules([row, other])
    assert by_rules
    assert [verdict.label for verdict in by_rules] == ["Incorrect", None]
    assert verdicts_of_rules([other]) is None
