"""Draw questions whose reference is several sentences, and responses of known coverage.

A value of a facet is a group of phrases that mean the same; another group means something else and
contradicts it. The sentences of a facet take any phrase of its values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any, Literal

from data_prep.made.words import names
from data_prep.made.words.wordings import (
    WordSplit,
    capital,
    draw_weighted,
    join_list,
    seeded_rng,
    texts,
    words_of,
)
from judging.tasks.hieval_qs import CORRECT, PARTIAL, WRONG
from judging.types import LabelledExample

Coverage = Literal["all", "some", "none", "contradicted"]
LABELS: dict[Coverage, str] = {
    "all": CORRECT,
    "some": PARTIAL,
    "none": WRONG,
    "contradicted": WRONG,
}
SHARES: dict[Coverage, int] = {"all": 37, "some": 37, "none": 8, "contradicted": 18}
"""Share of rows by what the response gives of the reference, in percent."""
ROWS_PER_QUESTION = 4
SPLIT_REFERENCE_SHARE = 0.25
"""Share of questions whose reference lists its claims one by one instead of as one text."""


@dataclass(frozen=True)
class Facet:
    """One thing that can be asked about a topic."""

    asked: str
    """Name of the facet in a question."""
    values: tuple[tuple[str, ...], ...]
    """Groups of phrases; those of a group mean the same."""
    sentences: Mapping[WordSplit, tuple[str, ...]]
    """Templates with the slots ``{s}`` (what it is about) and ``{v}`` (the value)."""

    @classmethod
    def of(cls, asked: str, values: str, sentences: dict[WordSplit, str]) -> Facet:
        """Make a facet as ``words/claims.yaml`` has it."""
        groups = tuple(tuple(map(str.strip, line.split("/"))) for line in texts(values))
        return cls(asked, groups, {split: texts(lines) for split, lines in sentences.items()})


@dataclass(frozen=True)
class Topic:
    """A kind of thing with its facets."""

    name: str
    """Template with the slot ``{w}`` for an invented word."""
    facets: tuple[Facet, ...]


@cache
def topics() -> tuple[Topic, ...]:
    """List the invented things that claims are about."""
    tables: list[dict[str, Any]] = words_of("claims")["topics"]
    return tuple(
        Topic(table["name"], tuple(Facet.of(**facet) for facet in table["facets"]))
        for table in tables
    )


Claim = tuple[Facet, int]
"""A facet of the topic with the number of the value that is true of it."""


def generate_claims(num_rows: int, seed: int, split: WordSplit) -> Iterator[LabelledExample]:
    """Stream examples of task ``hieval-qs``, mode ``all``, with references of several claims.

    Every four consecutive rows answer the same question. References and responses put a claim into
    different sentences, with phrases of equal meaning. A response that contradicts a claim is
    Wrong, whatever else it says. References are in the sentences of training data.
    """
    words = words_of("claims")
    name = f"claims-{split}-{seed}"
    for index in range(num_rows):
        number = index // ROWS_PER_QUESTION
        rng = seeded_rng(name, number)
        topic: Topic = rng.choice(topics())
        subject = topic.name.format(w=names.word(rng, "en"))
        facets = rng.sample(topic.facets, rng.randint(2, len(topic.facets)))
        claims = [(facet, rng.randrange(len(facet.values))) for facet in facets]
        asked = join_list([facet.asked for facet in facets])
        references = tuple(_put(rng, claim, subject, "train") for claim in claims)
        if rng.random() >= SPLIT_REFERENCE_SHARE:
            references = (" ".join(references),)
        question = rng.choice(texts(words["questions"])).format(s=subject, asked=asked)
        rng = seeded_rng(name, "response", index)
        coverage = draw_weighted(rng, SHARES)
        yield LabelledExample(
            id=f"{name}-{index}",
            task="hieval-qs",
            variant="plain",
            question=capital(question),
            references=references,
            reference_mode="all",
            responses=(_respond(rng, subject, claims, coverage, split),),
            label=LABELS[coverage],
            metadata={"kind": f"claims_{coverage}", "claims": len(claims)},
            group=f"{name}-{number}",
            source="claims",
        )


def _respond(
    rng: Random, subject: str, claims: list[Claim], coverage: Coverage, split: WordSplit
) -> str:
    words, claims = words_of("claims"), list(claims)
    fillers = rng.sample(texts(words["fillers"]), rng.choice((0, 0, 1, 1, 2)))
    if coverage == "none":
        empty = rng.sample(texts(words["empty"]), rng.randint(1, 3))
        return _lay_out(rng, [capital(text.format(s=subject)) for text in empty], fillers)
    if coverage == "some" or (coverage == "contradicted" and rng.random() < 0.4):
        claims = rng.sample(claims, rng.randint(1, len(claims) - 1))
    if coverage == "contradicted":
        changed = rng.randrange(len(claims))
        facet, value = claims[changed]
        others = [number for number in range(len(facet.values)) if number != value]
        claims[changed] = (facet, rng.choice(others))
    if rng.random() < 0.5:
        rng.shuffle(claims)
    sentences = [_put(rng, claim, subject, split) for claim in claims]
    return _lay_out(rng, sentences, fillers)


def _put(rng: Random, claim: Claim, subject: str, split: WordSplit) -> str:
    """Put a claim into a sentence, with any of the phrases for its value."""
    facet, value = claim
    template = rng.choice(facet.sentences[split])
    return capital(template.format(s=subject, v=rng.choice(facet.values[value])))


def _lay_out(rng: Random, sentences: list[str], fillers: list[str]) -> str:
    """Write sentences one after the other, or as a list, with fillers around them."""
    style = rng.choice(("text", "text", "text", "dashes", "numbers"))
    if style == "dashes":
        sentences = [f"- {sentence}" for sentence in sentences]
    elif style == "numbers":
        sentences = [f"{n}. {sentence}" for n, sentence in enumerate(sentences, 1)]
    gap = " " if style == "text" else "\n"
    before = fillers[: rng.randint(0, len(fillers))]
    return gap.join([*before, *sentences, *fillers[len(before) :]])
