"""Two judges on the same rows: both accuracies, and their difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evaluation.estimate import Draws, without_nan
from evaluation.intervals import Floats, Interval, Ints, sign_flip_p, wilson_interval
from evaluation.metrics import ratio


def paired_accuracies(
    first: Sequence[bool], second: Sequence[bool], clusters: Ints, seed: int = 0
) -> dict[str, Any]:
    """Compare two judges row by row, with 95 % intervals that keep clusters together.

    Where all clusters give one and the same difference, its interval is Newcombe's with as many
    observations as there are clusters: four right answers against four wrong ones do not prove a
    difference of 1.

    Args:
        first: Whether the first judge is right, by row.
        second: The same of the second judge.
        clusters: Rows with the same number are resampled together. Shape ``[n]``.
        seed: Seed of the resamples.

    Returns:
        ``first``, ``second`` and ``difference`` (first minus second), each with ``value``, ``low``
        and ``high``, which are ``None`` where one cluster gives no interval; ``p`` of
        :func:`evaluation.intervals.sign_flip_p`; ``n``; ``clusters``.
    """
    columns = np.stack([first, second, np.ones(len(first))], axis=1).astype(np.float64)
    draws = Draws.of(columns, clusters, seed)
    groups = len(draws.sums)

    def share(column: int) -> dict[str, Any]:
        return draws.rate(
            lambda sums: ratio(sums[..., column], sums[..., 2]), lambda sums: sums[..., 2]
        )

    def difference(sums: Floats) -> Floats:
        return ratio(sums[..., 0] - sums[..., 1], sums[..., 2])

    rates = {"first": share(0), "second": share(1)}
    apart = draws.estimate(difference, len(first), (-1.0, 1.0), is_difference=True)
    if groups > 1 and not apart["low"] < apart["high"]:  # the resamples show no spread
        values = (rates["first"]["value"], rates["second"]["value"])
        interval = newcombe_interval(*values, groups)
        apart |= {"low": interval.low, "high": interval.high}
    paired: dict[str, Any] = without_nan(
        {
            **rates,
            "difference": apart,
            "p": sign_flip_p(columns[:, 0] - columns[:, 1], clusters),
            "n": len(first),
            "clusters": groups,
        }
    )
    return paired


def newcombe_interval(first: float, second: float, n: float) -> Interval:
    """Return the hybrid score interval of a difference of two rates, each over ``n`` items.

    This is method 10 of Newcombe (1998) for independent rates; for rates of the same items it is
    rather too wide.
    """
    a, b = wilson_interval(first * n, n), wilson_interval(second * n, n)
    below = np.hypot(first - a.low, b.high - second)
    above = np.hypot(a.high - first, second - b.low)
    return Interval(float(first - second - below), float(first - second + above))
