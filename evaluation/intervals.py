"""Intervals and tests for items that are not independent of each other.

Answers to one question resemble each other, so questions are resampled, not answers. The items that
are resampled together are a cluster. A metric that is resampled is a function of sums over items.
The sums are taken once per cluster, and a resample is a weighted sum of them, so that a thousand
resamples are one matrix product.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

Z_95 = 1.959963984540054
RESAMPLES = 1000
WEIGHTS_AT_ONCE = 1 << 20
"""Cells of the weight matrix that are in memory at once (8 MiB)."""


class Interval(NamedTuple):
    """A two-sided 95 % interval; both ends are nan where there is no interval."""

    low: float
    high: float


def wilson_interval(successes: float, n: float) -> Interval:
    """Return the score interval of one rate over ``n`` independent items (Wilson 1927).

    Unlike a bootstrap interval it has width at the extremes: 0 of ``n`` gives
    ``[0, z² / (n + z²)]``. ``n == 0`` gives nan.
    """
    if n <= 0:
        return Interval(np.nan, np.nan)
    low, high = wilson_bounds(np.array(successes / n), np.array(float(n)))
    return Interval(float(low), float(high))


def wilson_bounds(rates: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Return the ends of the score intervals (Wilson 1927) of many rates.

    Args:
        rates: In ``[0, 1]``. Shape ``[...]``.
        n: Number of items, above 0; an effective number may be a fraction. Shape ``[...]``.

    Returns:
        The lower and the upper ends. Shape ``[...]`` each.
    """
    centre = (rates + Z_95**2 / (2 * n)) / (1 + Z_95**2 / n)
    half = wilson_half_width(rates, n)
    return np.clip(centre - half, 0, rates), np.clip(centre + half, rates, 1)


def wilson_half_width(rates: Floats, n: Floats) -> Floats:
    """Return half the width of the score intervals. Shapes as in ``wilson_bounds``."""
    spread = rates * (1 - rates) / n + Z_95**2 / (4 * n * n)
    return np.asarray(Z_95 / (1 + Z_95**2 / n) * np.sqrt(spread))


def mcnemar_p(only_first_right: int, only_second_right: int) -> float:
    """Return the p-value of the exact two-sided McNemar test.

    The test asks whether a fair coin could have split the items on which two judges differ in this
    way. The p-value is 1 for an even split or no such items, and near 0 where one judge wins nearly
    all of them. Items count as independent: where a question has several answers, read the p-value
    beside the interval of the difference, which resamples whole questions.

    Args:
        only_first_right: Items that the first judge has right and the second has wrong.
        only_second_right: Items that the second judge has right and the first has wrong.
    """
    discordant = only_first_right + only_second_right
    if not discordant:
        return 1.0
    from scipy.special import bdtr  # slow to import, and every command would

    tail = float(bdtr(min(only_first_right, only_second_right), discordant, 0.5))
    return min(1.0, 2 * tail)


def number_clusters(keys: Sequence[Hashable]) -> Ints:
    """Number distinct keys from 0 in order of first appearance. Shape ``[n]``."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def cluster_sums(values: Floats, clusters: Ints) -> Floats:
    """Add up the rows of each cluster.

    Args:
        values: Per-item values. Shape ``[n, S]``.
        clusters: Cluster of each item, any integers. Shape ``[n]``.

    Returns:
        One row per distinct cluster, in ascending order. Shape ``[C, S]``.
    """
    if not len(values):
        return np.zeros((0, values.shape[1]))
    order = np.argsort(clusters, kind="stable")
    _, starts = np.unique(clusters[order], return_index=True)
    return np.add.reduceat(values[order], starts, axis=0)


def resample_clusters(sums: Floats, resamples: int = RESAMPLES, seed: int = 0) -> Floats:
    """Draw as many clusters as there are, with replacement, and add up their sums.

    The draws depend on the number of clusters, ``resamples`` and ``seed`` alone. Two judges that
    are resampled with the same seed over the same items are therefore compared on the same draws.

    Args:
        sums: Sums per cluster. Shape ``[C, S]``.
        resamples: Number of draws ``B``.
        seed: Seed of the draws.

    Returns:
        Sums of every draw. Shape ``[B, S]``; nan when ``C < 2``, as one cluster has no spread.
    """
    clusters = len(sums)
    if clusters < 2:
        return np.full((resamples, sums.shape[1]), np.nan)
    rng = np.random.default_rng(seed)
    resampled = np.empty((resamples, sums.shape[1]))
    chunk = max(1, WEIGHTS_AT_ONCE // clusters)
    for start in range(0, resamples, chunk):
        rows = min(chunk, resamples - start)
        picks = rng.integers(clusters, size=(rows, clusters))  # [rows, C]
        picks += clusters * np.arange(rows)[:, None]
        weights = np.bincount(picks.ravel(), minlength=rows * clusters).reshape(rows, clusters)
        resampled[start : start + rows] = weights.astype(np.float64) @ sums
    return resampled


def percentile_interval(samples: Floats, level: float = 0.95) -> Interval:
    """Return the percentile interval of resampled values, shape ``[B]``.

    Resamples in which the metric does not exist (nan, such as a kappa with one label only) are left
    out. If it exists in none, the interval is nan.
    """
    samples = samples[~np.isnan(samples)]
    if not len(samples):
        return Interval(np.nan, np.nan)
    low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def rate_interval(rate: float, samples: Floats, clusters: int) -> Interval:
    """Return the interval of a rate from its resamples, shape ``[B]``.

    Where all resamples have the rate itself, their interval would have no width: at a rate of 0 or
    1, if every cluster has the same rate, or if a single one has any. There this is Wilson's
    interval with the number of ``clusters`` as ``n``.
    """
    interval = percentile_interval(samples)
    if rate in (0.0, 1.0) or interval.low == interval.high == rate:
        return wilson_interval(rate * clusters, clusters)
    return interval


def cluster_standard_error(values: Floats, clusters: Ints) -> float:
    """Return the standard error of a mean whose items are correlated within clusters.

    Sums of residuals per cluster stand for the items, with the ``C / (C - 1)`` small-sample factor
    (Liang & Zeger 1986; for evaluations Miller 2024, arXiv 2411.00640). Where every item is a
    cluster of its own it is the textbook ``s / sqrt(n)``. Fewer than two clusters give nan.

    Args:
        values: Shape ``[n]``.
        clusters: Cluster of each item. Shape ``[n]``.
    """
    if not len(values):
        return float("nan")
    residuals = cluster_sums((values - values.mean())[:, None], clusters)[:, 0]
    if len(residuals) < 2:
        return float("nan")
    factor = len(residuals) / (len(residuals) - 1)
    return float(np.sqrt(factor * np.sum(residuals**2)) / len(values))
