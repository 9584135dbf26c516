"""Draw synthetic quick-score examples whose labels hold by construction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from random import Random
from string import Formatter
from typing import Literal

from data_prep.made.behaviours import BEHAVIOURS, Situation
from data_prep.made.words import names
from data_prep.made.words.names import Language
from data_prep.made.words.wordings import (
    Wording,
    WordingSplit,
    capital,
    draw_weighted,
    join_list,
    question_wordings_of,
    read_wordings,
    seeded_rng,
    wordings_of,
)
from data_prep.made.worlds import OPEN_WORLDS, SET_WORLDS
from judging.types import LabelledExample

WorldSet = Literal["all", "open"]
Join = Literal["and", "comma", "semicolon", "lines", "bullets", "numbered"]

LABEL_SHARES: dict[str, dict[str, float]] = {
    "any": {"Correct": 60, "Wrong": 40},
    "single": {"Correct": 55, "Wrong": 45},
    "several": {"Correct": 37, "Partial": 35, "Wrong": 28},
}
"""Label mix by the answers of a question: alternatives, a single one, or a set of several. These
come to about 45 Correct, 20 Partial and 35 Wrong over the rows of mode ``all``, and to 50, 13 and
37 over all rows."""
ROWS_PER_WORLD = 4
OPEN_SHARE = 0.35
CHINESE_SHARE = 0.3
TOLERANCE_SHARE = 0.5
"""Share of worlds with purely numeric answers that are asked with the 5 % tolerance."""


@dataclass(frozen=True)
class TextQuestion(Wording):
    """One wording of a world's question; its family names language and world."""

    subject: str
    """Noun phrase for the answer: a response can be the sentence ``subject be items``."""
    be: str = ""
    """English verb between subject and answer; Chinese uses one word for all."""
    deed: str = ""
    """Predicate of a question that asks who did something; empty: another question."""
    clause: str = ""
    """Another whole sentence around ``items``."""


@dataclass(frozen=True)
class TextWording(Wording):
    """One wording of a response; its family names language and purpose."""

    join: Join = "and"

    @property
    def purpose(self) -> str:
        """Name what the wording is for: to state, to reason, to correct, to refuse, ..."""
        return self.family.partition(".")[2]

    @cached_property
    def slots(self) -> frozenset[str]:
        """Name the slots that the template needs."""
        return frozenset(name for _, name, _, _ in Formatter().parse(self.template) if name)


questions = cache(partial(read_wordings, "text", "questions", TextQuestion))
responses = cache(partial(read_wordings, "text", "responses", TextWording))


def generate_examples(
    num_rows: int, seed: int, wordings: WordingSplit, worlds: WorldSet = "all"
) -> Iterator[LabelledExample]:
    """Stream labelled examples for the task ``hieval-qs``.

    Every four consecutive rows answer the same question, in four ways. Ids do not name ``worlds``:
    do not mix rows of two sets with one seed. ``open`` worlds keep to open questions in English
    with one answer (``Correct`` or ``Wrong``), which a small backbone learns first.
    """
    for index in range(num_rows):
        name, number = f"synthetic-{wordings}-{seed}", index // ROWS_PER_WORLD
        world = _draw_world(seeded_rng(seed, wordings, "world", number), wordings, worlds)
        example = _draw_example(seeded_rng(seed, wordings, "response", index), *world, wordings)
        yield example.model_copy(update={"id": f"{name}-{index}", "group": f"{name}-{number}"})


def _draw_world(
    rng: Random, wordings: WordingSplit, worlds: WorldSet
) -> tuple[str, Situation, TextQuestion]:
    """Draw the name of a world, its facts and the wording of its question."""
    language: Language = "zh" if rng.random() < CHINESE_SHARE and worlds == "all" else "en"
    choices = OPEN_WORLDS if rng.random() < OPEN_SHARE or worlds == "open" else SET_WORLDS
    world = draw_weighted(rng, {name: weight for name, (_, weight) in choices.items()})
    facts = choices[world][0](rng, language)
    asking = [
        question
        for question in question_wordings_of(questions(), wordings)
        if question.family == f"{language}.{world}"
    ]
    situation = Situation(facts, language, facts.tolerant and rng.random() < TOLERANCE_SHARE)
    return world, situation, rng.choice(asking)


def _draw_example(
    rng: Random, world: str, situation: Situation, question: TextQuestion, wordings: WordingSplit
) -> LabelledExample:
    """Draw a response to a question, and make an example of it that lacks only id and group."""
    facts = situation.facts
    slots = _response_slots(rng, situation, question)
    available = {*slots, "items", "foil"}
    usable = [
        wording
        for wording in wordings_of(responses(), wordings)
        if wording.family.startswith(situation.language) and wording.slots <= available
    ]
    answers = "any" if facts.alternatives else "several" if len(facts.answers) > 1 else "single"
    label = draw_weighted(rng, LABEL_SHARES[answers])
    families = {wording.purpose for wording in usable}
    candidates = {
        behaviour: behaviour.weight
        for behaviour in BEHAVIOURS
        if behaviour.label == label and families & set(behaviour.families)
    }
    content = None
    while content is None:
        behaviour = draw_weighted(rng, candidates)
        content = behaviour.choose(situation, rng)
    wording = rng.choice([wording for wording in usable if wording.purpose in behaviour.families])
    items = _joined(content.items, wording.join, situation.language)
    foil = _joined(content.foil, "and", situation.language)
    filled = {name: text.replace("{items}", items) for name, text in slots.items()}
    return LabelledExample(
        task="hieval-qs",
        variant="tolerance" if situation.tolerance else "plain",
        question=question.template.format(**facts.slots),
        choices=facts.choices,
        references=facts.alternatives or tuple(answer.text for answer in facts.answers),
        reference_mode="any" if facts.alternatives else "all",
        responses=(wording.template.format(**filled, items=items, foil=foil),),
        label=label,
        metadata={
            "form": wording.id,
            "question_form": question.id,
            "world": world,
            "behaviour": behaviour.name,
            "language": situation.language,
        },
        source="synthetic",
    )


def _response_slots(rng: Random, situation: Situation, question: TextQuestion) -> dict[str, str]:
    """Fill every slot that a response may have besides ``items`` and ``foil``."""
    language, facts = situation.language, situation.facts
    subject = question.subject.format(**facts.slots)
    slots = {"subject": subject, "Subject": capital(subject), "be": question.be}
    if question.deed:
        slots["deed"] = question.deed.format(**facts.slots)
    if question.clause:
        slots["clause"] = question.clause.format(**facts.slots, items="{items}")
        slots["Clause"] = capital(slots["clause"])
    if facts.steps:
        slots["steps"] = ("" if language == "zh" else " ").join(facts.steps)
    if facts.alternatives:
        slots["other"] = names.full_name(rng, language)
        slots["town"] = names.town(rng, language)
        slots["year"] = str(rng.randint(1500, 2020))
    return slots


def _joined(items: Sequence[str], join: Join, language: Language) -> str:
    """Write a list of elements in the manner that a wording asks for."""
    if join == "bullets":
        return "\n".join(f"- {item}" for item in items)
    if join == "numbered":
        return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))
    if join == "and" and language == "en":
        return join_list(items)
    comma = ", " if language == "en" else "，"
    return {"lines": "\n", "semicolon": "; ", "comma": comma, "and": "、"}[join].join(items)
