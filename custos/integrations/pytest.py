"""An assertion for tests, of pytest and others."""

from __future__ import annotations

from typing import Any

from custos.integrations._core import Grade, Grader
from judging.types import AnyJudge


def assert_judged(
    response: str,
    *,
    question: str,
    reference: str | list[str],
    judge: AnyJudge | str,
    **fields: Any,
) -> Grade:
    """Assert that a judge finds a response wholly right; return the grade.

    Of several references one is enough. ``judge`` and ``fields``, such as ``reference_mode``, are
    those of :class:`~custos.integrations._core.Grader`. Raises ``AssertionError`` if the response
    is wrong, or right in part, and ``CustosError`` if there is no verdict.
    """
    __tracebackhide__ = True
    grade = Grader(judge, **fields).grade(question, reference, response)
    if not grade.passed:
        raise AssertionError(f"{grade.reason}\nquestion: {question}\nresponse: {response}")
    return grade
