"""Labels follow from the elements that a behaviour claims."""

import math
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.made.behaviours import BEHAVIOURS, Behaviour, Situation
from data_prep.made.elements import Element, quantity
from data_prep.made.quick_scores import draw_world
from data_prep.made.words.names import Language

seeds = st.integers(min_value=-(2**63), max_value=2**63)


@settings(max_examples=200, deadline=None)
@given(seeds, st.integers(0, 10**6), st.sampled_from(BEHAVIOURS))
def test_label_follows_from_the_elements_claimed(
    seed: int, number: int, behaviour: Behaviour
) -> None:
    situation = draw_world(seed, "all", number).situation
    content = behaviour.choose(Random(seed), situation)
    if content is None:
        return
    claimed = () if behaviour.families in {("cut",), ("refusal",), ("empty",)} else content.items
    if behaviour.families == ("guesses",):
        claimed = (*content.items, *content.foil)
    assert behaviour.label == _label_of(claimed, situation)


def _label_of(claimed: tuple[str, ...], situation: Situation) -> str:
    hits = [_meant(item, situation) for item in claimed]
    if not claimed or None in hits:
        return "Wrong"
    return "Correct" if len(set(hits)) == len(situation.facts.answers) else "Partial"


def _meant(item: str, situation: Situation) -> int | None:
    """Index of the answer that ``item`` spells, or is a number near enough to."""
    for index, answer in enumerate(situation.facts.answers):
        if item in {answer.text, *answer.aliases}:
            return index
        if answer.letter and _bare(item) in (answer.letter, f"{answer.letter} {answer.choice}"):
            return index
        if situation.tolerance and item in _spellings_near(answer, situation.language):
            return index
    return None


def _bare(item: str) -> str:
    return " ".join(item.translate(str.maketrans("().", "   ")).split())


def _spellings_near(answer: Element, language: Language) -> set[str]:
    """All spellings of numbers with up to two decimals within 5 % of an answer."""
    value = answer.value or 0.0
    lowest, highest = math.ceil(95 * value), math.floor(105 * value)
    near = (
        quantity(hundredths / 100, language, answer.unit) for hundredths in range(lowest, highest)
    )
    return {spelling for number in near for spelling in (number.text, *number.aliases)}
