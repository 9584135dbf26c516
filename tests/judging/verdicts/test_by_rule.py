"""Verdicts of rules."""

import pytest

from evaluation.baselines import verdicts_of_rules
from judging.types import JudgeRequest, LabelledExample
from judging.verdicts.by_rule import RuleGrader
from tests.judging.made_up import ask


def simplevqa(response: str) -> JudgeRequest:
    fields = {"task": "simplevqa", "variant": "english", "references": ("Johannes Vermeer",)}
    return ask(response, id="1", question="Who painted this?", **fields)


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
    blank = simplevqa("Rembrandt").model_copy(update={"references": (" ", "Vermeer")})
    assert next(RuleGrader().grade([blank])).label == "Incorrect"


@pytest.mark.parametrize(
    ("variant", "references", "choices", "response", "label"),
    [
        ("number", ("40 mm",), (), "4 cm", "Correct"),
        ("number", ("1,200 km",), (), "1200000 m", "Correct"),
        ("number", ("40%",), (), "60 %", "Incorrect"),
        ("number", ("40 mm",), (), "41 or 90", None),
        # A key that is no single number is left to a judge.
        *(("number", (key,), (), "40", None) for key in ("many", "40-50 mm", "40 or more")),
        *(("number", (key,), (), "40", None) for key in ("10, 20", "40 (35 to 45)")),
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
    given = {"task": "chartom-fact", "variant": variant, "choices": choices}
    question = "Rank them from largest to smallest." if variant == "ranking" else "Which?"
    request = ask(response, question=question, references=references, **given)
    [verdict] = RuleGrader().grade([request])
    assert verdict.label == label
    assert verdict.status == ("scored" if label else "abstain")


def test_examples_of_other_tasks_get_no_label() -> None:
    row = LabelledExample(**simplevqa("Rembrandt").model_dump(), label="Incorrect")
    other = row.model_copy(update={"task": "hieval-qs"})
    by_rules = verdicts_of_rules([row, other])
    assert by_rules
    assert [verdict.label for verdict in by_rules] == ["Incorrect", None]
    assert verdicts_of_rules([other]) is None
