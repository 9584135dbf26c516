"""An evaluator for openevals, LangSmith and AgentEvals."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from custos.integrations._core import Grade, Grader
from judging.types import AnyJudge

KEY = "correctness"

Evaluator = Callable[..., dict[str, Any]]
AsyncEvaluator = Callable[..., Coroutine[Any, Any, dict[str, Any]]]


def answer_evaluator(judge: AnyJudge | str, *, key: str = KEY, **fields: Any) -> Evaluator:
    """Make an evaluator that compares ``outputs`` with ``reference_outputs``.

    Its result has ``key``, ``score`` (1, 0.5 or 0), ``comment`` and ``metadata``; it raises
    ``CustosError`` if there is no verdict. ``judge`` and ``fields`` are those of
    :class:`~custos.integrations._core.Grader`.
    """
    grader = Grader(judge, **fields)

    def evaluate(*, inputs: Any, outputs: Any, reference_outputs: Any, **_: Any) -> dict[str, Any]:
        return _result(key, grader.grade(inputs, reference_outputs, outputs))

    return evaluate


def async_answer_evaluator(
    judge: AnyJudge | str, *, key: str = KEY, **fields: Any
) -> AsyncEvaluator:
    """Make the same evaluator as a coroutine function."""
    grader = Grader(judge, **fields)

    async def evaluate(
        *, inputs: Any, outputs: Any, reference_outputs: Any, **_: Any
    ) -> dict[str, Any]:
        return _result(key, await grader.agrade(inputs, reference_outputs, outputs))

    return evaluate


def _result(key: str, grade: Grade) -> dict[str, Any]:
    return {"key": key, "score": grade.score, "comment": grade.reason, "metadata": grade.metadata}
