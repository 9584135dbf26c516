"""A metric for tasks of lighteval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod

from custos.integrations._core import Grader
from judging.types import AnyJudge


class _Judged(SampleLevelComputation):
    """Scores of generations, all asked for together."""

    def __init__(self, grader: Grader) -> None:
        self.grader = grader

    def compute(
        self, responses: Sequence[ModelResponse], docs: Sequence[Doc], **_: Any
    ) -> list[float]:
        """Return 1, 0.5 or 0 for each generation, and NaN without a verdict on it."""
        requests = [
            self.grader.request(doc.query, doc.get_golds(), response.final_text[0])
            for response, doc in zip(responses, docs, strict=True)
        ]
        return [
            math.nan if grade is None else grade.score for grade in self.grader.grades(requests)
        ]


def answer_metric(
    judge: AnyJudge | str, *, name: str = "judged", **fields: Any
) -> SampleLevelMetric:
    """Make a metric that compares a generation with the gold choices: the mean of 1, 0.5 and 0.

    ``judge`` and ``fields`` are those of :class:`~custos.integrations._core.Grader`.
    """
    return SampleLevelMetric(
        metric_name=name,
        higher_is_better=True,
        category=SamplingMethod.GENERATIVE,
        sample_level_fn=_Judged(Grader(judge, **fields)),
        corpus_level_fn=np.mean,
        batched_compute=True,
    )
