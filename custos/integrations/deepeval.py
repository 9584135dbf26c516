"""A metric for deepeval."""

from __future__ import annotations

from typing import Any

from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase, SingleTurnParams

from custos.integrations._core import Grade, Grader
from judging.types import AnyJudge


class AnswerMetric(BaseMetric):
    """A comparison of ``actual_output`` with ``expected_output``: 1, 0.5 or 0.

    ``judge`` and ``fields`` are those of :class:`~custos.integrations._core.Grader`; ``threshold``
    is the smallest score that passes: at 0.5 a partly right output passes too.
    """

    _required_params = [
        SingleTurnParams.INPUT,
        SingleTurnParams.ACTUAL_OUTPUT,
        SingleTurnParams.EXPECTED_OUTPUT,
    ]
    score: float | None
    reason: str | None
    success: bool | None

    def __init__(
        self, judge: Grader | AnyJudge | str, threshold: float = 1.0, **fields: Any
    ) -> None:
        # deepeval copies a metric by these attributes, so that its judge may be a grader.
        self.judge = judge if isinstance(judge, Grader) else Grader(judge, **fields)
        self.threshold = threshold

    def measure(self, test_case: LLMTestCase, *args: Any, **options: Any) -> float:
        """Grade a test case; ``CustosError`` if there is no verdict."""
        return self._take(self.judge.grade(*self._begin(test_case)))

    async def a_measure(self, test_case: LLMTestCase, *args: Any, **options: Any) -> float:
        """Grade a test case as :meth:`measure`."""
        return self._take(await self.judge.agrade(*self._begin(test_case)))

    def _begin(self, test_case: LLMTestCase) -> tuple[str, str, str]:
        # If there is no verdict, that on the test case before must not be taken for it.
        self.score = self.reason = self.success = None
        return test_case.input, test_case.expected_output, test_case.actual_output

    def _take(self, grade: Grade) -> float:
        self.score, self.reason = grade.score, grade.reason
        self.evaluation_model, self.confidence = grade.verdict.judge_name, grade.verdict.confidence
        # Nothing passes on the threshold alone: it may be 0.
        self.success = 0 < grade.score >= self.threshold
        return grade.score

    def is_successful(self) -> bool:
        """Tell whether the last test case passed."""
        return self.error is None and bool(self.success)

    @property
    def __name__(self) -> str:
        return "Answer"
