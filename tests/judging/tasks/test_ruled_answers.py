"""What quick scores decide by rule: final answers that are mathematics or options."""

from __future__ import annotations

import pytest

from judging.tasks import get_task
from judging.types import JudgeRequest


def ruled(references: tuple[str, ...], response: str, **fields: object) -> str | None:
    request = JudgeRequest.model_validate(
        {
            "task": "hieval-qs",
            "question": "What is it?",
            "references": references,
            "reference_mode": "any",
            "responses": (response,),
            **fields,
        }
    )
    ruling = get_task("hieval-qs").rule(request)
    return ruling.label if ruling else None


WORK = "<think>It is 3? Or 4.</think>First I try 1/3, which is too small.\n\n"


@pytest.mark.parametrize(
    ("references", "response", "label"),
    [
        ((r"\frac{1}{2}",), WORK + r"The answer is $\boxed{0.5}$.", "Correct"),
        ((r"\frac{1}{2}",), WORK + r"The answer is $\boxed{0.7}$.", "Wrong"),
        (("3", r"\frac{1}{2}"), WORK + "Answer: 50%", "Correct"),
        (("1/2",), WORK + r"$\boxed{0.5}$ or $\boxed{0.7}$", None),
        (("1/2",), WORK + "So the next step", None),
        (("one half",), WORK + r"$\boxed{0.5}$", None),
        (("19",), "19", None),  # a short answer, of which a judge gives the probability
        (("19",), WORK + "Answer: 19", "Correct"),
    ],
)
def test_mathematics(references: tuple[str, ...], response: str, label: str | None) -> None:
    assert ruled(references, response) == label


def test_what_may_be_partly_right_or_near_is_left_to_a_judge() -> None:
    subset = ((r"\{1, 2\}",), WORK + r"$\boxed{\{1\}}$")
    assert ruled(*subset) == "Wrong"
    assert ruled(*subset, reference_mode="all") is None
    assert ruled(("1/2", "1/3"), WORK + r"$\boxed{1/2}$", reference_mode="all") is None
    near = (("100 cm",), WORK + r"$\boxed{104\text{ cm}}$")
    assert ruled(*near) == "Wrong"
    assert ruled(*near, variant="tolerance") is None


@pytest.mark.parametrize(
    ("response", "label"),
    [
        (WORK + "Final answer: B", "Correct"),
        (WORK + r"$\boxed{\text{A}}$", "Wrong"),
        (WORK + "**Perth (B)**", "Correct"),
        (WORK + "Perth (A)", None),
        ("It may be A.\n\nAnswer: B or A", None),
    ],
)
def test_options(response: str, label: str | None) -> None:
    assert ruled(("Perth",), response, choices=("Sydney", "Perth")) == label
