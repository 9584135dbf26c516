"""Screening for difficulty: questions that every one of several models answers are dropped.

SimpleVQA keeps a question only if at least one of four models answers it wrongly (section 2.3).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from data_prep.construction.responses import ANSWERER, ITEM
from data_prep.construction.steps.base import Row, StepRow
from judging.errors import CustosError
from judging.tasks import get_task
from judging.types import JudgeRequest

RIGHT_ANSWERS = "right_answers"
"""Field of a kept question: the models that answer it, of all that were asked."""


@dataclass
class Screened:
    """The outcome of a screening."""

    kept: list[Row] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    """Ids of the questions that all models answer."""
    unscreened: list[str] = field(default_factory=list)
    """Ids of the questions that are neither kept nor dropped: responses or verdicts are missing."""


def screen(
    items: Sequence[StepRow],
    responses: Sequence[JudgeRequest],
    verdicts: Mapping[str, Sequence[str | None]],
    num_models: int,
) -> Screened:
    """Drop the questions that all models answer.

    A response is right if all judges give it the best label of its task. A question with one wrong
    answer is kept, whatever is missing of the others.

    Args:
        items: The questions.
        responses: Rows of ``write_responses``.
        verdicts: Labels of the judges by id of a response.
        num_models: How many models must have answered a question for it to be dropped.

    Raises:
        CustosError: If a response is to no question, or has no verdict.
    """
    known = {item.id for item in items}
    rights: dict[str, dict[str, bool | None]] = defaultdict(dict)
    for response in responses:
        name = str(response.metadata.get(ITEM))
        if name not in known:
            raise CustosError(f"response '{response.id}': there is no question '{name}'")
        if response.id not in verdicts:
            raise CustosError(f"response '{response.id}' has no verdict")
        answerer = str(response.metadata.get(ANSWERER))
        rights[name][answerer] = _is_right(response, verdicts[response.id])
    screened = Screened()
    for item in items:
        answers = rights[item.id]
        if any(right is False for right in answers.values()):
            names = [answerer for answerer, right in answers.items() if right]
            counted = {"models": names, "of": len(answers)}
            screened.kept.append(item.with_fields(**{RIGHT_ANSWERS: counted}))
        elif len(answers) < num_models or None in answers.values():
            screened.unscreened.append(item.id)
        else:
            screened.dropped.append(item.id)
    return screened


def _is_right(response: JudgeRequest, labels: Sequence[str | None]) -> bool | None:
    """Return whether all judges call a response right; ``None`` if one has no label."""
    task = get_task(response.task)
    best = task.labels(task.rubric(response))[0]
    if any(label is not None and label != best for label in labels):
        return False
    return None if None in labels or not labels else True
