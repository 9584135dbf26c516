"""A scorer for inspect_ai, which finds it by its entry point, as ``custos/judged``."""

from __future__ import annotations

from typing import Any

from inspect_ai.model import ContentImage
from inspect_ai.scorer import (
    CORRECT,
    INCORRECT,
    PARTIAL,
    Score,
    Scorer,
    Target,
    accuracy,
    scorer,
    stderr,
)
from inspect_ai.solver import TaskState

from custos.integrations._core import Grader, NoLabel
from judging.tasks import get_task
from judging.types import AnyJudge


@scorer(metrics=[accuracy(), stderr()])
def judged(judge: AnyJudge | str = "http://127.0.0.1:8000", **fields: Any) -> Scorer:
    """Score answers by comparison with the target: ``C``, ``P`` or ``I``.

    Any one of several targets is enough, unless ``reference_mode`` is ``all``. Pictures of the
    input are shown where the task reads pictures. A sample without a verdict is unscored.

    ``judge`` and ``fields`` are those of :class:`~custos.integrations._core.Grader`.
    """
    grader = Grader(judge, **fields)

    async def score(state: TaskState, target: Target) -> Score:
        answer = state.output.completion
        shown: dict[str, Any] = {"choices": [choice.value for choice in state.choices]}
        if get_task(fields.get("task", "hieval-qs")).reads_pictures:
            shown["images"] = _pictures(state)
        try:
            grade = await grader.agrade(state.input_text, list(target), answer, **shown)
        except NoLabel as error:
            return Score.unscored(answer=answer, explanation=str(error))
        letters = {1.0: CORRECT, 0.5: PARTIAL, 0.0: INCORRECT}
        value = letters.get(grade.score, grade.score)
        return Score(value=value, answer=answer, explanation=grade.reason, metadata=grade.metadata)

    return score


def _pictures(state: TaskState) -> list[str]:
    """Find the pictures of a sample's input: data URLs, addresses or files."""
    messages = [] if isinstance(state.input, str) else state.input
    return [
        part.image
        for message in messages
        if not isinstance(message.content, str)
        for part in message.content
        if isinstance(part, ContentImage)
    ]
