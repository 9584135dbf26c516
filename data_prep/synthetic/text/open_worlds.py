"""Open questions about invented facts: one right answer, several right spellings."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from data_prep.synthetic.text import elements, names
from data_prep.synthetic.text.elements import Element
from data_prep.synthetic.text.facts import Facts, World
from data_prep.synthetic.text.names import Language


def _facts(rng: Random, make: Callable[[], Element], language: Language) -> Facts:
    """Draw a right element and others of its type; list one to three right spellings."""
    answer, *decoys = elements.distinct(make, 4)
    spellings = list(answer.aliases)
    rng.shuffle(spellings)
    return Facts(
        slots={
            "work": names.title(rng, language),
            "place": names.town(rng, language),
            "thing": names.word(rng, language),
            "date": str(rng.randint(1500, 2020)),
        },
        answers=(answer,),
        decoys=tuple(decoys),
        steps=(_recollection(rng, language),),
        alternatives=(answer.text, *spellings[: rng.choice((0, 0, 1, 2))]),
    )


def _recollection(rng: Random, language: Language) -> str:
    """Draw a sentence of thinking aloud that gives nothing away."""
    town = names.town(rng, language)
    if language == "zh":
        return rng.choice((f"这个问题在{town}的史料中有线索。", f"先回想一下{town}的相关记载。"))
    return rng.choice(
        (
            f"Several sources from {town} touch on this.",
            "I recall that this question has come up before.",
            f"The archive in {town} has a file about it.",
        )
    )


def open_person(rng: Random, language: Language) -> Facts:
    """Ask who did it."""
    return _facts(rng, lambda: elements.person(rng, language, short=True), language)


def open_place(rng: Random, language: Language) -> Facts:
    """Ask where it is."""
    return _facts(rng, lambda: elements.town(rng, language, region=True), language)


def open_year(rng: Random, language: Language) -> Facts:
    """Ask in which year it happened."""
    return _facts(rng, lambda: elements.year(rng, language), language)


def open_date(rng: Random, language: Language) -> Facts:
    """Ask on which day it happened."""
    return _facts(
        rng,
        lambda: elements.date(
            rng.randint(1800, 2020), rng.randint(1, 12), rng.randint(1, 27), language
        ),
        language,
    )


def open_count(rng: Random, language: Language) -> Facts:
    """Ask how many there are."""
    return _facts(rng, lambda: elements.quantity(rng.randint(2, 60), language), language)


def open_title(rng: Random, language: Language) -> Facts:
    """Ask what the work is called."""
    return _facts(rng, lambda: elements.title(rng, language), language)


OPEN_WORLDS: tuple[tuple[World, int], ...] = (
    (open_person, 35),
    (open_place, 20),
    (open_year, 12),
    (open_date, 9),
    (open_count, 9),
    (open_title, 15),
)
