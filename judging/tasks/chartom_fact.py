"""CHARTOM's FACT question: an answer in free text that no rule can read is right or wrong."""

from __future__ import annotations

from judging.rules.fact_rules import choice_of, number_is_right
from judging.rules.quantities import parse_key
from judging.rules.rankings import ranking_of, runs_upward
from judging.tasks.base import BareLabelTask, Field, Ruling, judge_task
from judging.types import JudgeRequest

CORRECT, INCORRECT = "Correct", "Incorrect"
UNFINISHED = ("…", "...")
"""What a response that was cut off ends in: no rule decides it."""

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

    CHARTOM FACT (paper section 2.3). The variant is the type of the question. Rules decide the
    answers that they can read for certain; a judge gets the others. The reference of a number is
    the key with its unit, those of a ranking are all items in order.
    """

    name = "chartom-fact"
    example = {
        "variant": "number",
        "question": "How much rain fell in June?",
        "references": ["40 mm"],
        "response": "About 41 mm",
    }
    variants = tuple(_RULES)
    required = ("question", "references")
    label_set = (CORRECT, INCORRECT)
    empty_label = INCORRECT
    has_rules = True

    def rule_if_certain(self, request: JudgeRequest) -> Ruling | None:
        """Decide an answer that names one option, number or order, and names it plainly."""
        is_right = _is_right(request)
        if is_right is None:
            return None
        label = CORRECT if is_right else INCORRECT
        return Ruling("scored", label, "a rule reads the answer")

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


def _is_right(request: JudgeRequest) -> bool | None:
    """Return whether an answer is right by rule; ``None`` if it must be judged."""
    response, keys = request.response.strip(), request.references
    if response.endswith(UNFINISHED):
        return None
    if not response:
        return False
    if request.variant == "ranking":
        return _ranking_is_right(response, keys, request.question)
    if len(keys) > 1 and request.reference_mode == "all":
        return None
    if request.variant == "choice":
        right = {choice_of(key, request.choices) for key in keys}
        chosen = choice_of(response, request.choices)
        return None if chosen is None or None in right else chosen in right
    numbers = [parse_key(key) for key in keys]
    verdicts = {number and number_is_right(response, *number) for number in numbers}
    return True if True in verdicts else None if None in verdicts else False


def _ranking_is_right(response: str, key: tuple[str, ...], question: str) -> bool | None:
    """Return whether an order is right, where it is clear in the question's direction."""
    if len(key) < 2:
        return None
    asked_upward = asks_upward(question)
    directions = (False, True) if asked_upward is None else (asked_upward,)
    orders = {ranking_of(response, key, asked_upward=each) for each in directions}
    if len(orders) != 1 or None in orders:
        return None
    return orders == {tuple(range(len(key)))}


def asks_upward(question: str) -> bool | None:
    """Return whether a question asks for the smallest first; ``None`` if it does not say."""
    try:
        return runs_upward(question)
    except ValueError:
        return None
