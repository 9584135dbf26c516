"""Option letters and stated confidences in what a model wrote."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from itertools import accumulate

_THOUGHT_END = re.compile(r"</think(?:ing)?>|◁/think▷")
_PARENTHESES = re.compile(r"\([\s*]{0,4}([A-D])[\s*.]{0,4}\)")
_HALF_PARENTHESES = re.compile(r"(?<![A-Za-z0-9])([A-D])[*.]{0,3}\)")
_BOXED = re.compile(r"boxed\s?\{\s?(?:\\[a-z]{2,6}\s?\{\s?)?([A-Da-d])(?![A-Za-z])")
_BARE = re.compile(r"(?<![A-Za-z0-9])(?<![A-Z]\.)([A-D])(?![A-Za-z0-9]|\.[A-Z]\b)")
"""A letter on its own: not in a word, a number ("A4") or an abbreviation ("U.S.A.")."""
_LOWER_CASE_ALONE = re.compile(r"\W{0,8}([a-d])\W{0,8}")

_NEXT_WORD = re.compile(r"[ \t]{1,4}([a-z]+)")
_NEVER_AFTER_AN_ARTICLE = frozenset(
    "is was are and or but because since as for with if than over instead not has does can would "
    "must should seems appears".split()
)

_CONFIDENCE = re.compile(
    r"\[\s?(?:confidence\s?[:=]?\s?)?(\d{1,3}(?:\.\d{1,17})?|\.\d{1,17})\s?(%?)\s?\]", re.IGNORECASE
)


def extract_option(response: str) -> str | None:
    r"""Return the option (``A`` to ``D``) that a free-text answer settles on, or ``None``.

    The forms are tried in the order of TruthfulVQA's public extractor: ``(B)``, then ``B)``, then
    ``\boxed{B}``, then a letter on its own. Of the first form that occurs, the last occurrence
    counts. Unlike there, a letter inside a word is never an answer, nor is the article "A", and the
    thoughts of a reasoning model, up to its closing thought mark, do not count. A lower-case letter
    counts in a box and as the whole answer.
    """
    option = find_option(response)
    return option[0] if option else None


def find_option(response: str) -> tuple[str, int] | None:
    """Return the option as :func:`extract_option` does, and the index of its letter."""
    answer = _after_thought(response)
    characters = [unicodedata.normalize("NFKC", character) for character in answer]
    letter = _option_letter("".join(characters))
    if letter is None:
        return None
    ends = list(accumulate(map(len, characters)))
    index = len(response) - len(answer) + bisect_right(ends, letter.start(1))
    return letter[1].upper(), index


def _option_letter(text: str) -> re.Match[str] | None:
    """Return the match whose first group is the letter of the option."""
    for form in (_PARENTHESES, _HALF_PARENTHESES, _BOXED):
        if letters := list(form.finditer(text)):
            return letters[-1]
    bare = [match for match in _BARE.finditer(text) if not _is_article(text, match)]
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    return bare[-1] if bare else _LOWER_CASE_ALONE.fullmatch(text, start, end)


def extract_confidence(response: str) -> float | None:
    """Return the confidence that an answer states as ``[0.9]`` or ``[90%]``, or ``None``.

    The last bracketed number in [0, 1] counts: ``[3]`` may be a citation, and ``[90]`` has no
    clear meaning.
    """
    stated = _stated_confidence(_after_thought(response))
    return None if stated is None else _confidence(stated)


def without_confidence(response: str) -> str:
    """Return an answer without the confidence that it states, for ``5 [0.85]`` the bare ``5``.

    An answer that is nothing but a bracketed number is left as it is.
    """
    stated = _stated_confidence(response)
    if stated is None:
        return response
    rest = f"{response[: stated.start()]}{response[stated.end() :]}".strip()
    return rest or response


def _stated_confidence(text: str) -> re.Match[str] | None:
    """Return the last bracketed number in [0, 1], also one in full-width characters."""
    plain = (unicodedata.normalize("NFKC", character) for character in text)
    # Positions stay those of the text.
    narrow = "".join(new if len(new) == 1 else old for new, old in zip(plain, text, strict=True))
    matches = [match for match in _CONFIDENCE.finditer(narrow) if _confidence(match) <= 1]
    return matches[-1] if matches else None


def _confidence(match: re.Match[str]) -> float:
    return float(match[1]) / (100 if match[2] else 1)


def _after_thought(response: str) -> str:
    return _THOUGHT_END.split(response)[-1]


def _is_article(text: str, letter: re.Match[str]) -> bool:
    following = _NEXT_WORD.match(text, letter.end())
    if letter[1] != "A" or not following or following[1] in _NEVER_AFTER_AN_ARTICLE:
        return False
    before = text[max(0, letter.start() - 10) : letter.start()].rstrip().lower()
    return not before.endswith(("option", "choice"))
