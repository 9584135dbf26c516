"""Orders in CHARTOM's answers to ranking questions, and the direction that they run in.

The rule decides only where the answer is a whole order and hardly anything else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from judging.rules.doubts import has_doubt
from judging.rules.quantities import plain_text

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
_ARROW = re.compile(r"[-=]+>|→|➜|⇒|^\s*>", re.MULTILINE)
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
_TOKEN = re.compile(r"\x00(\d+)\x00|(\d+(?:\.\d+)?)(st|nd|rd|th)?|([^\W\d_]+)|([<>≤≥=%/&|+])")


def runs_upward(text: str) -> bool | None:
    """Return whether a text names the direction smallest to largest; ``None`` if it names none.

    Raises:
        ValueError: If it names both directions.
    """
    text = plain_text(text).casefold()
    is_upward, is_downward = bool(_ASCENDING.search(text)), bool(_DESCENDING.search(text))
    if is_upward and is_downward:
        raise ValueError("both directions are named")
    return is_upward if is_upward or is_downward else None


def ranking_of(
    response: str, items: Sequence[str], *, asked_upward: bool = False
) -> tuple[int, ...] | None:
    """Return the order that an answer gives, as indices into ``items``.

    The rule reads ``A > B > C``, numbered lines, commas, and items with their ranks (``B: 1, A:
    2``). "From smallest to largest: B, C, A" and ``C < A`` run the other way than was asked. The
    last line of the answer or, failing that, the whole must hold every item exactly once, and the
    answer must hold no second order.

    Args:
        response: The answer.
        items: What is ranked.
        asked_upward: Whether the question asks for the smallest first.

    Returns:
        ``None`` unless the order is whole, clear and the only one.
    """
    text = _ARROW.sub(",", plain_text(response)).casefold()
    try:
        upward = runs_upward(text)
    except ValueError:
        return None
    lines = [line for line in text.splitlines() if line.strip()]
    if has_doubt(text) or not lines or len(lines) > 1 and _holds_all(lines[:-1], items):
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


def _holds_all(lines: Sequence[str], items: Sequence[str]) -> bool:
    """Return whether lines before the last name every item, and the last does so again."""
    text = "\n".join(lines)
    return all(re.search(_pattern(item), text) for item in items)


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
    if any(kind == "other" for kind, _ in tokens) or len(signs) > 1 or _joins_early(tokens):
        return None
    ranked = _by_numbers([token for token in tokens if token[0] in ("item", "rank", "number")])
    if ranked is None or (ranked != listed and (signs or upward is not None)):
        return None
    return tuple(ranked), "<" in {kind for kind, _ in tokens} if signs else None


def _token(match: re.Match[str], num_items: int) -> tuple[str, int]:
    """Return kind and value: an item's index, a rank, a number, a joint, a sign or another word."""
    item, number, ending, word, sign = match.groups()
    if item:
        return "item", int(item)
    if number:
        is_whole = number.isdigit()
        return ("rank" if ending else "number", int(number)) if is_whole else ("other", 0)
    if word in ("last", "lastly", "finally"):
        return "rank", num_items
    if word in _ORDINALS:
        return "rank", _ORDINALS[word]
    if word:
        return ("joint" if word == "and" else "filler" if word in _WORDS else "other", 0)
    return (sign, "<>".index(sign)) if sign in "<>" else ("other", 0)


def _joins_early(tokens: Sequence[tuple[str, int]]) -> bool:
    """Return whether an "and" stands before other items than the last: "A and B, then C" ties."""
    kinds = [kind for kind, _ in tokens]
    return "joint" in kinds and kinds[kinds.index("joint") :].count("item") != 1


def _by_numbers(tokens: Sequence[tuple[str, int]]) -> list[int] | None:
    """Return items in the order of the numbers beside them, or as listed if there are none.

    Returns:
        ``None`` if the numbers are not a list's (``1. B 2. A``) or the ranks of all items. Numbers
        that count down to 1 are none of these: they may be values.
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
