"""How many items people must label for an interval of a wanted width, with and without a judge."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evaluation.correction.intervals import variance_ratio, wilson_half_width
from evaluation.intervals import Floats
from judging.errors import CustosError


class LabelPlan(NamedTuple):
    """Labels needed; ``None`` where labelling every item is not enough."""

    with_judge: int | None
    alone: int | None


def judge_correlation(rate: float, sensitivity: float, specificity: float) -> float:
    """Correlation of a judge's 0/1 labels with people's (the phi coefficient).

    0 if either uses one label only; negative if sensitivity + specificity < 1.

    Args:
        rate: Share of items that people call 1.
        sensitivity: Share of those that the judge calls 1.
        specificity: Share of the other items that the judge calls 0.
    """
    called = rate * sensitivity + (1 - rate) * (1 - specificity)
    spreads = rate * (1 - rate), called * (1 - called)
    if not min(spreads):
        return 0.0
    return float((sensitivity + specificity - 1) * np.sqrt(spreads[0] / spreads[1]))


def expected_half_widths(
    labels: Floats, items: int, rate: float, correlation: float
) -> tuple[Floats, Floats]:
    """Half the interval's width by PPI++ and by the labels alone, items independent.

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
    left = np.minimum(variance_ratio(explained, guess, labels, labels), 1)
    return wilson_half_width(guess, labels / left), wilson_half_width(guess, labels)


def labels_needed(half_width: float, items: int, rate: float, correlation: float) -> LabelPlan:
    """Smallest number of labels whose 95 % interval is expected to be narrow enough.

    Items count as independent. Where groups of them are not, multiply by the squared ratio of the
    grouped to the ungrouped interval's width, known once some groups are labelled.

    Args:
        half_width: Wanted half of the interval's width, as a share: .03 is 3 points either side.
        items: Number of items of the benchmark.
        rate: Rate of people's labels, a guess; .5 asks for most.
        correlation: Correlation of the judge's labels with people's, as from ``judge_correlation``
            or from labels at hand.

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


def _first_within(half_widths: Floats, wanted: float, labels: Floats) -> int | None:
    enough = np.flatnonzero(half_widths <= wanted)
    return int(labels[enough[0]]) if len(enough) else None
