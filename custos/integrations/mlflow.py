"""A scorer for ``mlflow.genai``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mlflow.entities import AssessmentSource, AssessmentSourceType, Feedback
from mlflow.genai.scorers import scorer

from custos.integrations._core import Grader
from judging.types import AnyJudge


def answer_scorer(judge: AnyJudge | str, *, name: str = "answer", **fields: Any) -> Any:
    """Make a scorer that compares ``outputs`` with ``expectations``: ``yes`` or ``no``.

    ``expectations`` hold ``expected_response``, or the list ``expected_facts``, all of which
    ``outputs`` must give.

    ``judge`` and ``fields`` are those of :class:`~custos.integrations._core.Grader`.
    """
    grader = Grader(judge, **fields)

    @scorer(name=name)
    def score(inputs: Any, outputs: Any, expectations: Mapping[str, Any]) -> Feedback:
        reference = expectations.get("expected_response")
        mode = {}
        if reference is None:
            reference, mode = expectations.get("expected_facts"), {"reference_mode": "all"}
        grade = grader.grade(inputs, reference, outputs, **mode)
        judge_name = grade.verdict.judge_name or "custos"
        return Feedback(
            value="yes" if grade.passed else "no",
            rationale=grade.reason,
            source=AssessmentSource(AssessmentSourceType.LLM_JUDGE, judge_name),
            metadata={key: json.dumps(value) for key, value in grade.metadata.items()},
        )

    return score
