"""HiEval quick score: a response gives the whole ground truth, part of it, or something else."""

import re
from contextlib import suppress
from datetime import date

from judging.rules.answer_options import (
    classes_of,
    lettered,
    option_named,
    options_of,
    spelled,
    with_letter,
)
from judging.rules.asked_values import same_as_asked
from judging.rules.final_answers import final_answers
from judging.rules.mathematics import is_long_to_read, same_mathematics
from judging.tasks.base import Field, JudgeTask, Ruling, judge_task
from judging.types import JudgeRequest

CORRECT, PARTIAL, WRONG = "Correct", "Partial", "Wrong"

_ANSWER_SET = """\
You grade a response to a question. The ground truth is a set of one or more elements.
Correct: the final answer gives every element and nothing else.
Partial: it gives some elements, lacks others, and adds none from outside the set.
Wrong: it gives any element that is not in the set, or no answer, or is cut off before a final \
answer, even if a right value appears on the way.
Only the final answer counts. Wording, order and notation may differ if the meaning is the same."""

_ALTERNATIVES = """\
You grade a response to a question. Each reference alone is an acceptable answer.
Correct: the final answer means the same as a reference; further detail may be added if nothing \
contradicts it.
Wrong: it means something else, adds a wrong answer, gives no answer, or is cut off before a final \
answer, even if a right value appears on the way.
Wording and notation may differ if the meaning is the same."""

_GRADED_ALTERNATIVES = """\
You grade a response to a question. Each reference alone is an acceptable answer.
Correct: the final answer gives all that one reference says; further detail may be added if \
nothing contradicts it.
Partial: it gives a part of what a reference says, lacks the rest, and adds nothing wrong.
Wrong: it means something else, adds a wrong answer, gives no answer, or is cut off before a final \
answer, even if a right value appears on the way.
Wording and notation may differ if the meaning is the same."""

_CRITERIA = {"all": _ANSWER_SET, "any": _ALTERNATIVES, "any-partial": _GRADED_ALTERNATIVES}

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"(?:the )?(\d{1,2})(?:st|nd|rd|th)?"
_DAY_FIRST = re.compile(rf"(?:on )?{_DAY}(?: of)? {_MONTH},? (\d{{4}})", re.IGNORECASE)
_MONTH_FIRST = re.compile(rf"(?:on )?{_MONTH} {_DAY},? (\d{{4}})", re.IGNORECASE)
_ISO_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_DATE_IN_DIGITS = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})")
_LAYOUT = re.compile(
    r"(?i:\bin (?:[\w/-]{1,12} ){0,3}format\b|\bin iso\b|\b(?:dd|mm|yyyy)[-/. ](?:dd|mm)\b"
    r"|(?:\A|[.!?:,]\s|\bplease |\bhow (?:[a-z]{1,6} ){1,2})"
    r"(?:(?:re)?write|convert|express|spell|translate)\b)"
    r"|格式|写[成为出]"
)
"""Asks for a day in one layout: "Write July 20, 1969 in ISO format"."""
_LONGEST_DATE = 40
_ONE_CALENDAR = 1931
"""Year from which on no country wrote days of the Julian calendar."""

_BARE_NUMBER = re.compile(r"[-+]?[\d,.]*\d\s?%?\.?")

_YES = frozenset({"yes", "yep", "yeah", "ja", "sí", "oui", "是", "是的", "对"})
_NO = frozenset({"no", "nope", "nein", "non", "否", "不", "不是", "不对"})
_EITHER_WAY = re.compile(
    r"n['’]t\b|\b(?:not|no|never|none|neither|without|false|wrong|nicht|kein\w*|nie|nunca|pas)\b"
    r"|(?<![是有能会可要])[不没]|\bn['’]|\b(?:what|which|how|yes|ja|sí|oui|nein|non|symbol)\b|什么"
    r"|\A\W*(?:who\w*|name|give|say|write|translate|spell|complete)\b",
    re.IGNORECASE,
)
"""Words in a question that leave open what a bare yes says: it may mean no, or be the very
word that is asked for."""
_LONGEST_YES_NO = 20

TOLERANCE = "\nA number, with or without unit, is right within 5 % of the ground truth."


class HiEvalTask(JudgeTask):
    """The base of both HiEval tasks."""

    variants = ("plain", "tolerance")
    required = ("question", "references")

    def rubric(self, request: JudgeRequest) -> str:
        """Return ``<variant>/<reference mode>``."""
        return f"{request.variant}/{request.reference_mode}"

    def item(self, request: JudgeRequest) -> tuple[Field, ...]:
        """Return question, options, ground truth, the caller's own criteria and response."""
        fields = [Field("Question", request.question)]
        if request.choices:
            options = (lettered(index, text) for index, text in enumerate(request.choices))
            fields.append(Field("Options", "  ".join(options)))
        # A response may name the option by its letter and the reference by its text.
        listed = options_of(request)
        references = [with_letter(text, listed) for text in request.references]
        if request.reference_mode == "all":
            fields.append(Field("Ground truth", "; ".join(references)))
        else:
            fields.append(Field("References", " / ".join(references)))
        fields += [Field("Further criterion", text) for text in request.criteria]
        return (*fields, Field("Response", request.response, is_response=True))


@judge_task
class HiEvalQuickScore(HiEvalTask):
    """Quick score of a response against accepted answers, from the text alone.

    HiEval-QS (paper section 3.1, Figure 9): three labels, no error analysis. Under
    ``reference_mode`` ``any`` no response counts as partly right, so the declared labels are
    ``Correct`` and ``Wrong``; under ``any-partial`` there are three.
    """

    name = "hieval-qs"
    example = {
        "question": "What is the capital of France?",
        "references": ["Paris"],
        "reference_mode": "any",
        "response": "The capital of France is Paris.",
    }
    empty_label = WRONG
    reads_pictures = False

    def instruction(self, rubric: str) -> str:
        """List all criteria, for a whole answer set or for alternatives."""
        variant, mode = rubric.split("/")
        answers = f"{CORRECT} or {WRONG}" if mode == "any" else f"{CORRECT}, {PARTIAL} or {WRONG}"
        tolerance = TOLERANCE if variant == "tolerance" else ""
        return f"{_CRITERIA[mode]}{tolerance}\nAnswer with one word: {answers}."

    def labels(self, rubric: str) -> tuple[str, ...]:
        """Return the labels, best first; without ``Partial`` under ``any``."""
        return (CORRECT, WRONG) if rubric.endswith("/any") else (CORRECT, PARTIAL, WRONG)

    def rule_if_certain(self, request: JudgeRequest) -> Ruling | None:
        """Decide a final answer that is one listed option, class, day or value, or yes or no."""
        final = _final_answer(request)
        if request.criteria:  # they may ask for more, or forgive more
            return None
        return (
            _ruled_option(request, final)
            or _ruled_class(request, final)
            or _ruled_date(request, final)
            or _ruled_mathematics(request, final)
            or _ruled_yes_no(request, final)
        )


def _final_answer(request: JudgeRequest) -> str | None:
    """Return the last text given as final answer if all are one: an option or a value."""
    *others, last = final_answers(request.response) or ("",)
    options = options_of(request)
    named = option_named(last, options)
    are_one = all(
        (named is not None and option_named(other, options) == named)
        or same_mathematics(other, last)
        for other in others
    )
    return (last or None) if are_one else None


def _ruled_option(request: JudgeRequest, final: str | None) -> Ruling | None:
    """Decide a request where final answer and references each are a listed option, no more."""
    options = options_of(request)
    named = option_named(request.response, options)
    if named is None and final:
        named = option_named(final, options)
    right = {option_named(text, options) for text in request.references}
    if named is None or None in right:
        return None
    label = WRONG
    if named in right:
        is_whole = len(right) == 1 or request.reference_mode != "all"
        label = CORRECT if is_whole else PARTIAL
    option = lettered(named, options[named])
    return Ruling("scored", label, f"decided by rule: the response is option {option}")


def _ruled_class(request: JudgeRequest, final: str | None) -> Ruling | None:
    """Decide a final answer that is one of the classes listed in the question, as is the truth."""
    given, right = spelled(final or ""), set(map(spelled, request.references))
    is_single = len(right) == 1 or request.reference_mode != "all"
    if not is_single or not right | {given} <= classes_of(request.question):
        return None
    label = CORRECT if given in right else WRONG
    return Ruling("scored", label, f"decided by rule: the class is {given}")


def _ruled_date(request: JudgeRequest, final: str | None) -> Ruling | None:
    """Decide a final answer that is a day and no more, as each reference is.

    Where the days differ by one, the time may be another zone's. Another layout than the one that a
    question asks for is not decided.
    """
    given, right = _date(final or ""), list(map(_date, request.references))
    if given is None or (request.reference_mode == "all" and len(right) > 1):
        return None
    if given in right:
        is_other_layout = _LAYOUT.search(request.question) and final not in request.references
        equal = Ruling("scored", CORRECT, "decided by rule: the days are equal")
        return None if is_other_layout else equal
    are_apart = all(
        day and abs(day - given).days > 1 and min(day, given).year >= _ONE_CALENDAR for day in right
    )
    if not are_apart or request.reference_mode != "any":
        return None
    return Ruling("scored", WRONG, "decided by rule: the days differ")


def _date(text: str) -> date | None:
    """Read a text that is a day and can be no other; ``None`` for ``5/6/1990``."""
    text = text.strip(" .*") if len(text) <= _LONGEST_DATE else ""
    if iso := _ISO_DATE.fullmatch(text):
        readings = [iso.group(1, 2, 3)]
    elif day_first := _DAY_FIRST.fullmatch(text):
        readings = [day_first.group(3, 2, 1)]
    elif month_first := _MONTH_FIRST.fullmatch(text):
        readings = [month_first.group(3, 1, 2)]
    elif digits := _DATE_IN_DIGITS.fullmatch(text):
        readings = [digits.group(4, 3, 1), digits.group(4, 1, 3)]
    else:
        return None
    days = set()
    for year, month, day in readings:
        number = int(month) if month.isdigit() else _MONTHS.index(month[:3].casefold()) + 1
        with suppress(ValueError):  # no month, no day of it
            days.add(date(int(year), number, int(day)))
    return days.pop() if len(days) == 1 else None


def _ruled_mathematics(request: JudgeRequest, final: str | None) -> Ruling | None:
    """Decide a final answer that has the value of a reference, or clearly of none.

    Sets with other elements may be partly right, unless in mode ``any``, and another number may be
    within the tolerance: neither is decided. A bare number beside a bare number is a short answer
    like any other, of which a judge gives the probability.
    """
    references = request.references
    if final is None or (request.reference_mode == "all" and len(references) > 1):
        return None
    if is_long_to_read(references):
        return None
    if all(map(_BARE_NUMBER.fullmatch, (request.response.strip(), *references))):
        return None
    results = {same_as_asked(reference, final, request.question) for reference in references}
    may_be_near = request.variant == "tolerance" or (
        request.reference_mode != "any"
        and any(mark in text for text in (final, *references) for mark in ",;{")
    )
    if True in results:
        return Ruling("scored", CORRECT, "decided by rule: the values are equal")
    if results == {False} and not may_be_near:
        return Ruling("scored", WRONG, "decided by rule: the values differ")
    return None


def _ruled_yes_no(request: JudgeRequest, final: str | None) -> Ruling | None:
    """Decide a final answer that is a bare yes or no, as every reference is.

    After a question with "not" either word may mean either, and after one for a word or a name only
    one spelling is right: these are not decided.
    """
    right = set(map(_yes_or_no, request.references))
    given = _yes_or_no(final or request.response)
    if given is None or None in right or len(right) > 1 or _EITHER_WAY.search(request.question):
        return None
    label = CORRECT if given in right else WRONG
    return Ruling("scored", label, f"decided by rule: the response says {given}")


def _yes_or_no(text: str) -> str | None:
    """Read a text that is yes or no and nothing else, in one of five languages."""
    word = text.strip(" \n.!*_。！").lower() if len(text) <= _LONGEST_YES_NO else ""
    return "yes" if word in _YES else "no" if word in _NO else None
