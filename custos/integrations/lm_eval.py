"""Scoring for tasks of lm_eval, by ``process_results``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from custos.integrations._core import Grader, NoLabel, log
from judging.types import AnyJudge

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

    A generation is worth 1, 0.5 or 0; without a verdict NaN, which the mean shows, and there is a
    warning. ``question`` and ``reference`` name columns of the data set, where a reference may be
    a list, and ``metric`` the metric in ``metric_list``. ``judge`` and ``fields`` are those of
    :class:`~custos.integrations._core.Grader`.
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
