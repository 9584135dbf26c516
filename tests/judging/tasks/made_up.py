"""Tasks of one's own, whose labels have other names than those of the shipped ones."""

from typing import ClassVar

import pytest

from judging.tasks.base import TASKS, Field, JudgeTask
from judging.types import JudgeRequest


class Grounded(JudgeTask):
    """Whether the references bear a response out; three labels."""

    name = "grounded"
    variants = ("plain",)
    required: ClassVar[tuple[str, ...]] = ("question", "references")
    example = {
        "question": "Capital of France?",
        "references": ["It is Paris."],
        "response": "Paris",
    }
    label_set: ClassVar[tuple[str, ...]] = ("Grounded", "Partly grounded", "Ungrounded")
    empty_label = "Ungrounded"

    def instruction(self, rubric: str) -> str:
        """Return what the judge is told."""
        return f"Is it grounded? {', '.join(self.label_set)}."

    def item(self, request: JudgeRequest) -> tuple[Field, ...]:
        """Return what the judge reads."""
        return (
            Field("Question", request.question),
            Field("Source", " / ".join(request.references)),
            Field("Response", request.response, is_response=True),
        )


class Politeness(Grounded):
    """Whether a response is polite; two labels."""

    name = "politeness"
    required = ("question",)
    label_set = ("Polite", "Rude")
    empty_label = "Rude"


def declare(patch: pytest.MonkeyPatch) -> None:
    """Declare these tasks for a test."""
    for task in (Grounded(), Politeness()):
        patch.setitem(TASKS.entries, task.name, task)
