"""Two judges on the same rows: their difference, and whether one is no worse than the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evaluation.estimate import Draws, without_nan
from evaluation.intervals import (
    Floats,
    Interval,
    Ints,
    cluster_sums,
    design_of_sums,
    sign_flip_p,
    wilson_interval,
)
from evaluation.metrics import ratio

LEVEL = 0.05
"""Significance level, one-sided, of both tests: that a judge is worse, and that it is no worse."""
POWER = 0.8
PRECISION = 1e-6


def paired_accuracies(
    first: Sequence[bool], second: Sequence[bool], clusters: Ints, seed: int = 0
) -> dict[str, Any]:
    """Compare two judges row by row, with 95 % intervals that resample whole clusters.

    Where all clusters give one and the same difference, its interval is Newcombe's with as many
    observations as there are clusters: four right answers against four wrong ones do not prove a
    difference of 1.

    ``first``, ``second`` and ``difference`` (first minus second) have ``value``, ``low`` and
    ``high``, the ends being ``None`` where one cluster gives no interval. ``p`` is that of
    :func:`evaluation.intervals.sign_flip_p`; ``n`` and ``clusters`` are counts.
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
    """Compute the hybrid score interval of a difference of two rates, each over ``n`` items.

    This is method 10 of Newcombe (1998) for independent rates; for rates of the same items it is
    rather too wide.
    """
    a, b = wilson_interval(first * n, n), wilson_interval(second * n, n)
    below = np.hypot(first - a.low, b.high - second)
    above = np.hypot(a.high - first, second - b.low)
    return Interval(float(first - second - below), float(first - second + above))


def lowest_difference(differences: Floats, clusters: Ints) -> tuple[float, float]:
    """Bound a paired difference from below, and find the smallest loss that would be visible.

    The bound is the loss that a one-sided score test at 5 % just does not reject (Tango 1998), for
    the effective number of items: items over the design effect and over the squared ratio of
    Student's quantiles for clusters and for items. Unlike Wald's it holds where the judges never
    differ: 150 such items leave out a loss of 2 points, 100 do not. Differences are those of the
    second judge less the first, -1, 0 or 1. Shapes ``[n]``.
    """
    from scipy.special import stdtrit  # slow to import, and most commands need none

    mean, changed, effective, freedom = _summary(differences, clusters)
    if not freedom > 0:
        return -1.0, 1.0
    quantile = float(stdtrit(freedom, 1 - LEVEL))
    low, high = -1.0, mean
    while high - low > PRECISION:
        loss = (low + high) / 2
        is_rejected = tango_score(mean, changed, loss) * np.sqrt(effective) > quantile
        low, high = (loss, high) if is_rejected else (low, loss)
    spread = changed - mean**2
    error = np.sqrt(max(spread, 1 / effective) / effective)  # as if one item at least had changed
    return low, float(min(1.0, (quantile + stdtrit(freedom, POWER)) * error))


def loss_within_p(differences: Floats, clusters: Ints, margin: float) -> float:
    """Test for a loss of at least the margin; a small one-sided p-value shows that it is less.

    The test is that of :func:`lowest_difference`, whose arguments these are; 1 for a single
    question.
    """
    from scipy.special import stdtr  # slow to import, and most commands need none

    mean, changed, effective, freedom = _summary(differences, clusters)
    if not freedom > 0:
        return 1.0
    return float(stdtr(freedom, -tango_score(mean, changed, -margin) * np.sqrt(effective)))


def _summary(differences: Floats, clusters: Ints) -> tuple[float, float, float, float]:
    """Compute mean difference, share of changed items, effective number of items, and freedom."""
    columns = np.stack([differences, np.abs(differences), np.ones(len(differences))], axis=1)
    sums, changes, sizes = cluster_sums(columns, clusters).T
    n, mean, changed = len(differences), float(differences.mean()), float(changes.sum())
    spread = changed / n - mean**2
    found = design_of_sums(sums, sizes, np.asarray(spread), np.asarray(changed))
    return mean, changed / n, n / float(found.effect), float(found.clusters) - 1


def tango_score(mean: float, changed: float, difference: float) -> float:
    """Compute the score of Tango (1998) of a true difference of two rates, for a single item.

    ``mean`` is the observed difference, ``changed`` the share of the items on which exactly one of
    the two judges is right.
    """
    lost = (changed - mean) / 2
    slope = -changed + (2 - mean) * difference
    root = np.sqrt(slope**2 + 8 * lost * difference * (1 - difference))
    chance_of_loss = (root - slope) / 4
    variance = 2 * chance_of_loss + difference * (1 - difference)
    return float((mean - difference) / np.sqrt(max(variance, PRECISION)))
