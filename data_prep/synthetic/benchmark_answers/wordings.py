"""Tables of wordings that responses are made with, one class for each benchmark.

``words/benchmark_answers.yaml`` fills all of them twice, for training and for test rows. The two
share no wording, no topic and no question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from data_prep.synthetic.words import texts, words_of

Side = Literal["training", "held_out"]
Texts = tuple[str, ...]


@dataclass(frozen=True)
class Topic:
    """Quantity that a made chart shows, and the range of its values."""

    measure: str
    unit: str
    things: str
    """What the chart compares, in the plural."""
    low: int
    high: int


@dataclass(frozen=True)
class ChartHalWordings:
    """Words of questions about charts and of responses that do or do not make something up.

    Slots: ``measure``, ``unit`` and ``things`` of the topic; ``a`` and ``b``, things in the chart;
    ``value_a`` and ``value_b``, their values with unit; ``other``, a thing that the chart lacks;
    ``asked``, a subject that has nothing to do with the chart; ``claim``, a false claim; ``x``, an
    answer; ``cause``, an explanation.
    """

    subjects: Texts
    """Subjects that have nothing to do with any chart."""
    causes: Texts
    irrelevant_questions: Texts
    inexistent_closed_questions: Texts
    inexistent_open_questions: Texts
    claims: Texts
    """False claims, with ``a`` and ``false_a``, a wrong value of it."""
    contradictory_closed_questions: Texts
    contradictory_unanswered_questions: Texts
    """Questions that have no answer once their claim is given up."""
    contradictory_open_questions: Texts
    normal_closed_questions: Texts
    normal_open_questions: Texts
    unrelated: Texts
    """Say that the question is unrelated to the chart."""
    lacking: Texts
    """Say that the chart lacks what is asked for."""
    denying: Texts
    """Say that the claim of the question is false."""
    declining: Texts
    """Say that the question cannot be answered; follow one of the three above."""
    answering: Texts
    """Give the answer ``x``."""
    tentative: Texts
    """Offer a cause as a possibility."""
    certain: Texts
    """State a cause as a fact."""
    padding: Texts
    """Say something about the chart that answers nothing."""


@dataclass(frozen=True)
class SimpleVQAWordings:
    """Words of questions about pictures, and of answers, in one language.

    Slots: ``w``, an invented name that makes the question new; ``x``, what is claimed; ``y``,
    something else that is only mentioned; ``part``, a part of the answer.
    """

    questions: Mapping[str, Texts]
    """By type of truth: person, town, title, thing, year, number, names."""
    claiming: Texts
    """Claim ``x``, plainly, hedged or corrected."""
    claiming_beside: Texts
    """Claim ``x`` and reject ``y``."""
    unattempted: Texts
    """Claim nothing."""
    excluding: Texts
    """Deny ``x`` and claim nothing else."""
    alternatives: Texts
    """Guess ``x`` or ``y``."""
    partly: Texts
    """Name ``part`` and say that the rest is unknown."""
    rough: Texts
    """Give a bound or an estimate ``x`` of a number."""
    joints: Texts
    """Stand between the elements of a list."""


@dataclass(frozen=True)
class ChartomWordings:
    """Words of FACT questions and of answers to them.

    Slots: ``x``, what the answer settles on; ``y``, something else; ``a`` and ``b``, numbers of the
    chart; ``half``, half of ``x``; ``text``, ``number`` and ``letter`` of an option, with ``2`` for
    another one; ``order``, a ranking as a list; ``backward``, the same from the other end.
    """

    number_questions: Texts
    choice_questions: Texts
    ranking_questions: Texts
    """Ask for an order from largest to smallest."""
    plain: Texts
    approximate: Texts
    data_beside: Texts
    working: Texts
    corrected: Texts
    misled: Texts
    denying_other: Texts
    markup: Texts
    long_reasoning: Texts
    refusing: Texts
    denying: Texts
    """Deny ``x`` and settle on nothing."""
    alternatives: Texts
    ranges: Texts
    """From ``x`` to ``y``, settled on nothing."""
    choosing: Texts
    choosing_beside: Texts
    undecided: Texts
    """Settle on no option."""
    ordered: Texts
    ordered_backward: Texts
    """Give the order from smallest to largest, and say so."""
    unordered: Texts
    """Say that no order can be given."""


@dataclass(frozen=True)
class Wordings:
    """All wordings of one side: training or test."""

    topics: tuple[Topic, ...]
    charthal: ChartHalWordings
    simplevqa: Mapping[str, SimpleVQAWordings]
    """By variant of the task: ``english`` and ``chinese``."""
    chartom: ChartomWordings


@cache
def wordings_for(side: Side) -> Wordings:
    """Return all wordings of a side."""
    table = words_of("benchmark_answers")[side]
    return Wordings(
        topics=tuple(Topic(**topic) for topic in table["topics"]),
        charthal=ChartHalWordings(**_read(table["charthal"])),
        simplevqa={
            name: SimpleVQAWordings(**_read(words)) for name, words in table["simplevqa"].items()
        },
        chartom=ChartomWordings(**_read(table["chartom"])),
    )


def _read(table: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _read(value) if isinstance(value, dict) else texts(value)
        for name, value in table.items()
    }
