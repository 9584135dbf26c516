"""Invented people, places, titles and things, in English and Chinese.

Names are put together from syllables and short lists, so that no judge can know a fact about them
and none occurs often enough to be remembered.
"""

from __future__ import annotations

from random import Random
from typing import Literal

from data_prep.made.words.wordings import words_of

Language = Literal["en", "zh"]


def _draw(rng: Random, language: Language, table: str) -> str:
    return str(rng.choice(words_of("names")[language][table]))


def word(rng: Random, language: Language, syllables: int = 2) -> str:
    """Invent a single name: ``Tolven``, or its Chinese-sounding counterpart ``托尔文``."""
    if language == "zh":
        return "".join(rng.sample(words_of("names")["zh"]["sounds"], syllables + 1))
    while True:
        parts = [_draw(rng, "en", "onsets") + _draw(rng, "en", "vowels") for _ in range(syllables)]
        name = "".join(parts) + _draw(rng, "en", "codas")
        if name not in words_of("names")["en"]["real_words"]:
            return name.capitalize()


def sibling(rng: Random, name: str, language: Language) -> str:
    """Invent a name that looks like ``name`` but ends in another syllable."""
    while True:
        if language == "zh":
            changed = name[:-1] + _draw(rng, "zh", "given" if len(name) < 4 else "sounds")
        else:
            ending = "".join(_draw(rng, "en", part) for part in ("onsets", "vowels", "codas"))
            changed = name[: max(2, len(name) - 3)] + ending
        if changed != name and not changed.startswith(name) and not name.startswith(changed):
            return changed


def person(rng: Random, language: Language) -> tuple[str, str, str]:
    """Invent a person: given name, middle name and surname.

    The middle name may be empty; a Chinese one always is.
    """
    if language == "zh":
        given = rng.sample(words_of("names")["zh"]["given"], rng.choice((1, 2, 2)))
        return "".join(given), "", surname(rng)
    middle = word(rng, language, 2) if rng.random() < 0.4 else ""
    return word(rng, language, 2), middle, word(rng, language, rng.choice((2, 3)))


def surname(rng: Random) -> str:
    """Draw a Chinese surname."""
    return _draw(rng, "zh", "surnames")


def full_name(rng: Random, language: Language) -> str:
    """Invent a person who has no middle name."""
    given, _, family = person(rng, language)
    return family + given if language == "zh" else f"{given} {family}"


def town(rng: Random, language: Language) -> str:
    """Invent a town."""
    if language == "zh":
        name = "".join(rng.sample(words_of("names")["zh"]["place_heads"], 2))
    else:
        name = word(rng, language)
    return name + _draw(rng, language, "place_endings")


def title(rng: Random, language: Language) -> str:
    """Invent the title of a song, book or film, without an article or quotation marks."""
    adjective = _draw(rng, language, "adjectives")
    if language == "zh":
        return f"{adjective}的{word(rng, 'zh', 1)}{_draw(rng, 'zh', 'nouns')}"
    return f"{adjective} {_draw(rng, 'en', 'nouns')} of {word(rng, 'en')}"


def thing(rng: Random, language: Language) -> str:
    """Invent a kind of goods: ``tin lanterns``."""
    gap = "" if language == "zh" else " "
    return f"{_draw(rng, language, 'materials')}{gap}{_draw(rng, language, 'objects')}"
