"""A metric for ragas."""

from __future__ import annotations

from typing import Any

from ragas.metrics import MetricResult, numeric_metric

from custos.integrations._core import Grader
from judging.types import AnyJudge


def answer_metric(judge: AnyJudge | str, *, name: str = "answer", **fields: Any) -> Any:
    """Make a numeric metric that compares ``response`` with ``reference``: 1, 0.5 or 0.

    ``judge`` and ``fields`` are those of :class:`~custos.integrations._core.Grader`.
    """
    grader = Grader(judge, **fields)

    @numeric_metric(name=name, allowed_values=(0.0, 1.0))
    async def measure(user_input: str, response: str, reference: str) -> Any:
        grade = await grader.agrade(user_input, reference, response)
        return MetricResult(value=grade.score, reason=grade.reason)

    return measure
