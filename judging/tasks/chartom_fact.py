"""CHARTOM's FACT question: an answer in free text that no rule can read is right or wrong."""

from __future__ import annotations

from judging.tasks.base import BareLabelTask, Field, judge_task
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
class ChartomFact(BareLabelTask):
    """Correctness of an answer to a question about a chart: a choice, a ranking or a number.

    CHARTOM FACT (paper section 2.3), for answers that no rule can read. The variant is the type of
    the question.
    """

    name = "chartom-fact"
    example = {
        "variant": "number",
        "question": "How much rain fell in June?",
        "references": ["40"],
        "response": "About 41 mm",
    }
    variants = tuple(_RULES)
    required = ("question", "references")
    label_set = (CORRECT, INCORRECT)
    empty_label = INCORRECT

    def instruction(self, rubric: str) -> str:
        """Return what is right for this kind of question."""
        return (
            "You grade the final answer of a response to a question about a chart.\n"
            f"{_RULES[rubric]}\nAnswer with one word: {CORRECT} or {INCORRECT}."
        )

    def item(self, request: JudgeRequest) -> tuple[Field, ...]:
        """Return question, numbered options, answer key and response."""
        fields = [Field("Question", request.question)]
        if request.choices:
            options = (f"{number}. {text}" for number, text in enumerate(request.choices, 1))
            fields.append(Field("Options", "  ".join(options)))
        between = " > " if request.variant == "ranking" else " / "
        fields.append(Field("Answer key", between.join(request.references)))
        return (*fields, Field("Response", request.response, is_response=True))
