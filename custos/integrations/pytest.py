"""An assertion for tests, of pytest and others."""

from __future__ import annotations

from typing import Any

from custos.integrations._core import Grade, Grader
from judging.verdicts.build import AnyJudge


def assert_judged(
    response: str,
    *,
    question: str,
    reference: str | list[str],
    judge: AnyJudge | str,
    **fields: Any,
) -> Grade:
    """Assert that a judge finds a response wholly right.

    Args:
        response: What is tested.
        question: The question that it answers.
        reference: A right answer, or several of which one is enough.
        judge: As for :class:`~custos.integrations._core.Grader`.
        fields: Further fields of the request, such as ``reference_mode``.

    Returns:
        The grade, for further assertions.

    Raises:
        AssertionError: If it is wrong, or right in part.
        CustosError: If there is no verdict.
    """
    __tracebackhide__ = True
    grade = Grader(judge, **fields).grade(question, reference, response)
    if not grade.passed:
        raise AssertionError(f"{grade.reason}\nquestion: {question}\nresponse: {response}")
    return grade
