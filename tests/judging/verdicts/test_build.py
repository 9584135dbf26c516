"""Verdicts on pairs."""

from typing import Any

import pytest

from judging.tasks import get_task
from judging.types import JudgeRequest, Pass, Verdict
from judging.verdicts.build import make_verdict, merge_passes

REQUEST = JudgeRequest(task="truthful-pair", question="q", responses=("nine", "ten"))
FIRST = "Response A is right; Response B is wrong."
SECOND = "Response B is right; Response A is wrong."


def shown(a: float, b: float, critique: str | None = None, **fields: Any) -> Pass:
    posterior = {"A": a, "B": b, "None": 1 - a - b}
    return Pass.model_validate({"posterior": posterior, "critique": critique, **fields})


def verdict(*passes: Pass, note: str | None = None) -> Verdict:
    task = get_task("truthful-pair")
    return make_verdict(
        REQUEST,
        task,
        passes,
        merge_passes(task, passes),
        label_mass=1,
        posterior="exact",
        truncated_input=False,
        note=note,
    )


def test_the_critique_is_that_of_the_surer_pass_that_agrees() -> None:
    given, swapped = shown(0.9, 0.05, FIRST), shown(0.01, 0.95, SECOND, order="swapped")
    merged = verdict(given, swapped)
    assert (merged.label, merged.needs_review, merged.message) == ("A", False, None)
    assert merged.critique == FIRST, "the swapped pass decides; its names are turned back"
    assert merged.passes[1].critique == SECOND, "passes keep their texts as shown"
    assert verdict(shown(0.99, 0.0, "A is best."), swapped).critique == "A is best."


@pytest.mark.parametrize(("given", "label"), [((0.6, 0.3), "B"), ((0.99, 0.0), "A")])
def test_where_the_orders_disagree_the_critique_is_of_the_one_that_decides(
    given: tuple[float, float], label: str
) -> None:
    # In the swapped order A is the response that the request calls B.
    merged = verdict(shown(*given, FIRST), shown(0.9, 0.05, FIRST, order="swapped"))
    assert (merged.label, merged.needs_review) == (label, True)
    assert merged.critique == (SECOND if label == "B" else FIRST)
    assert str(merged.message).startswith(
        "the two orders disagree: the label is A with A shown first, B with B shown first"
    )


def test_a_pass_that_agrees_goes_before_one_that_is_surer_of_another_label() -> None:
    # The request's A gets .45 of the first pass, which says B, and .4 of the second, which says A.
    merged = verdict(
        shown(0.45, 0.5, "one"), shown(0.2, 0.4, "Response B is right.", order="swapped")
    )
    assert merged.label == "A"
    assert merged.critique == "Response A is right."


def test_all_that_is_to_know_stands_in_one_line() -> None:
    tie = verdict(shown(0.46, 0.45))
    assert not tie.needs_review
    assert tie.message == "A (0.46) and B (0.45) are about equally likely"
    assert verdict(shown(0.5, 0.4)).message is None
    cut = verdict(shown(0.46, 0.45, "text", finish_reason="length"), note="untrained")
    assert cut.message == f"the critique hit its budget; untrained; {tie.message}"
