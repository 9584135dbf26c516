"""CHARTOM's FACT answers by rule: options, whole orders, numbers. What stays open says so."""

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
"""Capital letters alone: "the answer is a rise" names no option."""
_DENIAL = re.compile(r"\b(?:not|no|neither|nor|rather than|instead of)\b|n't\b", re.IGNORECASE)
_RANK_AFTER = r"\W{0,4}(?:rank\w*\s*|is\s*|#\s*)?\(?(\d{1,2})(?:st|nd|rd|th)?\b"


def simplified(text: str) -> str:
    """Lower case, words and digits alone, single spaces."""
    return " ".join(re.findall(r"\w+", plain_text(text).casefold()))


def choice_of(response: str, choices: Sequence[str]) -> int | None:
    """Index of the option an answer settles on, by number, letter or text; ``None`` if unclear.

    Where a number and a text name different options, two texts occur, or one occurs beside a word
    of denial, nothing is settled.
    """
    labelled, named = _labelled(response, len(choices)), _named(response, choices)
    if len(named) > 1:
        return None
    if labelled is None:
        is_denied = any(_DENIAL.search(response) and not _DENIAL.search(choices[i]) for i in named)
        return named[0] if named and not is_denied else None
    return labelled if named in ([], [labelled]) else None


def _labelled(response: str, count: int) -> int | None:
    text = plain_text(response).strip().strip("*_`\"' ")
    found = _ALONE.fullmatch(text) or _LEADING.match(text)
    announced = _ANNOUNCED.findall(text)
    label = found[1] if found else announced[-1] if announced else ""
    if not label:
        return None
    index = int(label) - 1 if label.isdigit() else ord(label.casefold()) - ord("a")
    return index if 0 <= index < count else None


def _named(response: str, choices: Sequence[str]) -> list[int]:
    """Options whose text occurs, unless only within a longer option that occurs."""
    text = f" {simplified(response)} "
    named = []
    for index, choice in sorted(enumerate(choices), key=lambda pair: -len(pair[1])):
        wanted = f" {simplified(choice)} "
        if wanted.strip() and wanted in text:
            named.append(index)
            text = text.replace(wanted, " | ")
    return sorted(named)


def ranking_of(response: str, items: Sequence[str]) -> tuple[int, ...] | None:
    """The order an answer gives, as indices into ``items``; ``None`` unless it is whole and clear.

    Reads ``A > B > C``, numbered lines, commas, and items with their ranks (``B: 1, A: 2``). Of a
    longer answer, the last line or, failing that, the whole must hold every item exactly once.
    """
    lines = [line for line in plain_text(response).splitlines() if line.strip()]
    for text in (lines[-1] if lines else "", response):
        ranked = _ranks(text, items) or _positions(text, items)
        if ranked is not None:
            return ranked
    return None


def _pattern(item: str) -> str:
    words = r"\W+".join(map(re.escape, simplified(item).split()))
    return rf"(?<!\w){words}(?!\w)"


def _positions(text: str, items: Sequence[str]) -> tuple[int, ...] | None:
    text = plain_text(text).casefold()
    places = [[match.start() for match in re.finditer(_pattern(item), text)] for item in items]
    if any(len(found) != 1 for found in places):
        return None
    order = tuple(sorted(range(len(items)), key=lambda index: places[index][0]))
    # "C < B < A" runs from the smallest to the largest.
    return order[::-1] if "<" in text and ">" not in text else order


def _ranks(text: str, items: Sequence[str]) -> tuple[int, ...] | None:
    """Order by the rank written after each item; ``None`` unless the ranks are 1 to n."""
    text = plain_text(text).casefold()
    if re.match(r"\W*\d", text):  # a numbered list: its numbers stand before the items
        return None
    found = [re.findall(_pattern(item) + _RANK_AFTER, text) for item in items]
    if any(len(ranks) != 1 for ranks in found):
        return None
    ranks = [int(own[0]) for own in found]
    if sorted(ranks) != list(range(1, len(items) + 1)):
        return None
    return tuple(sorted(range(len(items)), key=ranks.__getitem__))


def number_is_right(response: str, key: float, unit: str) -> bool | None:
    """Whether an answer's final number lies within 10 % of the key; ``None`` if unclear."""
    said = final_quantity(response)
    return None if said is None else is_close(said, key, unit)
