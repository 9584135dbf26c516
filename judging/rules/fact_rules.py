"""Rules that read CHARTOM's FACT answers: options and numbers.

A rule decides only where an answer names one candidate and says so plainly. It returns ``None`` for
every other answer, which is then judged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from judging.rules.doubts import has_doubt, leaves_number_open
from judging.rules.quantities import (
    KeyUnit,
    Quantity,
    equation_result,
    find_quantities,
    is_close,
    parse_unit,
    plain_text,
    unread_magnitude,
    within_tolerance,
)

LONGEST_ANSWER = 40
"""Words of an answer that a rule reads; longer ones are reasoning."""
LONGEST_WITH_ONE = 3
"""Words of an answer that "one" may begin as a number: "that one" is none."""

_LABEL = r"[\[(]?\s*(?:option\s+)?[\[(]?\s*(\d{1,2}|[a-z])\s*[\])]?"
_ALONE = re.compile(rf"{_LABEL}\s*[.:)]?\s*", re.IGNORECASE)
_LEADING = re.compile(r"[\[(]?\s*(\d{1,2}|[a-z])\s*(?:[.):\]]|\s-)\s+\S", re.IGNORECASE)
_ANNOUNCED = re.compile(
    r"\b(?i:answer|option|choice)\s*(?:is|:|=)?\s*(?:(?i:option)\s*)?[\[(]?\s*(\d{1,2}|[A-Z])\b"
)
"""Only capital letters count: "the answer is a rise" names no option."""
_ANY_LABEL = re.compile(r"(?<![\w.,])(\d{1,2}|[A-Z])(?![\w,]|\.\d)")
_AFTER_NUMBER = re.compile(r"(?:\s*[.,;:!)\]}\"'`*$\n]|\s*\((?=[\d$])|\s*$|\s+([^\W\d_]+))")
_CURRENCIES = tuple("€£¥₹")
_COMPOUND = re.compile(r"/|\bper\b|\bsq|\bcubic\b|[²³^]|[a-z][23]\b")
"""In the unit of a key: kilometres in an answer are no kilometres an hour, and no squares."""
_DATE = re.compile(r"\.\d")
"""Behind a decimal number: 12.5.2020."""
_FILLERS = frozenset(
    "of and the they it is are was were will by from for at on during each that which when as so "
    "in total altogether".split()
)
_REPEATED = 0.02
"""Share of the key by which two ways of writing one number may differ through rounding."""


def simplified(text: str) -> str:
    """Return the words and digits of a text in lower case, with single spaces."""
    return " ".join(re.findall(r"\w+", plain_text(text).casefold()))


def choice_of(response: str, choices: Sequence[str]) -> int | None:
    """Return the index of the option that an answer names; ``None`` if that is unclear.

    The answer may name the option by number, letter or text. It is unclear if the answer names
    several options, or denies or doubts what it names.
    """
    text = plain_text(response).strip().strip("*_`\"' ")
    labelled, named = _labelled(text, choices), _named(response, choices)
    beside = _labels_in(text, len(choices))
    if len({*named, *beside}) > 1 or len(text.split()) > LONGEST_ANSWER:
        return None
    if labelled is not None:
        is_alone = {*named, *beside} <= {labelled} and not has_doubt(_without(text, choices))
        return labelled if is_alone else None
    is_plain = len(named) == 1 and not beside and not has_doubt(_without(text, choices))
    return named[0] if is_plain else None


def _without(text: str, choices: Sequence[str]) -> str:
    """Return a text without the options in it, whose own words deny nothing."""
    for choice in sorted(choices, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(choice.rstrip('.'))}(?!\w)", " ", text, flags=re.I)
    return text


def _labels_in(text: str, count: int) -> set[int]:
    """Return the options whose numbers or capital letters stand anywhere in an answer."""
    labels = set()
    for match in _ANY_LABEL.finditer(text):
        is_article = match[1] in ("A", "I") and re.match(r"\s+[a-z]", text[match.end() :])
        index = int(match[1]) - 1 if match[1].isdigit() else ord(match[1]) - ord("A")
        if 0 <= index < count and not is_article:
            labels.add(index)
    return labels


def _labelled(text: str, choices: Sequence[str]) -> int | None:
    """Return the index of the option that a number or letter names."""
    at_start = _ALONE.fullmatch(text) or _LEADING.match(text)
    announced = _ANNOUNCED.findall(text)
    label = at_start[1] if at_start else announced[-1] if announced else ""
    if not label:
        return None
    if label.isdigit() and any(choice.strip().isdigit() for choice in choices):
        return None  # It may be the number of an option or a text, also of none.
    index = int(label) - 1 if label.isdigit() else ord(label.casefold()) - ord("a")
    return index if 0 <= index < len(choices) else None


def _named(response: str, choices: Sequence[str]) -> list[int]:
    """Return the options whose text occurs outside of longer options that occur."""
    text = f" {simplified(response)} "
    named = []
    for index, choice in sorted(enumerate(choices), key=lambda pair: -len(pair[1])):
        words = f" {simplified(choice)} "
        if words.strip() and words in text:
            named.append(index)
            text = text.replace(words, " | ")
    return sorted(named)


def number_is_right(response: str, key: float, unit: str) -> bool | None:
    """Return whether an answer's number is within 10 % of the key.

    The rule decides where the answer names one number, plainly. It may write the number in several
    ways, such as ``1.2 million (1,200,000) bags``.

    Returns:
        ``None`` if another number or a doubt stands beside it, or if a unit cannot be read.
    """
    text, key_unit = equation_result(response), parse_unit(unit)
    around = re.sub(re.escape(unit), " ", text, flags=re.IGNORECASE) if unit else text
    quantities = find_quantities(text)
    if (
        not quantities
        or len(text.split()) > LONGEST_ANSWER
        or has_doubt(text)
        or leaves_number_open(around)
        or unread_magnitude(text, quantities)
        or (around == text and _COMPOUND.search(unit) and any(each.unit for each in quantities))
        or not all(_is_plain(text, quantity, key_unit) for quantity in quantities)
    ):
        return None
    verdicts = {is_close(quantity, key, key_unit) for quantity in quantities}
    if len({(q.number, q.magnitude, q.unit) for q in quantities}) > 1:
        amounts = [_amount(quantity, key, key_unit) for quantity in quantities]
        is_repeated = verdicts == {True} and max(amounts) - min(amounts) <= abs(key) * _REPEATED
        return True if is_repeated else None
    if not verdicts <= {False}:
        return verdicts.pop()
    # "It fell by 3" against -3: the sign may be in the words.
    is_signed = re.search(r"[a-z]", text, re.IGNORECASE) and quantities[0].number * key < 0
    return None if is_signed else False


def _is_dollar(word: str) -> bool:
    return word.startswith(("dollar", "usd"))


def _amount(quantity: Quantity, key: float, unit: KeyUnit) -> float:
    """Return a quantity that is close to the key in the key's own magnitude."""
    value = unit.convert(quantity) or 0.0
    is_in_keys = quantity.magnitude is None and within_tolerance(value, key)
    return value if is_in_keys else value / unit.magnitude


def _is_plain(text: str, quantity: Quantity, unit: KeyUnit) -> bool:
    """Return whether nothing around a quantity may change what it means.

    ``5th``, ``2x`` and ``24 months`` against years may; so may ``one`` in a sentence.
    """
    written, rest = text[quantity.start : quantity.end], text[quantity.end :]
    if written.casefold() == "one" and (
        text[: quantity.start].strip() or len(text.split()) > LONGEST_WITH_ONE
    ):
        return False
    if text[: quantity.start].rstrip()[-1:] in _CURRENCIES or _DATE.match(rest):
        return False
    if "$" in written and unit.counted and not any(map(_is_dollar, unit.counted)):
        return False
    following = _AFTER_NUMBER.match(rest)
    if following is None:
        return False
    word = (following[1] or "").casefold()
    if not word or not unit.words:
        return True
    if word == "in":
        return unit.unit is None
    return word in _FILLERS or any(word[:4] == known[:4] for known in unit.words)
