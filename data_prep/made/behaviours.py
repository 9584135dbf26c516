"""Behaviours of a responder who knows the truth, each with the label that follows from it.

A behaviour chooses which elements a response claims and which it only mentions. The response is
then worded in one of the behaviour's families of wordings. The label is a property of the
behaviour, so it holds by construction:

- ``Correct``: all answers claimed, nothing else.
- ``Partial``: some answers claimed but not all, nothing else.
- ``Wrong``: something else claimed, or nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from random import Random

from data_prep.made import elements
from data_prep.made.elements import Element
from data_prep.made.words.names import Language
from data_prep.made.worlds import Facts

TOLERANCE = 0.05
EDGE = 0.001
"""Numbers within this share of the tolerance's edge are never written."""
CLEARANCE = 0.06
"""A number that is moved stays further than this share from every other answer."""
STATE = ("bare", "label", "sentence", "elaborate")


@dataclass(frozen=True)
class Content:
    """The elements that a response claims, and those that it only names."""

    items: tuple[str, ...] = ()
    foil: tuple[str, ...] = ()


@dataclass(frozen=True)
class Situation:
    """The facts that a question is about, its language, and whether the tolerance is granted."""

    facts: Facts
    language: Language
    tolerance: bool

    @property
    def answers(self) -> list[Element]:
        """Return the right answers."""
        return list(self.facts.answers)

    @cached_property
    def decoys(self) -> list[Element]:
        """Return the decoys that no rule could take for an answer."""
        return [
            decoy
            for decoy in self.facts.decoys
            if not (self.tolerance and _is_near(decoy.value, self.answers, TOLERANCE + EDGE))
        ]

    def some(self, rng: Random) -> list[Element]:
        """Draw some but not all of several answers, in order; none of a single answer."""
        answers = self.answers
        if len(answers) < 2:
            return []
        chosen = set(rng.sample(range(len(answers)), rng.randint(1, len(answers) - 1)))
        return [answer for index, answer in enumerate(answers) if index in chosen]

    def moved(self, rng: Random, low: float, high: float) -> Content | None:
        """Claim the answers with one number moved by a share strictly between ``low`` and ``high``.

        Whole numbers stay whole where the range allows it. Return ``None`` where no such number can
        be written, or where it would come near another answer.
        """
        answers = self.answers
        index = rng.randrange(len(answers))
        target = answers[index]
        if target.value is None or target.value == 0:
            return None
        others = answers[:index] + answers[index + 1 :]
        whole = target.value == int(target.value)
        for decimals in (0, 0, 1, 2) if whole else (1, 1, 2):
            share = rng.uniform(low, high) * rng.choice((-1, 1))
            value = round(target.value * (1 + share), decimals)
            off = abs(value - target.value) / abs(target.value)
            if low < off < high and not _is_near(value, others, CLEARANCE):
                answers[index] = elements.quantity(value, self.language, target.unit)
                return Content(_spell(rng, answers))
        return None


def _is_near(value: float | None, others: Iterable[Element], share: float) -> bool:
    return value is not None and any(
        other.value is not None and abs(value - other.value) <= share * abs(other.value)
        for other in others
    )


def _spell(rng: Random, chosen: Iterable[Element]) -> tuple[str, ...]:
    return tuple(element.spell(rng) for element in chosen)


def _letters(chosen: Iterable[Element]) -> Content | None:
    """Claim the letters of options; ``None`` where there are none."""
    letters = tuple(element.letter for element in chosen)
    return Content(letters) if any(letters) else None


def _with_wrong(rng: Random, situation: Situation) -> list[Element]:
    """Replace one of the answers with a decoy; return none where there is no decoy."""
    if not situation.decoys:
        return []
    wrong = rng.choice(situation.decoys)
    claimed = situation.answers
    claimed[rng.randrange(len(claimed))] = wrong
    return claimed


def _everything(rng: Random, situation: Situation) -> Content:
    return Content(_spell(rng, situation.answers))


def _everything_reordered(rng: Random, situation: Situation) -> Content | None:
    answers = situation.answers
    if len(answers) < 2 or situation.facts.ordered:
        return None
    while answers == situation.answers:
        rng.shuffle(answers)
    return Content(_spell(rng, answers))


def _everything_respelled(rng: Random, situation: Situation) -> Content | None:
    """Claim all answers, spelled otherwise than in the references wherever possible."""
    if not any(answer.aliases for answer in situation.answers):
        return None
    return Content(tuple(answer.spell(rng, 1.0) for answer in situation.answers))


def _everything_not_foil(rng: Random, situation: Situation) -> Content | None:
    """Claim all answers, and name a wrong element only to drop it."""
    return _not_foil(rng, situation, situation.answers)


def _not_foil(rng: Random, situation: Situation, claimed: list[Element]) -> Content | None:
    if not (claimed and situation.decoys):
        return None
    items = _spell(rng, claimed)
    return Content(items, _spell(rng, [rng.choice(situation.decoys)]))


def _within_tolerance(rng: Random, situation: Situation) -> Content | None:
    """Claim all answers, one number off by less than the 5 % allowed; often just inside."""
    if not situation.tolerance:
        return None
    return situation.moved(rng, rng.choice((0.001, 0.04)), TOLERANCE - EDGE)


def _all_letters(rng: Random, situation: Situation) -> Content | None:
    return _letters(situation.answers)


def _letters_and_texts(rng: Random, situation: Situation) -> Content | None:
    shape = rng.choice(("{0}. {1}", "{0}) {1}", "({0}) {1}"))
    claimed = tuple(shape.format(answer.letter, answer.choice) for answer in situation.answers)
    return Content(claimed) if situation.answers[0].letter else None


def _some_answers(rng: Random, situation: Situation) -> Content | None:
    subset = situation.some(rng)
    return Content(_spell(rng, subset)) if subset else None


def _some_not_foil(rng: Random, situation: Situation) -> Content | None:
    """Claim some answers, and name a wrong element only to drop it."""
    return _not_foil(rng, situation, situation.some(rng))


def _some_letters(rng: Random, situation: Situation) -> Content | None:
    return _letters(situation.some(rng))


def _wrong_element(rng: Random, situation: Situation) -> Content | None:
    """Claim the answers with one replaced by a decoy; for a single answer, the decoy alone."""
    claimed = _with_wrong(rng, situation)
    return Content(_spell(rng, claimed)) if claimed else None


def _extra_element(rng: Random, situation: Situation) -> Content | None:
    if not situation.decoys or situation.facts.alternatives:
        return None
    claimed = situation.answers
    claimed.insert(rng.randint(0, len(claimed)), rng.choice(situation.decoys))
    return Content(_spell(rng, claimed))


def _some_and_wrong(rng: Random, situation: Situation) -> Content | None:
    """Claim some answers and a decoy: still wrong, not partial."""
    subset = situation.some(rng)
    if not (subset and situation.decoys):
        return None
    return Content(_spell(rng, [*subset, rng.choice(situation.decoys)]))


def _near_miss(rng: Random, situation: Situation) -> Content | None:
    """Claim a look-alike for one answer: a similar name, another unit, a neighbouring date."""
    claimed = situation.answers
    right = {spelling for answer in claimed for spelling in (answer.text, *answer.aliases)}
    targets = [
        (index, near)
        for index, answer in enumerate(claimed)
        for near in answer.lookalikes
        if near not in right
    ]
    if not targets:
        return None
    index, near = rng.choice(targets)
    claimed[index] = Element(near)
    return Content(_spell(rng, claimed))


def _off_number(rng: Random, situation: Situation) -> Content | None:
    """Claim one number slightly off, where no tolerance is allowed."""
    return None if situation.tolerance else situation.moved(rng, 0.0005, 0.15)


def _outside_tolerance(rng: Random, situation: Situation) -> Content | None:
    """Claim one number off by more than the 5 % allowed; often just outside."""
    if not situation.tolerance:
        return None
    return situation.moved(rng, TOLERANCE + EDGE, rng.choice((0.065, 0.25)))


def _wrong_not_right(rng: Random, situation: Situation) -> Content | None:
    if not situation.decoys:
        return None
    claimed = situation.answers
    index = rng.randrange(len(claimed))
    dropped, claimed[index] = claimed[index], rng.choice(situation.decoys)
    return Content(_spell(rng, claimed), _spell(rng, [dropped]))


def _right_or_wrong(rng: Random, situation: Situation) -> Content | None:
    """Offer the only answer and a decoy as two guesses."""
    if not situation.decoys or len(situation.answers) > 1:
        return None
    pair = [_spell(rng, situation.answers), _spell(rng, [rng.choice(situation.decoys)])]
    rng.shuffle(pair)
    return Content(*pair)


def _wrong_letter(rng: Random, situation: Situation) -> Content | None:
    """Claim the letters of the right options, one of them exchanged for a wrong one."""
    if not situation.decoys or not situation.decoys[0].letter:
        return None
    return _letters(_with_wrong(rng, situation))


def _nothing(rng: Random, situation: Situation) -> Content:
    return Content()


@dataclass(frozen=True)
class Behaviour:
    """A named way to answer, the label it earns and the families of wordings that suit it."""

    name: str
    label: str
    families: tuple[str, ...]
    choose: Callable[[Random, Situation], Content | None]
    """Draws a content, or returns ``None`` where the situation does not allow the behaviour."""
    weight: int


_REASONED = (*STATE, "reasoned")
_OPTION = ("bare", "label", "reasoned")
BEHAVIOURS = tuple(
    Behaviour(*fields)
    for fields in (
        ("exact", "Correct", STATE, _everything, 24),
        ("reordered", "Correct", STATE, _everything_reordered, 10),
        ("respelled", "Correct", STATE, _everything_respelled, 18),
        ("reasoning", "Correct", ("reasoned",), _everything, 12),
        ("late_correction", "Correct", ("corrected",), _everything_not_foil, 9),
        ("contrast", "Correct", ("contrast",), _everything_not_foil, 9),
        ("hedged", "Correct", ("hedged",), _everything, 8),
        ("within_tolerance", "Correct", _REASONED, _within_tolerance, 60),
        ("option_letter", "Correct", _OPTION, _all_letters, 20),
        ("option_text", "Correct", _OPTION, _letters_and_texts, 20),
        ("subset", "Partial", STATE, _some_answers, 30),
        ("subset_reasoning", "Partial", ("reasoned",), _some_answers, 10),
        ("subset_late_correction", "Partial", ("corrected",), _some_not_foil, 8),
        ("subset_contrast", "Partial", ("contrast",), _some_not_foil, 8),
        ("subset_hedged", "Partial", ("hedged",), _some_answers, 6),
        ("subset_letter", "Partial", _OPTION, _some_letters, 30),
        ("wrong_element", "Wrong", STATE, _wrong_element, 26),
        ("wrong_reasoning", "Wrong", ("reasoned",), _wrong_element, 10),
        ("wrong_hedged", "Wrong", ("hedged",), _wrong_element, 7),
        ("extra_element", "Wrong", _REASONED, _extra_element, 18),
        ("subset_and_wrong", "Wrong", STATE, _some_and_wrong, 8),
        ("near_miss", "Wrong", _REASONED, _near_miss, 18),
        ("off_number", "Wrong", _REASONED, _off_number, 12),
        ("outside_tolerance", "Wrong", _REASONED, _outside_tolerance, 60),
        ("wrong_late_correction", "Wrong", ("corrected",), _wrong_not_right, 9),
        ("rejected_truth", "Wrong", ("contrast",), _wrong_not_right, 9),
        ("two_guesses", "Wrong", ("guesses",), _right_or_wrong, 7),
        ("wrong_letter", "Wrong", _OPTION, _wrong_letter, 24),
        ("refusal", "Wrong", ("refusal",), _nothing, 10),
        ("cut_off", "Wrong", ("cut",), _everything_not_foil, 12),
        ("empty", "Wrong", ("empty",), _nothing, 3),
    )
)
