"""CHARTOM: is an answer about a chart right, what would a person answer, and is a reason sound?"""

from judging.errors import FieldError
from judging.rules.fact_rules import choice_of, directions, number_is_right, ranking_of
from judging.rules.quantities import parse_fraction, parse_key
from judging.tasks.base import Field, JudgeTask, Ruling, judge_task
from judging.types import JudgeRequest

CORRECT, INCORRECT = "Correct", "Incorrect"
MOST_READ, MOST_READ_OF_KEYS = 10_000, 2_000
"""Most characters of a response, and of answer keys and options together, that rules read. Words of
keys and options are looked for in the response, which takes as long as the product of both."""
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
class ChartomFact(JudgeTask):
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
        """Tell what is right for this kind of question."""
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
    """Tell whether an answer is right by rule; ``None`` if it must be judged."""
    response, keys = request.response.strip(), request.references
    if response.endswith(UNFINISHED):
        return None
    if not response:
        return False
    if len(response) > MOST_READ or sum(map(len, (*keys, *request.choices))) > MOST_READ_OF_KEYS:
        return None
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
    """Tell whether an order is right, where it is clear in the question's direction."""
    if len(key) < 2:
        return None
    asked_upward = asks_upward(question)
    directions = (False, True) if asked_upward is None else (asked_upward,)
    orders = {ranking_of(response, key, asked_upward=each) for each in directions}
    if len(orders) != 1 or None in orders:
        return None
    return orders == {tuple(range(len(key)))}


def asks_upward(question: str) -> bool | None:
    """Tell whether a question asks for the smallest first; ``None`` if it does not say."""
    named = directions(question)
    return named.pop() if len(named) == 1 else None


STATED, NOT_STATED = "Stated", "Not stated"

_PREDICTION = f"""\
Somebody was asked what share of its readers a chart will mislead, and to begin with the number.
{STATED}: the response begins with one share from 0 to 1, or a percentage.
{NOT_STATED}: it begins with something else, with a range, or states no share.
Answer with one of: {STATED}, {NOT_STATED}."""


@judge_task
class ChartomPrediction(JudgeTask):
    """Share of readers whom a chart misleads, as a response predicts it; read by rule alone.

    CHARTOM MIND, prediction part (paper section 2.3). The score is the share. The reference, if
    there is one, is the measured share (HMI); then the message states the squared error.
    """

    name = "chartom-prediction"
    example = {
        "question": "What share of its readers will this chart mislead, and why?",
        "references": ["0.3"],
        "response": "0.2: most readers will notice where the axis begins.",
    }
    variants = ("plain",)
    required = ("question",)
    label_set = (STATED, NOT_STATED)
    empty_label = NOT_STATED
    score_range = (0.0, 1.0)
    has_rules = True

    def check(self, request: JudgeRequest) -> None:
        """Raise ``FieldError`` as every task does, or if the reference is no share."""
        super().check(request)
        if request.references:
            _share(request.references)

    def rule_if_certain(self, request: JudgeRequest) -> Ruling:
        """Read the share that the response begins with, or say that it states none."""
        predicted = parse_fraction(request.response)[0]
        if predicted is None:
            return Ruling("scored", NOT_STATED, "the response begins with no share from 0 to 1")
        error = ""
        if request.references:
            measured = _share(request.references)
            error = f"; squared error {(predicted - measured) ** 2:.4g} from {measured:g}"
        return Ruling("scored", STATED, f"a rule reads {predicted:g}{error}", predicted)

    def instruction(self, rubric: str) -> str:
        """Tell what states a share."""
        return _PREDICTION

    def item(self, request: JudgeRequest) -> tuple[Field, ...]:
        """Return the question and the response."""
        return (
            Field("Question on the chart", request.question),
            Field("Response", request.response, is_response=True),
        )


def _share(references: tuple[str, ...]) -> float:
    """Read the one share that the references state; otherwise raise ``FieldError``."""
    try:
        [text] = references
    except ValueError:
        text = ""
    share, rest = parse_fraction(text)
    if share is None or rest:
        raise FieldError("references", "expected one share from 0 to 1, such as '0.3', or none")
    return share


NAMED, MISSED = "Named", "Missed"

_JUSTIFICATION = f"""\
A chart was drawn so as to mislead, by one manipulation, which is given. Somebody predicted how \
many readers it misleads and said why. You judge the reasons alone, not the prediction.
{NAMED}: the reasons give this manipulation as an important cause, by name or by describing what \
it does to the picture, in any words.
{MISSED}: they give only other causes, stay general (the chart is confusing, small or hard to \
read), mention the manipulation only to call it harmless, or hold that the chart does not mislead.
Answer with one word: {NAMED} or {MISSED}."""


@judge_task
class ChartomJustification(JudgeTask):
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
        """Tell what counts as naming the manipulation."""
        return _JUSTIFICATION

    def item(self, request: JudgeRequest) -> tuple[Field, ...]:
        """Return the question on the chart, the planted manipulation and the justification."""
        return (
            Field("Question on the chart", request.question),
            Field("Manipulation", " / ".join(request.references)),
            Field("Reasons", request.response, is_response=True),
        )
