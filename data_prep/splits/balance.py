"""Balance classes, and build a test of hard and new cases (HiEval, section on error analysis).

Hard and new are kept apart by question, not by row: another response to a question that an earlier
stage has learned from is neither.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from data_prep.splits.near_duplicates import cluster_examples
from data_prep.splits.splits import shuffled
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
    hard: Sequence[LabelledExample],
    seen: Sequence[LabelledExample],
    per_type: int,
    seed: int = 0,
    hard_share: float = HARD_SHARE,
) -> tuple[list[LabelledExample], list[LabelledExample]]:
    """Draw a test of which a fixed share of every error type is hard.

    A type with too few hard or too few new cases gets fewer than asked, in the same proportion.

    Args:
        examples: Error-analysis examples; those without an error type are never drawn.
        hard: The quick-scoring test; an example of the same item (:func:`item_of`) is hard.
        seen: What the earlier stage was trained on or chosen by. New is an example whose question
            is near none of these and none of ``hard``.
        per_type: How many of each error type.
        seed: Which examples to draw.
        hard_share: Share of hard cases.

    Returns:
        The test, and the examples left to train on: their questions near none that were drawn and
        none of ``hard``. Both come back with ``group`` set to their cluster.

    Raises:
        CustosError: If an error type has no hard or no new case.
    """
    clusters = cluster_examples([*hard, *seen, *examples])
    hard_clusters = set(clusters[: len(hard)])
    old_clusters = hard_clusters | set(clusters[len(hard) : len(hard) + len(seen)])
    examples = [
        row.model_copy(update={"group": cluster})
        for row, cluster in zip(examples, clusters[len(hard) + len(seen) :], strict=True)
    ]
    hard_items = {item_of(row) for row in hard}
    drawn: list[LabelledExample] = []
    errors = [example for example in shuffled(examples, seed) if type_of(example.label)]
    for name, rows in _by_class(errors).items():
        old = [row for row in rows if item_of(row) in hard_items]
        new = [row for row in rows if row.group not in old_clusters]
        num = min(
            per_type, math.floor(len(old) / hard_share), math.floor(len(new) / (1 - hard_share))
        )
        num_hard = round(hard_share * num)
        if not 0 < num_hard < num:
            raise CustosError(
                f"'{name}' has {len(old)} hard and {len(new)} new cases: too few for a test of both"
            )
        drawn += old[:num_hard] + new[: num - num_hard]
    kept_out = hard_clusters | {row.group for row in drawn}
    return drawn, [row for row in examples if row.group not in kept_out]


def _by_class(examples: Iterable[LabelledExample]) -> dict[str, list[LabelledExample]]:
    by_class: dict[str, list[LabelledExample]] = {}
    for example in examples:
        by_class.setdefault(class_of(example), []).append(example)
    return dict(sorted(by_class.items()))
