"""Balance classes, and build a test of hard and new cases (HiEval, section on error analysis)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

from data_prep.splits import shuffled
from judging.errors import CustosError
from judging.types import LabelledExample, type_of

HARD_SHARE = 0.6
"""Of the paper's test: cases of the quick-scoring test that models find hard. The rest is new."""

Item = tuple[str, tuple[str, ...]]
"""Question and responses: the same item under two tasks."""


def item_of(example: LabelledExample) -> Item:
    """What two labelled examples of one item have in common, whatever they are asked for."""
    return example.question, example.responses


def class_of(example: LabelledExample) -> str:
    """The error type, or the label of an example without one."""
    return type_of(example.label) or example.label


def balanced_sample(
    examples: Iterable[LabelledExample], per_class: int | None = None, seed: int = 0
) -> list[LabelledExample]:
    """Draw as many examples of every class.

    Args:
        examples: Examples of one task.
        per_class: Most of each class; default as many as the rarest class has.
        seed: Which examples to draw.

    Returns:
        The sample in an order fixed by the seed, not by the order given.
    """
    by_class = _by_class(shuffled(examples, seed))
    most = min(map(len, by_class.values()), default=0) if per_class is None else per_class
    return shuffled((row for rows in by_class.values() for row in rows[:most]), seed)


def hard_and_new_test(
    examples: Sequence[LabelledExample],
    hard: Collection[Item],
    per_type: int,
    seed: int = 0,
    hard_share: float = HARD_SHARE,
) -> tuple[list[LabelledExample], list[LabelledExample]]:
    """Draw a test of which a fixed share of every error type is hard.

    A type with too few hard or too few new cases gets fewer than asked, in the same proportion.

    Args:
        examples: Error-analysis examples; those without an error type are never drawn.
        hard: Items that count as hard (:func:`item_of`).
        per_type: How many of each error type.
        seed: Which examples to draw.
        hard_share: Share of hard cases.

    Returns:
        The test, and the examples left to train on: neither drawn nor hard.

    Raises:
        CustosError: If an error type has no hard or no new case.
    """
    drawn: list[LabelledExample] = []
    errors = [example for example in shuffled(examples, seed) if type_of(example.label)]
    for name, rows in _by_class(errors).items():
        old = [row for row in rows if item_of(row) in hard]
        new = [row for row in rows if item_of(row) not in hard]
        num = min(
            per_type, math.floor(len(old) / hard_share), math.floor(len(new) / (1 - hard_share))
        )
        num_hard = round(hard_share * num)
        if not 0 < num_hard < num:
            raise CustosError(
                f"'{name}' has {len(old)} hard and {len(new)} new cases: too few for a test of both"
            )
        drawn += old[:num_hard] + new[: num - num_hard]
    tested = {item_of(row) for row in drawn}
    rest = [row for row in examples if item_of(row) not in tested and item_of(row) not in hard]
    return drawn, rest


def _by_class(examples: Iterable[LabelledExample]) -> dict[str, list[LabelledExample]]:
    by_class: dict[str, list[LabelledExample]] = {}
    for example in examples:
        by_class.setdefault(class_of(example), []).append(example)
    return dict(sorted(by_class.items()))
