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


@dataclass(frozen=True)
class Situation:
    """The facts that a question is about, its language, and whether the tolerance is granted."""

    facts: Facts
    language: Language
    tolerance: bool

    @property
    def answers(self) -> list[Element]:
        """List the right answers."""
        return list(self.facts.answers)

    @cached_property
    def decoys(self) -> list[Element]:
        """List the decoys that no rule could take for an answer."""
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

    def _with_wrong(self, rng: Random) -> list[Element]:
        """Replace one of the answers with a decoy; return none where there is no decoy."""
        if not self.decoys:
            return []
        wrong = rng.choice(self.decoys)
        claimed = self.answers
        claimed[rng.randrange(len(claimed))] = wrong
        return claimed

    def everything(self, rng: Random) -> Content:
        """Claim all answers."""
        return Content(_spell(rng, self.answers))

    def everything_reordered(self, rng: Random) -> Content | None:
        """Claim all answers in another order."""
        answers = self.answers
        if len(answers) < 2 or self.facts.ordered:
            return None
        while answers == self.answers:
            rng.shuffle(answers)
        return Content(_spell(rng, answers))

    def everything_respelled(self, rng: Random) -> Content | None:
        """Claim all answers, spelled otherwise than in the references wherever possible."""
        if not any(answer.aliases for answer in self.answers):
            return None
        return Content(tuple(answer.spell(rng, 1.0) for answer in self.answers))

    def everything_not_foil(self, rng: Random) -> Content | None:
        """Claim all answers, and name a wrong element only to drop it."""
        return self._not_foil(rng, self.answers)

    def _not_foil(self, rng: Random, claimed: list[Element]) -> Content | None:
        if not (claimed and self.decoys):
            return None
        items = _spell(rng, claimed)
        return Content(items, _spell(rng, [rng.choice(self.decoys)]))

    def within_tolerance(self, rng: Random) -> Content | None:
        """Claim all answers, one number off by less than the 5 % allowed; often just inside."""
        if not self.tolerance:
            return None
        return self.moved(rng, rng.choice((0.001, 0.04)), TOLERANCE - EDGE)

    def letters_and_texts(self, rng: Random) -> Content | None:
        """Claim letter and text of all right options."""
        shape = rng.choice(("{0}. {1}", "{0}) {1}", "({0}) {1}"))
        claimed = tuple(shape.format(answer.letter, answer.choice) for answer in self.answers)
        return Content(claimed) if self.answers[0].letter else None

    def some_answers(self, rng: Random) -> Content | None:
        """Claim some but not all answers."""
        subset = self.some(rng)
        return Content(_spell(rng, subset)) if subset else None

    def some_not_foil(self, rng: Random) -> Content | None:
        """Claim some answers, and name a wrong element only to drop it."""
        return self._not_foil(rng, self.some(rng))

    def wrong_element(self, rng: Random) -> Content | None:
        """Claim the answers with one replaced by a decoy; for a single answer, the decoy alone."""
        claimed = self._with_wrong(rng)
        return Content(_spell(rng, claimed)) if claimed else None

    def extra_element(self, rng: Random) -> Content | None:
        """Claim all answers and a decoy."""
        if not self.decoys or self.facts.alternatives:
            return None
        claimed = self.answers
        claimed.insert(rng.randint(0, len(claimed)), rng.choice(self.decoys))
        return Content(_spell(rng, claimed))

    def some_and_wrong(self, rng: Random) -> Content | None:
        """Claim some answers and a decoy: still wrong, not partial."""
        subset = self.some(rng)
        if not (subset and self.decoys):
            return None
        return Content(_spell(rng, [*subset, rng.choice(self.decoys)]))

    def near_miss(self, rng: Random) -> Content | None:
        """Claim a look-alike for one answer: a similar name, another unit, a neighbouring date."""
        claimed = self.answers
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

    def off_number(self, rng: Random) -> Content | None:
        """Claim one number slightly off, where no tolerance is allowed."""
        return None if self.tolerance else self.moved(rng, 0.0005, 0.15)

    def outside_tolerance(self, rng: Random) -> Content | None:
        """Claim one number off by more than the 5 % allowed; often just outside."""
        if not self.tolerance:
            return None
        return self.moved(rng, TOLERANCE + EDGE, rng.choice((0.065, 0.25)))

    def wrong_not_right(self, rng: Random) -> Content | None:
        """Name a right element and drop it in favour of a wrong one."""
        if not self.decoys:
            return None
        claimed = self.answers
        index = rng.randrange(len(claimed))
        dropped, claimed[index] = claimed[index], rng.choice(self.decoys)
        return Content(_spell(rng, claimed), _spell(rng, [dropped]))

    def right_or_wrong(self, rng: Random) -> Content | None:
        """Offer the only answer and a decoy as two guesses."""
        if not self.decoys or len(self.answers) > 1:
            return None
        pair = [_spell(rng, self.answers), _spell(rng, [rng.choice(self.decoys)])]
        rng.shuffle(pair)
        return Content(*pair)

    def wrong_letter(self, rng: Random) -> Content | None:
        """Claim the letters of the right options, one of them exchanged for a wrong one."""
        if not self.decoys or not self.decoys[0].letter:
            return None
        return _letters(self._with_wrong(rng))

    def nothing(self, rng: Random) -> Content:
        """Claim nothing at all."""
        return Content()


@dataclass(frozen=True)
class Behaviour:
    """A named way to answer, the label it earns and the families of wordings that suit it."""

    name: str
    label: str
    families: tuple[str, ...]
    choose: Callable[[Situation, Random], Content | None]
    """Draws a content, or returns ``None`` where the situation does not allow the behaviour."""
    weight: int


_REASONED = (*STATE, "reasoned")
_OPTION = ("bare", "label", "reasoned")
BEHAVIOURS = tuple(
    Behaviour(*fields)
    for fields in (
        ("exact", "Correct", STATE, Situation.everything, 24),
        ("reordered", "Correct", STATE, Situation.everything_reordered, 10),
        ("respelled", "Correct", STATE, Situation.everything_respelled, 18),
        ("reasoning", "Correct", ("reasoned",), Situation.everything, 12),
        ("late_correction", "Correct", ("corrected",), Situation.everything_not_foil, 9),
        ("contrast", "Correct", ("contrast",), Situation.everything_not_foil, 9),
        ("hedged", "Correct", ("hedged",), Situation.everything, 8),
        ("within_tolerance", "Correct", _REASONED, Situation.within_tolerance, 60),
        ("option_letter", "Correct", _OPTION, lambda known, rng: _letters(known.answers), 20),
        ("option_text", "Correct", _OPTION, Situation.letters_and_texts, 20),
        ("subset", "Partial", STATE, Situation.some_answers, 30),
        ("subset_reasoning", "Partial", ("reasoned",), Situation.some_answers, 10),
        ("subset_late_correction", "Partial", ("corrected",), Situation.some_not_foil, 8),
        ("subset_contrast", "Partial", ("contrast",), Situation.some_not_foil, 8),
        ("subset_hedged", "Partial", ("hedged",), Situation.some_answers, 6),
        ("subset_letter", "Partial", _OPTION, lambda known, rng: _letters(known.some(rng)), 30),
        ("wrong_element", "Wrong", STATE, Situation.wrong_element, 26),
        ("wrong_reasoning", "Wrong", ("reasoned",), Situation.wrong_element, 10),
        ("wrong_hedged", "Wrong", ("hedged",), Situation.wrong_element, 7),
        ("extra_element", "Wrong", _REASONED, Situation.extra_element, 18),
        ("subset_and_wrong", "Wrong", STATE, Situation.some_and_wrong, 8),
        ("near_miss", "Wrong", _REASONED, Situation.near_miss, 18),
        ("off_number", "Wrong", _REASONED, Situation.off_number, 12),
        ("outside_tolerance", "Wrong", _REASONED, Situation.outside_tolerance, 60),
        ("wrong_late_correction", "Wrong", ("corrected",), Situation.wrong_not_right, 9),
        ("rejected_truth", "Wrong", ("contrast",), Situation.wrong_not_right, 9),
        ("two_guesses", "Wrong", ("guesses",), Situation.right_or_wrong, 7),
        ("wrong_letter", "Wrong", _OPTION, Situation.wrong_letter, 24),
        ("refusal", "Wrong", ("refusal",), Situation.nothing, 10),
        ("cut_off", "Wrong", ("cut",), Situation.everything_not_foil, 12),
        ("empty", "Wrong", ("empty",), Situation.nothing, 3),
    )
)
