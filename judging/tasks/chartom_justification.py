"""CHARTOM's justification: it names the trick that was planted in the chart, or misses it."""

from __future__ import annotations

from judging.tasks.base import BareLabelTask, Field, judge_task
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
class ChartomJustification(BareLabelTask):
    """Reasons why a chart misleads its readers: they name the trick in it, or miss it.

    CHARTOM MIND, justification part (paper section 2.3). The reference is the manipulation.
    """

    name = "chartom-justification"
    example = {
        "question": "Will this chart mislead its readers, and why?",
        "references": ["the vertical axis does not start at zero"],
        "response": "Yes, many of them: the axis is cut off, so small differences look large.",
    }
    variants = ("plain",)
    required = ("question", "references")
    label_set = (NAMED, MISSED)
    empty_label = MISSED

    def instruction(self, rubric: str) -> str:
        """Return what counts as naming the manipulation."""
        return _INSTRUCTION

    def item(self, request: JudgeRequest) -> tuple[Field, ...]:
        """Return the question on the chart, the planted manipulation and the justification."""
        return (
            Field("Question on the chart", request.question),
            Field("Manipulation", " / ".join(request.references)),
            Field("Reasons", request.response, is_response=True),
        )
