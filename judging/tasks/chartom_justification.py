"""CHARTOM's justification: does it name the trick that was planted in the chart?"""

from __future__ import annotations

from judging.tasks.base import Field, JudgeTask, Ruling, judge_task
from judging.types import JudgeRequest

NAMED, MISSED = "Named", "Missed"

_INSTRUCTION = f"""\
A chart was drawn so as to mislead, by one manipulation, which is given. Somebody predicted how \
many readers it misleads and said why. You judge the reasons alone, not the prediction.
{NAMED}: the reasons give this manipulation as an important cause, by name or by describing what \
it does to the picture, in any words.
{MISSED}: they give only other causes, stay general (the chart is confusing, small or hard to \
read), mention the manipulation only to call it harmless, or hold that the chart does not mislead.
Answer with one word: {NAMED} or {MISSED}."""


@judge_task
class ChartomJustification(JudgeTask):
    """CHARTOM MIND, justification part (paper section 2.3): the reference is the manipulation."""

    name = "chartom-justification"
    variants = ("plain",)
    required = ("question", "references")

    def rubric(self, request: JudgeRequest) -> str:
        """The one variant."""
        return request.variant

    def instruction(self, rubric: str) -> str:
        """What counts as having seen the manipulation."""
        return _INSTRUCTION

    def labels(self, rubric: str) -> tuple[str, ...]:
        """``Named``, ``Missed``."""
        return (NAMED, MISSED)

    def item(self, request: JudgeRequest) -> tuple[Field, ...]:
        """Question on the chart, planted manipulation, justification."""
        return (
            Field("Question on the chart", request.question),
            Field("Manipulation", " / ".join(request.references)),
            Field("Reasons", request.response, is_response=True),
        )

    def rule(self, request: JudgeRequest) -> Ruling | None:
        """Without reasons nothing is named."""
        if request.response.strip():
            return None
        return Ruling("scored", MISSED, "the justification is empty")

    def parse(self, text: str, rubric: str) -> str | None:
        """A bare label, apart from case, space and closing punctuation."""
        word = text.strip(" \n\t.!*\"'`").casefold()
        return next((label for label in self.labels(rubric) if label.casefold() == word), None)
