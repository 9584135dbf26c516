"""Scoring for tasks of lm_eval, by ``process_results``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from custos.integrations._core import Grader, NoLabel, log
from judging.verdicts.build import AnyJudge

ProcessResults = Callable[[Mapping[str, Any], Sequence[Any]], dict[str, float]]


def answer_scorer(
    judge: AnyJudge | str,
    question: str = "question",
    reference: str = "answer",
    *,
    metric: str = "judged",
    **fields: Any,
) -> ProcessResults:
    """Make a task's ``process_results``, which compares a generation with a reference.

    Args:
        judge: As for :class:`~custos.integrations._core.Grader`, whose ``fields`` these are too.
        question: Column of the data set that holds the question.
        reference: Column that holds the reference, or a list of them.
        metric: Name of the metric in ``metric_list``.
        fields: Fields of every request.

    Returns:
        A function that returns 1, 0.5 or 0; NaN, which the mean shows, and a warning if there is
        no verdict on a row.
    """
    grader = Grader(judge, **fields)

    def process_results(doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, float]:
        [response, *_] = results
        if not isinstance(response, str):  # a filter may leave a list
            [response, *_] = response
        try:
            return {metric: grader.grade(doc[question], doc[reference], response).score}
        except NoLabel as error:
            log.warning("no verdict: %s", error)
            return {metric: math.nan}

    return process_results
