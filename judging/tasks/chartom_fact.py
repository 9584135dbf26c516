"""CHARTOM's FACT question: an answer in free text that no rule can read is right or wrong."""

from __future__ import annotations

import re

from judging.tasks.base import Field, JudgeTask, Ruling, judge_task
from judging.types import JudgeRequest

CORRECT, INCORRECT = "Correct", "Incorrect"

_RULES = {
    "choice": """\
Correct: it settles on the option in the answer key, by number, letter, text or other words for it.
Incorrect: it settles on another option, on several or on none.""",
    "ranking": """\
Correct: it ranks every item, in exactly the order of the answer key.
Incorrect: any item is missing or out of place, or no order is given.""",
    "number": """\
Correct: its final number, brought to the unit of the answer key, lies within 10 % of the key. \
Number words, fractions and other units are fine.
Incorrect: the final number lies outside, is left open between several, or is missing.""",
}


@judge_task
class ChartomFact(JudgeTask):
    """CHARTOM FACT (paper section 2.3), for answers that no rule can read."""

    name = "chartom-fact"
    variants = tuple(_RULES)
    required = ("question", "references")

    def rubric(self, request: JudgeRequest) -> str:
        """The variant: the kind of question."""
        return request.variant

    def instruction(self, rubric: str) -> str:
        """What is right for this kind of question."""
        return (
            "You grade the final answer of a response to a question about a chart.\n"
            f"{_RULES[rubric]}\nAnswer with one word: {CORRECT} or {INCORRECT}."
        )

    def labels(self, rubric: str) -> tuple[str, ...]:
        """``Correct``, ``Incorrect``."""
        return (CORRECT, INCORRECT)

    def item(self, request: JudgeRequest) -> tuple[Field, ...]:
        """Question, numbered options, answer key, response."""
        fields = [Field("Question", request.question)]
        if request.choices:
            options = (f"{number}. {text}" for number, text in enumerate(request.choices, 1))
            fields.append(Field("Options", "  ".join(options)))
        between = " > " if request.variant == "ranking" else " / "
        fields.append(Field("Answer key", between.join(request.references)))
        return (*fields, Field("Response", request.response, is_response=True))

    def rule(self, request: JudgeRequest) -> Ruling | None:
        """No answer is not an acceptable answer."""
        if request.response.strip():
            return None
        return Ruling("scored", INCORRECT, "the response is empty")

    def parse(self, text: str, rubric: str) -> str | None:
        """A bare label, apart from case, space and closing punctuation."""
        word = re.sub(r"[\s.!*\"'`]+", "", text).casefold()
        return next((label for label in self.labels(rubric) if label.casefold() == word), None)
