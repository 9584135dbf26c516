"""Rules that read CHARTOM's FACT answers: options, whole orders, numbers.

A rule returns ``None`` for an answer that it cannot read, which is then judged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchmarks.chartom.quantities import final_quantity, is_close, plain_text

_LABEL = r"[\[(]?\s*(?:option\s+)?[\[(]?\s*(\d{1,2}|[a-z])\s*[\])]?"
_ALONE = re.compile(rf"{_LABEL}\s*[.:)]?\s*", re.IGNORECASE)
_LEADING = re.compile(r"[\[(]?\s*(\d{1,2}|[a-z])\s*(?:[.):\]]|\s-)\s+\S", re.IGNORECASE)
_ANNOUNCED = re.compile(
    r"\b(?i:answer|option|choice)\s*(?:is|:|=)?\s*(?:(?i:option)\s*)?[\[(]?\s*(\d{1,2}|[A-Z])\b"
)
"""Only capital letters count: "the answer is a rise" names no option."""
_DENIAL = re.compile(r"\b(?:not|no|neither|nor|rather than|instead of)\b|n't\b", re.IGNORECASE)
_RANK_AFTER = r"\W{0,4}(?:rank\w*\s*|is\s*|#\s*)?\(?(\d{1,2})(?:st|nd|rd|th)?\b"


def simplified(text: str) -> str:
    """Return the words and digits of a text in lower case, with single spaces."""
    return " ".join(re.findall(r"\w+", plain_text(text).casefold()))


def choice_of(response: str, choices: Sequence[str]) -> int | None:
    """Return the index of the option that an answer settles on; ``None`` if that is unclear.

    The answer may name the option by number, letter or text. It is unclear if a number and a text
    name different options, if two texts occur, or if a text occurs beside a word of denial.
    """
    labelled, named = _labelled(response, len(choices)), _named(response, choices)
    if len(named) > 1:
        return None
    if labelled is None:
        is_denied = any(_DENIAL.search(response) and not _DENIAL.search(choices[i]) for i in named)
        return named[0] if named and not is_denied else None
    return labelled if named in ([], [labelled]) else None


def _labelled(response: str, count: int) -> int | None:
    """Return the index of the option that a number or letter names."""
    text = plain_text(response).strip().strip("*_`\"' ")
    at_start = _ALONE.fullmatch(text) or _LEADING.match(text)
    announced = _ANNOUNCED.findall(text)
    label = at_start[1] if at_start else announced[-1] if announced else ""
    if not label:
        return None
    index = int(label) - 1 if label.isdigit() else ord(label.casefold()) - ord("a")
    return index if 0 <= index < count else None


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


def ranking_of(response: str, items: Sequence[str]) -> tuple[int, ...] | None:
    """Return the order that an answer gives, as indices into ``items``.

    The rule reads ``A > B > C``, numbered lines, commas, and items with their ranks (``B: 1, A:
    2``). The last line of the answer or, failing that, the whole must hold every item exactly once.

    Returns:
        ``None`` unless the order is whole and clear.
    """
    lines = [line for line in plain_text(response).splitlines() if line.strip()]
    for text in (lines[-1] if lines else "", response):
        ranked = _ranks(text, items) or _positions(text, items)
        if ranked is not None:
            return ranked
    return None


def _pattern(item: str) -> str:
    """Return a regular expression for an item's words, with anything but words between them."""
    words = r"\W+".join(map(re.escape, simplified(item).split()))
    return rf"(?<!\w){words}(?!\w)"


def _positions(text: str, items: Sequence[str]) -> tuple[int, ...] | None:
    """Return the order in which the items occur; ``None`` unless each occurs exactly once."""
    text = plain_text(text).casefold()
    starts = [[match.start() for match in re.finditer(_pattern(item), text)] for item in items]
    if any(len(of_item) != 1 for of_item in starts):
        return None
    order = tuple(sorted(range(len(items)), key=lambda index: starts[index][0]))
    # "C < B < A" runs from the smallest to the largest.
    return order[::-1] if "<" in text and ">" not in text else order


def _ranks(text: str, items: Sequence[str]) -> tuple[int, ...] | None:
    """Return the order by the rank after each item; ``None`` unless the ranks are 1 to n."""
    text = plain_text(text).casefold()
    if re.match(r"\W*\d", text):  # a numbered list: its numbers stand before the items
        return None
    matches = [re.findall(_pattern(item) + _RANK_AFTER, text) for item in items]
    if any(len(of_item) != 1 for of_item in matches):
        return None
    ranks = [int(of_item[0]) for of_item in matches]
    if sorted(ranks) != list(range(1, len(items) + 1)):
        return None
    return tuple(sorted(range(len(items)), key=ranks.__getitem__))


def number_is_right(response: str, key: float, unit: str) -> bool | None:
    """Return whether an answer's final number is within 10 % of the key; ``None`` if unclear."""
    quantity = final_quantity(response)
    return None if quantity is None else is_close(quantity, key, unit)
