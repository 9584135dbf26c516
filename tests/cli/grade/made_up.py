"""Rows to grade, and files of them."""

from collections.abc import Callable
from typing import Any

from judging.types import JudgeRequest, Verdict
from tests.serve.made_up import FakeJudge, row

Run = Callable[..., Any]


def many(count: int) -> list[dict[str, Any]]:
    return [row(f"Paris {number}" if number % 3 else "Rome") for number in range(count)]


def failing_on_rome(judge: FakeJudge) -> Callable[[JudgeRequest, float], Verdict]:
    """The judge's way of answering, but for one response."""
    answer = judge.verdict_on

    def answer_or_fail(request: JudgeRequest, confidence: float) -> Verdict:
        if request.response == "Rome":
            return Verdict(id=request.id, status="judge_error", message="no such picture")
        return answer(request, confidence)

    return answer_or_fail
