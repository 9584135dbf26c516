"""An assertion for promptfoo, of the type ``python``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from custos.integrations._core import Grader
from judging.verdicts.build import AnyJudge

Assertion = Callable[[Any, Mapping[str, Any]], dict[str, Any]]


def answer_assertion(
    judge: AnyJudge | str, question: str = "question", reference: str = "reference", **fields: Any
) -> Assertion:
    """Make an assertion that compares an output with a reference.

    Args:
        judge: As for :class:`~custos.integrations._core.Grader`, whose ``fields`` these are too.
        question: Variable of the test that holds the question.
        reference: Variable that holds the reference, or a list of them.
        fields: Fields of every request.

    Returns:
        A function of the output and promptfoo's context. Only a wholly right output passes;
        ``CustosError``, which promptfoo shows as a failed test, if there is no verdict.
    """
    grader = Grader(judge, **fields)

    def get_assert(output: Any, context: Mapping[str, Any]) -> dict[str, Any]:
        variables = context["vars"]
        grade = grader.grade(variables.get(question), variables.get(reference), output)
        return {"pass": grade.passed, "score": grade.score, "reason": grade.reason}

    return get_assert
