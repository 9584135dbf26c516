"""Responses that meet a criterion or miss it, of which a checker or the construction tells which.

Four rows belong together: two demands and two responses, each of which meets one demand and misses
the other. So neither the demands nor the responses alone tell the label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from data_prep.made.criterion_kinds import KINDS, UNSEEN_KINDS, Sides, Writer
from data_prep.made.words.wordings import WordSplit, draw_weighted, seeded_rng, words_of
from judging.tasks.criterion import FAIL, PASS
from judging.types import LabelledExample

ROWS_PER_GROUP = 4
QUESTION_SHARE = 0.6
"""Share of groups with a question, where the kind does not need one."""
REFERENCE_SHARE = 0.15
"""Share of groups with a reference, where the kind does not need one."""
DECEIVED_SHARE = 0.25
"""Share of responses that claim to pass, whether they do or not."""
MOST_TRIES = 200


def generate_criteria(
    num_rows: int, seed: int, split: WordSplit, *, unseen_kinds: bool = False
) -> Iterator[LabelledExample]:
    """Stream examples of task ``criterion``, four to a group, half of them ``Pass``.

    ``unseen_kinds`` are kinds of criteria that training data never show, and need split ``test``.
    """
    kinds = UNSEEN_KINDS if unseen_kinds else KINDS
    name = f"criterion-{'kinds' if unseen_kinds else split}-{seed}"
    for index in range(num_rows):
        number, place = divmod(index, ROWS_PER_GROUP)
        rng = seeded_rng(name, number)
        kind = draw_weighted(rng, {each: weight for each, (weight, _) in kinds.items()})
        sides, deceptions = _draw(rng, kind, kinds[kind][1], split)
        asking, answering = divmod(place, 2)
        asked = sides[asking]
        by_checker = all(demand.check for demand in asked.demands)
        yield LabelledExample(
            id=f"{name}-{index}",
            task="criterion",
            question=asked.question,
            criteria=tuple(demand.text for demand in asked.demands),
            references=asked.references,
            responses=(sides[answering].response,),
            label=PASS if asking == answering else FAIL,
            metadata={
                "domain": kind,
                "deception": deceptions[answering],
                "label_by": "checker" if by_checker else "construction",
            },
            group=asked.question or " | ".join(side.response for side in sides),
            source="criterion",
        )


def _draw(
    rng: Random, kind: str, make: Callable[[Writer], Sides], split: WordSplit
) -> tuple[Sides, tuple[str, str]]:
    """Draw sides that each meet their own demands alone, and how each response deceives."""
    for _ in range(MOST_TRIES):
        writer = Writer(rng, split)
        sides = make(writer)
        if not _is_crossed(sides):
            continue
        if not any(side.question for side in sides):
            question = writer.question if rng.random() < QUESTION_SHARE else ""
            shown = writer.sentences(1, 1) if rng.random() < REFERENCE_SHARE else []
            one, other = (
                replace(side, question=question, references=tuple(shown)) for side in sides
            )
            sides = one, other
        done, names = list(sides), ["none", "none"]
        for place in range(2):
            if rng.random() >= DECEIVED_SHARE or kind == "language":
                continue
            name = rng.choice(list(words_of("criterion")["deceptions"]))
            said = rng.choice(words_of("criterion")["deceptions"][name][split])
            whole = done[place].response
            texts = [f"{whole}\n{said}", f"{said}\n{whole}"] if rng.random() < 0.7 else [said]
            deceived = [*done]
            deceived[place] = replace(done[place], response=rng.choice(texts))
            is_whole = whole in deceived[place].response
            is_checked = all(each.check for side in sides for each in side.demands)
            if (is_whole or is_checked) and _is_crossed((deceived[0], deceived[1])):
                done, names[place] = deceived, name
        return (done[0], done[1]), (names[0], names[1])
    raise AssertionError(f"no crossed sides of kind {kind} in {MOST_TRIES} tries")


def _is_crossed(sides: Sides) -> bool:
    """Tell whether no checker says that a response misses its own demands or meets the other's."""
    return all(
        sides[place].meets(sides[place]) is not False
        and sides[place].meets(sides[1 - place]) is not True
        for place in range(2)
    )
