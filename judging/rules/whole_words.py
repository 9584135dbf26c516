"""References in answers: as whole words and whole numbers, whatever the case and punctuation."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_NUMBER_SIGN = re.compile(r"(?<=\d)\.(?=\d)|(?<!\S)-(?=\.?\d)")
"""A decimal point or a leading minus, without which 3.5 would equal 35 and -2 equal 2."""
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


@lru_cache(maxsize=1 << 16)
def normalise(text: str) -> str:
    """Remove case, punctuation, English articles and extra white space, as SQuAD does.

    This works for every script: compatibility forms are unified, and Unicode punctuation and
    symbols are removed. The points and minus signs of numbers stay. A step that would remove the
    whole text is skipped: ``A`` may be an option letter, ``%`` may be the answer.
    """
    text = unicodedata.normalize("NFKC", text).replace("\N{MINUS SIGN}", "-").casefold()
    number_signs = {match.start() for match in _NUMBER_SIGN.finditer(text)}
    without_punctuation = "".join(
        character
        for position, character in enumerate(text)
        if position in number_signs or unicodedata.category(character)[0] not in "PS"
    )
    text = without_punctuation if without_punctuation.strip() else text
    without_articles = _ARTICLE.sub(" ", text)
    text = without_articles if without_articles.strip() else text
    return " ".join(text.split())
