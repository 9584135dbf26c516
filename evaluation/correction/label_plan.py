"""The number of items that people must label for an interval of a given width."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evaluation.correction.intervals import variance_ratio
from evaluation.intervals import Floats, wilson_half_width
from judging.errors import CustosError


class LabelPlan(NamedTuple):
    """Numbers of labels, with and without a judge; ``None`` where even all items are too few."""

    with_judge: int | None
    alone: int | None


def judge_correlation(rate: float, sensitivity: float, specificity: float) -> float:
    """Return the correlation of a judge's 0/1 labels with people's (the phi coefficient).

    It is 0 if either uses one label only, and negative if sensitivity + specificity < 1.

    Args:
        rate: Share of items that people call 1.
        sensitivity: Share of those that the judge calls 1.
        specificity: Share of the other items that the judge calls 0.
    """
    judge_rate = rate * sensitivity + (1 - rate) * (1 - specificity)
    human_spread, judge_spread = rate * (1 - rate), judge_rate * (1 - judge_rate)
    if not min(human_spread, judge_spread):
        return 0.0
    return float((sensitivity + specificity - 1) * np.sqrt(human_spread / judge_spread))


def expected_half_widths(
    labels: Floats, items: int, rate: float, correlation: float
) -> tuple[Floats, Floats]:
    """Return half the expected interval widths of PPI++ and of the labels alone.

    Items count as independent.

    Args:
        labels: Numbers of randomly drawn labelled items, from 2. Shape ``[...]``.
        items: Number of items ``N``.
        rate: Rate of people's labels, a guess.
        correlation: Correlation of the judge's labels with people's, a guess or an estimate.

    Returns:
        Shape ``[...]`` each.
    """
    guess = np.full(np.shape(labels), rate)
    explained = correlation**2 * (1 - labels / items)
    remaining = np.minimum(variance_ratio(explained, guess, labels, labels), 1)
    return wilson_half_width(guess, labels / remaining), wilson_half_width(guess, labels)


def labels_needed(half_width: float, items: int, rate: float, correlation: float) -> LabelPlan:
    """Return the smallest number of labels whose 95 % interval is expected to be narrow enough.

    Items count as independent. Where groups of them are not, multiply by the squared ratio of the
    grouped to the ungrouped interval's width, which is known once some groups are labelled.

    Args:
        half_width: Half of the interval's width, as a share: .03 is 3 points either side.
        items: Number of items of the benchmark.
        rate: Rate of people's labels, a guess; .5 needs the most labels.
        correlation: Correlation of the judge's labels with people's, from ``judge_correlation`` or
            from labels at hand.

    Raises:
        CustosError: If a number is out of its range.
    """
    if not (half_width > 0 and items >= 2 and 0 < rate < 1 and -1 <= correlation <= 1):
        raise CustosError(
            "a plan needs a half-width above 0, two items or more, a rate between 0 and 1 and a "
            f"correlation from -1 to 1, not {half_width}, {items}, {rate} and {correlation}"
        )
    labels = np.arange(2, items + 1, dtype=np.float64)
    with_judge, alone = expected_half_widths(labels, items, rate, correlation)
    return LabelPlan(
        _first_within(with_judge, half_width, labels), _first_within(alone, half_width, labels)
    )


def _first_within(half_widths: Floats, limit: float, labels: Floats) -> int | None:
    enough = np.flatnonzero(half_widths <= limit)
    return int(labels[enough[0]]) if len(enough) else None
