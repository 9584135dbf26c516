"""Rules that read CHARTOM's FACT answers: options and numbers."""

import re
from collections.abc import Sequence

from judging.rules.answer_options import has_doubt, leaves_number_open
from judging.rules.quantities import (
    KeyUnit,
    Quantity,
    equation_result,
    find_quantities,
    has_two_units,
    is_close,
    parse_unit,
    plain_text,
    unread_magnitude,
    within_tolerance,
)
from judging.rules.whole_words import holds

_SMALL = (
    r"(?:smallest|lowest|least(?:\s+\w+)?|fewest|shortest|slowest|cheapest|youngest|low|min\w*)"
)
_LARGE = (
    r"(?:largest|biggest|highest|greatest|most(?:\s+\w+)?|tallest|longest|fastest|oldest|high"
    r"|max\w*)"
)
_TO = r"\s*(?:\(\d+\)\s*)?(?:to|-+>?|–|→|,)\s*(?:the\s+)?"
_ASCENDING = re.compile(
    rf"(?:from\s+)?(?:the\s+)?\b{_SMALL}{_TO}{_LARGE}\b(?:\s*\(\d+\))?"
    rf"|\b(?:{_SMALL}\s+first|{_LARGE}\s+last)\b|\b(?:ascending|increasing|rising)\b"
)
_DESCENDING = re.compile(
    rf"(?:from\s+)?(?:the\s+)?\b{_LARGE}{_TO}{_SMALL}\b(?:\s*\(\d+\))?"
    rf"|\b(?:{_LARGE}\s+first|{_SMALL}\s+last)\b|\b(?:descending|decreasing|falling)\b"
)
# Quantifiers are possessive where runs of spaces or dashes may be long: each run is read once.
_ARROW = re.compile(r"(?<![-=])[-=]++>|→|➜|⇒|^[^\S\n]*+>", re.MULTILINE)
_ORDINALS = {
    name: rank
    for rank, names in enumerate(
        ("first 1st", "second 2nd", "third 3rd", "fourth 4th", "fifth 5th", "sixth 6th"), 1
    )
    for name in names.split()
}
_WORDS = frozenset(
    "the a in order of by from ranking ranked ranks rank sorted sort answer my final is are this "
    "then followed and it market share size height value company country".split()
)
LONGEST_NUMBER = 9
"""Digits of a number that may be a rank."""
_TOKEN = re.compile(r"\x00(\d+)\x00|(\d+(?:\.\d+)?)(st|nd|rd|th)?|([^\W\d_]+)|([<>≤≥=%/&|+])")


def directions(text: str) -> set[bool]:
    """Find the directions that a text names: True is smallest to largest."""
    text = plain_text(text).casefold()
    named = ((True, _ASCENDING), (False, _DESCENDING))
    return {is_upward for is_upward, words in named if words.search(text)}


def ranking_of(
    response: str, items: Sequence[str], *, asked_upward: bool = False
) -> tuple[int, ...] | None:
    """Return the order that an answer gives, as indices into ``items``.

    The rule reads ``A > B > C``, numbered lines, commas, and items with their ranks (``B: 1, A:
    2``). "From smallest to largest: B, C, A" and ``C < A`` run the other way than was asked. The
    last line of the answer or, failing that, the whole must hold every item exactly once, and the
    answer must hold no second order. ``None`` unless the order is whole, clear and the only one.
    """
    text = _ARROW.sub(",", plain_text(response).replace("\0", " ")).casefold()
    named = directions(text)
    lines = [line for line in text.splitlines() if line.strip()]
    if len(named) > 1 or has_doubt(text) or not lines:
        return None
    upward = next(iter(named), None)
    before = "\n".join(lines[:-1])
    if before and all(re.search(_pattern(item), before) for item in items):  # a second order
        return None
    order = _order(lines[-1], items, upward) or _order(text, items, upward)
    if order is None:
        return None
    positions, signs_upward = order
    if upward is not None and signs_upward is not None and upward != signs_upward:
        return None
    if asked_upward and signs_upward is False:  # ">" may stand for no more than a comma
        return None
    direction = upward if upward is not None else signs_upward
    return positions if direction in (None, asked_upward) else positions[::-1]


def _pattern(item: str) -> str:
    """Return a regular expression for an item's words, with anything but words between them."""
    words = r"\W+".join(map(re.escape, re.findall(r"\w+", plain_text(item).casefold())))
    return rf"(?<!\w){words}(?!\w)"


def _order(
    text: str, items: Sequence[str], upward: bool | None
) -> tuple[tuple[int, ...], bool | None] | None:
    """Return the order in a text, and the direction that ``<`` or ``>`` give it."""
    for direction in (_ASCENDING, _DESCENDING):
        text = direction.sub(" ", text)
    for index, item in sorted(enumerate(items), key=lambda pair: -len(pair[1])):
        text, count = re.subn(_pattern(item), f" \x00{index}\x00 ", text)
        if count != 1:
            return None
    tokens = [_token(match, len(items)) for match in _TOKEN.finditer(text)]
    listed = [value for kind, value in tokens if kind == "item"]
    signs = {value for kind, value in tokens if kind in "<>"}
    kinds = [kind for kind, _ in tokens]
    if signs and sum(kind in "<>" for kind in kinds) < len(items) - 1:  # "A > B, C" may tie
        return None
    # "A and B, then C" ties: an "and" may stand before the last item alone.
    joins_early = "joint" in kinds and kinds[kinds.index("joint") :].count("item") != 1
    if "other" in kinds or len(signs) > 1 or joins_early:
        return None
    ranked = _by_numbers([token for token in tokens if token[0] in ("item", "rank", "number")])
    if ranked is None or (ranked != listed and (signs or upward is not None)):
        return None
    return tuple(ranked), "<" in kinds if signs else None


def _token(match: re.Match[str], num_items: int) -> tuple[str, int]:
    """Return kind and value: an item's index, a rank, a number, a joint, a sign or another word."""
    item, number, ending, word, sign = match.groups()
    if item:
        return "item", int(item)
    if number:
        is_whole = number.isdigit() and len(number) <= LONGEST_NUMBER
        return ("rank" if ending else "number", int(number)) if is_whole else ("other", 0)
    if word in ("last", "lastly", "finally"):
        return "rank", num_items
    if word in _ORDINALS:
        return "rank", _ORDINALS[word]
    if word:
        return ("joint" if word == "and" else "filler" if word in _WORDS else "other", 0)
    return (sign, "<>".index(sign)) if sign in "<>" else ("other", 0)


def _by_numbers(tokens: Sequence[tuple[str, int]]) -> list[int] | None:
    """Return items in the order of the numbers beside them, or as listed if there are none.

    ``None`` if the numbers are not a list's (``1. B 2. A``) or the ranks of all items. Numbers that
    count down to 1 are none of these: they may be values.
    """
    listed = [value for kind, value in tokens if kind == "item"]
    marks = [value for kind, value in tokens if kind != "item"]
    if not marks:
        return listed
    upward = list(range(1, len(listed) + 1))
    kinds = ["item" if kind == "item" else "mark" for kind, _ in tokens]
    if kinds == ["mark", "item"] * len(listed):
        return listed if marks == upward else None
    if kinds != ["item", "mark"] * len(listed) or sorted(marks) != upward:
        return None
    if marks == upward[::-1] and all(kind != "rank" for kind, _ in tokens):
        return None
    return [item for _, item in sorted(zip(marks, listed, strict=True))]


LONGEST_ANSWER = 40
"""Words of an answer that a rule reads; longer ones are reasoning."""
LONGEST_WITH_ONE = 3
"""Words of an answer that "one" may begin as a number: "that one" is none."""

# In any case but of ASCII alone: "İ" is no letter of an option.
_LABEL = r"[\[(]?\s*+(?:option\s++)?[\[(]?\s*+(\d{1,2}|(?a:[a-z]))\s*+[\])]?"
_ALONE = re.compile(rf"{_LABEL}\s*+[.:)]?\s*+", re.IGNORECASE)
_LEADING = re.compile(r"[\[(]?\s*(\d{1,2}|(?a:[a-z]))\s*(?:[.):\]]|\s-)\s+\S", re.IGNORECASE)
_ANNOUNCED = re.compile(
    r"\b(?i:answer|option|choice)\s*+(?:is|:|=)?\s*+(?:(?i:option)\s*+)?[\[(]?\s*+"
    r"(\d{1,2}|[A-Z])\b"
)
"""Only capital letters count: "the answer is a rise" names no option."""
_ANY_LABEL = re.compile(r"(?<![\w.,])(\d{1,2}|[A-Z])(?![\w,]|\.\d)")
_JOINED = re.compile(r"\w-(?!\S)|(?<!\S)-[^\W\d]")
"""What is left where an option was part of another word: "non-increasing"."""
_NEXT_WORD = re.compile(r"\s+[a-z]")
_AFTER_NUMBER = re.compile(r"(?:\s*[.,;:!)\]}\"'`*$\n]|\s*\((?=[\d$])|\s*$|\s+([^\W\d_]+))")
_CURRENCIES = tuple("€£¥₹")
_COMPOUND = re.compile(r"/|\bper\b|\bsq|\bcubic\b|[²³^]|[a-z][23]\b")
"""In the unit of a key: kilometres in an answer are no kilometres an hour, and no squares."""
_DATE = re.compile(r"\.\d")
"""Behind a decimal number: 12.5.2020."""
_SIGN = re.compile(r"[a-z]|[-–—]\s", re.IGNORECASE)
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
    """Find the index of the option that an answer names; ``None`` if that is unclear.

    The answer may name the option by number, letter or text. It is unclear if the answer names
    several options, or denies or doubts what it names.
    """
    text = plain_text(response).strip().strip("*_`\"' ")
    labelled, named = _labelled(text, choices), _named(response, choices)
    beside = _labels_in(text, len(choices))
    if len({*named, *beside}) > 1 or len(text.split()) > LONGEST_ANSWER:
        return None
    if labelled is not None:
        is_alone = {*named, *beside} <= {labelled} and not _is_doubted(text, choices)
        return labelled if is_alone else None
    is_plain = len(named) == 1 and not beside and not _is_doubted(text, choices)
    return named[0] if is_plain else None


def _is_doubted(text: str, choices: Sequence[str]) -> bool:
    rest = _without(text, choices)
    return has_doubt(rest) or _JOINED.search(rest) is not None


def _without(text: str, choices: Sequence[str]) -> str:
    """Return a text without the options in it, whose own words deny nothing."""
    for choice in sorted(choices, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(choice.rstrip('.'))}(?!\w)", " ", text, flags=re.I)
    return text


def _labels_in(text: str, count: int) -> set[int]:
    """Find the options whose numbers or capital letters stand anywhere in an answer."""
    labels = set()
    for match in _ANY_LABEL.finditer(text):
        is_article = match[1] in ("A", "I") and _NEXT_WORD.match(text, match.end())
        index = int(match[1]) - 1 if match[1].isdigit() else ord(match[1]) - ord("A")
        if 0 <= index < count and not is_article:
            labels.add(index)
    return labels


def _labelled(text: str, choices: Sequence[str]) -> int | None:
    """Find the index of the option that a number or letter names."""
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
    """Find the options whose text occurs outside of longer options that occur."""
    text = f" {simplified(response)} "
    plain = plain_text(response)
    named: list[int] = []
    by_words: dict[str, list[int]] = {}  # "+5%" and "-5%" have the same
    for index, choice in enumerate(choices):
        by_words.setdefault(f" {simplified(choice)} ", []).append(index)
    for words, alike in sorted(by_words.items(), key=lambda pair: -len(pair[0])):
        if words.strip() and words in text:
            if len(alike) > 1:
                named += [at for at in alike if _stands_alone(choices[at], plain)] or alike
            elif not re.search(r"\d", words) or holds(response, choices[alike[0]]):
                named += alike  # 3 is no part of -3, 3.5 and 3 million
            text = text.replace(words, " | ")
    return sorted(named)


def _stands_alone(choice: str, text: str) -> bool:
    """Tell whether an option stands in a text with its own marks: "-5%" does not hold "5%"."""
    marked = re.escape(plain_text(choice).strip())
    return re.search(rf"(?<![\w.,+-]){marked}(?![\w%])", text, re.IGNORECASE) is not None


def number_is_right(response: str, key: float, unit: str) -> bool | None:
    """Tell whether an answer's number is within 10 % of the key.

    The rule decides where the answer names one number, plainly. It may write the number in several
    ways, such as ``1.2 million (1,200,000) bags``. ``None`` if another number or a doubt stands
    beside it, if a unit cannot be read, and where it may be negative, ``(500)``, or stand for a
    whole number that is worked out: ``10/2``.
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
        or (len(quantities) == 1 and _is_bracketed(text, quantities[0]))
        or (key % 1 == 0 and any("/" in text[each.start : each.end] for each in quantities))
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
    # "It fell by 3" against -3: the sign may be in the words, or stand apart.
    is_signed = _SIGN.search(text) and quantities[0].number * key < 0
    return None if is_signed or has_two_units(text) else False


def _is_bracketed(text: str, quantity: Quantity) -> bool:
    """Tell whether a quantity stands in brackets, as accountants write negative ones."""
    return text[: quantity.start].endswith("(") and text[quantity.end :].startswith(")")


def _amount(quantity: Quantity, key: float, unit: KeyUnit) -> float:
    """Return a quantity that is close to the key in the key's own magnitude."""
    value = unit.convert(quantity) or 0.0
    is_in_keys = quantity.magnitude is None and within_tolerance(value, key)
    return value if is_in_keys else value / unit.magnitude


def _is_plain(text: str, quantity: Quantity, unit: KeyUnit) -> bool:
    """Tell whether nothing around a quantity may change what it means.

    ``5th``, ``2x`` and ``24 months`` against years may; so may ``one`` in a sentence.
    """
    written, rest = text[quantity.start : quantity.end], text[quantity.end :]
    if written.casefold() == "one" and (
        text[: quantity.start].strip() or len(text.split()) > LONGEST_WITH_ONE
    ):
        return False
    if text[: quantity.start].rstrip()[-1:] in _CURRENCIES or _DATE.match(rest):
        return False
    is_dollar = any(word.startswith(("dollar", "usd")) for word in unit.counted)
    if "$" in written and unit.counted and not is_dollar:
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
