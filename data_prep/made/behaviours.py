"""Behaviours of a responder who knows the truth, each with the label that follows from it.

A behaviour chooses which elements a response claims and which it only mentions. The response is
then worded in one of the behaviour's families of wordings. The label is a property of the
behaviour, so it holds by construction:

- ``Correct``: all answers claimed, nothing else.
- ``Partial``: some answers claimed but not all, nothing else.
- ``Wrong``: something else claimed, or nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
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
class Situation:
    """The facts that a question is about, its language, and whether the tolerance is granted."""

    facts: Facts
    language: Language
    tolerance: bool


@dataclass(frozen=True)
class Content:
    """The elements that a response claims, and those that it only names."""

    items: tuple[str, ...] = ()
    foil: tuple[str, ...] = ()


Choose = Callable[[Random, Situation], Content | None]
"""Draws a content, or returns ``None`` where the situation does not allow the behaviour."""


@dataclass(frozen=True)
class Behaviour:
    """A named way to answer, the label it earns and the families of wordings that suit it."""

    name: str
    label: str
    families: tuple[str, ...]
    choose: Choose
    weight: int = 10


def _spell(rng: Random, chosen: list[Element]) -> tuple[str, ...]:
    return tuple(element.spell(rng) for element in chosen)


def _subset(rng: Random, situation: Situation) -> list[Element]:
    """Draw some but not all of several answers, in order; none of a single answer."""
    answers = situation.facts.answers
    if len(answers) < 2:
        return []
    chosen = set(rng.sample(range(len(answers)), rng.randint(1, len(answers) - 1)))
    return [answer for index, answer in enumerate(answers) if index in chosen]


def _decoys(situation: Situation) -> list[Element]:
    """Return the decoys that no rule could take for an answer."""
    return [decoy for decoy in situation.facts.decoys if not _is_near_an_answer(decoy, situation)]


def _is_near_an_answer(element: Element, situation: Situation) -> bool:
    if not situation.tolerance or element.value is None:
        return False
    return any(
        answer.value is not None
        and abs(element.value - answer.value) <= (TOLERANCE + EDGE) * abs(answer.value)
        for answer in situation.facts.answers
    )


def _with_wrong(rng: Random, situation: Situation, wrong: Element) -> list[Element]:
    """Return the answers with one of them replaced by something wrong."""
    claimed = list(situation.facts.answers)
    claimed[rng.randrange(len(claimed))] = wrong
    return claimed


def _moved(rng: Random, situation: Situation, low: float, high: float) -> list[Element] | None:
    """Move one number of the answers by a share strictly between ``low`` and ``high``.

    Whole numbers stay whole where the range allows it. Return ``None`` where no such number can be
    written, or where it would come near another answer.
    """
    answers = situation.facts.answers
    index = rng.randrange(len(answers))
    target = answers[index]
    if target.value is None or target.value == 0:
        return None
    whole = target.value == int(target.value)
    for decimals in (0, 0, 1, 2) if whole else (1, 1, 2):
        share = rng.uniform(low, high) * rng.choice((-1, 1))
        value = round(target.value * (1 + share), decimals)
        off = abs(value - target.value) / abs(target.value)
        if low < off < high and not _is_near(value, answers[:index] + answers[index + 1 :]):
            moved = elements.quantity(value, situation.language, target.unit)
            return [*answers[:index], moved, *answers[index + 1 :]]
    return None


def _is_near(value: float, others: tuple[Element, ...]) -> bool:
    return any(
        other.value is not None and abs(value - other.value) <= CLEARANCE * abs(other.value)
        for other in others
    )


def everything(rng: Random, situation: Situation) -> Content:
    """Claim all answers."""
    return Content(_spell(rng, list(situation.facts.answers)))


def everything_reordered(rng: Random, situation: Situation) -> Content | None:
    """Claim all answers in another order."""
    if len(situation.facts.answers) < 2 or situation.facts.ordered:
        return None
    shuffled = list(situation.facts.answers)
    while tuple(shuffled) == situation.facts.answers:
        rng.shuffle(shuffled)
    return Content(_spell(rng, shuffled))


def everything_respelled(rng: Random, situation: Situation) -> Content | None:
    """Claim all answers, spelled otherwise than in the references wherever possible."""
    if not any(answer.aliases for answer in situation.facts.answers):
        return None
    return Content(tuple(answer.spell(rng, 1.0) for answer in situation.facts.answers))


def everything_not_foil(rng: Random, situation: Situation) -> Content | None:
    """Claim all answers, and name a wrong element only to drop it."""
    decoys = _decoys(situation)
    if not decoys:
        return None
    return replace(everything(rng, situation), foil=_spell(rng, [rng.choice(decoys)]))


def within_tolerance(rng: Random, situation: Situation) -> Content | None:
    """Claim all answers, one number off by less than the 5 % allowed; often just inside."""
    if not situation.tolerance:
        return None
    low = rng.choice((0.001, 0.04))
    moved = _moved(rng, situation, low, TOLERANCE - EDGE)
    return Content(_spell(rng, moved)) if moved else None


def letters(rng: Random, situation: Situation) -> Content | None:
    """Claim the letters of all right options."""
    answers = situation.facts.answers
    return Content(tuple(answer.letter for answer in answers)) if answers[0].letter else None


def letters_and_texts(rng: Random, situation: Situation) -> Content | None:
    """Claim letter and text of all right options."""
    answers = situation.facts.answers
    shape = rng.choice(("{0}. {1}", "{0}) {1}", "({0}) {1}"))
    claimed = tuple(shape.format(answer.letter, answer.choice) for answer in answers)
    return Content(claimed) if answers[0].letter else None


def some_answers(rng: Random, situation: Situation) -> Content | None:
    """Claim some but not all answers."""
    subset = _subset(rng, situation)
    return Content(_spell(rng, subset)) if subset else None


def some_not_foil(rng: Random, situation: Situation) -> Content | None:
    """Claim some answers, and name a wrong element only to drop it."""
    claimed, decoys = some_answers(rng, situation), _decoys(situation)
    return replace(claimed, foil=_spell(rng, [rng.choice(decoys)])) if claimed and decoys else None


def some_letters(rng: Random, situation: Situation) -> Content | None:
    """Claim the letters of some right options."""
    subset = _subset(rng, situation)
    if not subset or not subset[0].letter:
        return None
    return Content(tuple(answer.letter for answer in subset))


def wrong_element(rng: Random, situation: Situation) -> Content | None:
    """Claim the answers with one replaced by a decoy; for a single answer, the decoy alone."""
    decoys = _decoys(situation)
    return Content(_spell(rng, _with_wrong(rng, situation, rng.choice(decoys)))) if decoys else None


def extra_element(rng: Random, situation: Situation) -> Content | None:
    """Claim all answers and a decoy."""
    decoys = _decoys(situation)
    if not decoys or situation.facts.alternatives:
        return None
    claimed = [*situation.facts.answers]
    claimed.insert(rng.randint(0, len(claimed)), rng.choice(decoys))
    return Content(_spell(rng, claimed))


def some_and_wrong(rng: Random, situation: Situation) -> Content | None:
    """Claim some answers and a decoy: still wrong, not partial."""
    subset, decoys = _subset(rng, situation), _decoys(situation)
    return Content(_spell(rng, [*subset, rng.choice(decoys)])) if subset and decoys else None


def near_miss(rng: Random, situation: Situation) -> Content | None:
    """Claim a look-alike for one answer: a similar name, another unit, a neighbouring date."""
    claimed = list(situation.facts.answers)
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


def off_number(rng: Random, situation: Situation) -> Content | None:
    """Claim one number slightly off, where no tolerance is allowed."""
    if situation.tolerance:
        return None
    moved = _moved(rng, situation, 0.0005, 0.15)
    return Content(_spell(rng, moved)) if moved else None


def outside_tolerance(rng: Random, situation: Situation) -> Content | None:
    """Claim one number off by more than the 5 % allowed; often just outside."""
    if not situation.tolerance:
        return None
    moved = _moved(rng, situation, TOLERANCE + EDGE, rng.choice((0.065, 0.25)))
    return Content(_spell(rng, moved)) if moved else None


def wrong_not_right(rng: Random, situation: Situation) -> Content | None:
    """Name a right element and drop it in favour of a wrong one."""
    decoys = _decoys(situation)
    if not decoys:
        return None
    index = rng.randrange(len(situation.facts.answers))
    claimed = list(situation.facts.answers)
    dropped, claimed[index] = claimed[index], rng.choice(decoys)
    return Content(_spell(rng, claimed), _spell(rng, [dropped]))


def right_or_wrong(rng: Random, situation: Situation) -> Content | None:
    """Offer the only answer and a decoy as two guesses."""
    decoys = _decoys(situation)
    if not decoys or len(situation.facts.answers) > 1:
        return None
    pair = [_spell(rng, list(situation.facts.answers)), _spell(rng, [rng.choice(decoys)])]
    rng.shuffle(pair)
    return Content(*pair)


def wrong_letter(rng: Random, situation: Situation) -> Content | None:
    """Claim the letters of the right options, one of them exchanged for a wrong one."""
    decoys = _decoys(situation)
    if not decoys or not decoys[0].letter:
        return None
    return Content(tuple(item.letter for item in _with_wrong(rng, situation, rng.choice(decoys))))


def nothing(rng: Random, situation: Situation) -> Content:
    """Claim nothing at all."""
    return Content()


B = Behaviour
BEHAVIOURS: tuple[Behaviour, ...] = (
    B("exact", "Correct", STATE, everything, 24),
    B("reordered", "Correct", STATE, everything_reordered, 10),
    B("respelled", "Correct", STATE, everything_respelled, 18),
    B("reasoning", "Correct", ("reasoned",), everything, 12),
    B("late_correction", "Correct", ("corrected",), everything_not_foil, 9),
    B("contrast", "Correct", ("contrast",), everything_not_foil, 9),
    B("hedged", "Correct", ("hedged",), everything, 8),
    B("within_tolerance", "Correct", (*STATE, "reasoned"), within_tolerance, 60),
    B("option_letter", "Correct", ("bare", "label", "reasoned"), letters, 20),
    B("option_text", "Correct", ("bare", "label", "reasoned"), letters_and_texts, 20),
    B("subset", "Partial", STATE, some_answers, 30),
    B("subset_reasoning", "Partial", ("reasoned",), some_answers, 10),
    B("subset_late_correction", "Partial", ("corrected",), some_not_foil, 8),
    B("subset_contrast", "Partial", ("contrast",), some_not_foil, 8),
    B("subset_hedged", "Partial", ("hedged",), some_answers, 6),
    B("subset_letter", "Partial", ("bare", "label", "reasoned"), some_letters, 30),
    B("wrong_element", "Wrong", STATE, wrong_element, 26),
    B("wrong_reasoning", "Wrong", ("reasoned",), wrong_element, 10),
    B("wrong_hedged", "Wrong", ("hedged",), wrong_element, 7),
    B("extra_element", "Wrong", (*STATE, "reasoned"), extra_element, 18),
    B("subset_and_wrong", "Wrong", STATE, some_and_wrong, 8),
    B("near_miss", "Wrong", (*STATE, "reasoned"), near_miss, 18),
    B("off_number", "Wrong", (*STATE, "reasoned"), off_number, 12),
    B("outside_tolerance", "Wrong", (*STATE, "reasoned"), outside_tolerance, 60),
    B("wrong_late_correction", "Wrong", ("corrected",), wrong_not_right, 9),
    B("rejected_truth", "Wrong", ("contrast",), wrong_not_right, 9),
    B("two_guesses", "Wrong", ("guesses",), right_or_wrong, 7),
    B("wrong_letter", "Wrong", ("bare", "label", "reasoned"), wrong_letter, 24),
    B("refusal", "Wrong", ("refusal",), nothing, 10),
    B("cut_off", "Wrong", ("cut",), everything_not_foil, 12),
    B("empty", "Wrong", ("empty",), nothing, 3),
)
