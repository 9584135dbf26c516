"""An assertion for promptfoo, of the type ``python``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from custos.integrations._core import Grader
from judging.types import AnyJudge

Assertion = Callable[[Any, Mapping[str, Any]], dict[str, Any]]


def answer_assertion(
    judge: AnyJudge | str, question: str = "question", reference: str = "reference", **fields: Any
) -> Assertion:
    """Make an assertion that compares an output with a reference.

    Only a wholly right output passes. Without a verdict it raises ``CustosError``, which promptfoo
    shows as a failed test. ``question`` and ``reference`` name variables of the test; a reference
    may be a list. ``judge`` and ``fields`` are those of
    :class:`~custos.integrations._core.Grader`.
    """
    grader = Grader(judge, **fields)

    def get_assert(output: Any, context: Mapping[str, Any]) -> dict[str, Any]:
        variables = context["vars"]
        grade = grader.grade(variables.get(question), variables.get(reference), output)
        return {"pass": grade.passed, "score": grade.score, "reason": grade.reason}

    return get_assert
