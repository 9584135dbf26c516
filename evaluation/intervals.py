"""Intervals and tests for items that are not independent of each other.

Answers to one question resemble each other, so the question is what gets resampled. Every metric of
this package is a function of sums over items; the sums are taken once per question, and a resample
is then a weighted sum of them, which makes a thousand resamples one matrix product.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

Z_95 = 1.959963984540054
RESAMPLES = 1000
_CHUNK_CELLS = 1 << 20
"""Cells of the weight matrix held at once (8 MiB)."""


class Interval(NamedTuple):
    """A two-sided 95 % interval; both ends are nan when nothing can be said."""

    low: float
    high: float


def wilson_interval(successes: float, n: float, z: float = Z_95) -> Interval:
    """Score interval of one rate over ``n`` independent items (Wilson 1927).

    Unlike a bootstrap it has width at the extremes: 0 of ``n`` gives ``[0, z² / (n + z²)]``.
    ``n == 0`` gives nan.
    """
    if n <= 0:
        return Interval(np.nan, np.nan)
    rate = successes / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else float(centre - half)
    return Interval(low, 1.0 if successes == n else float(centre + half))


def mcnemar_p(only_first_right: int, only_second_right: int) -> float:
    """Exact two-sided McNemar test: could a fair coin have split the discordant items this way?

    1 means the split is as even as it can be (or that there are no discordant items), near 0 that
    one judge wins nearly all of them. Items count as independent; with several answers per question
    read it beside the cluster-paired interval of the difference.

    Args:
        only_first_right: Items the first judge has right and the second wrong.
        only_second_right: The reverse.
    """
    discordant = only_first_right + only_second_right
    if not discordant:
        return 1.0
    tail = float(special.bdtr(min(only_first_right, only_second_right), discordant, 0.5))
    return min(1.0, 2 * tail)


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

    The draws depend on the number of clusters, ``resamples`` and ``seed`` alone, so two judges
    resampled alike over the same items are compared on the same draws.

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
    drawn = np.empty((resamples, sums.shape[1]))
    chunk = max(1, _CHUNK_CELLS // clusters)
    for start in range(0, resamples, chunk):
        rows = min(chunk, resamples - start)
        picks = rng.integers(clusters, size=(rows, clusters))  # [rows, C]
        picks += clusters * np.arange(rows)[:, None]
        weights = np.bincount(picks.ravel(), minlength=rows * clusters).reshape(rows, clusters)
        drawn[start : start + rows] = weights.astype(np.float64) @ sums
    return drawn


def percentile_interval(samples: Floats, level: float = 0.95) -> Interval:
    """Percentile interval of resampled values, shape ``[B]``.

    Resamples in which the metric does not exist (nan: say, a kappa with one label only) are left
    out; if it exists in none, the interval is nan.
    """
    samples = samples[~np.isnan(samples)]
    if not len(samples):
        return Interval(np.nan, np.nan)
    low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def rate_interval(rate: float, samples: Floats, clusters: int) -> Interval:
    """Interval of a rate from its resamples, shape ``[B]``; at 0 and 1 Wilson's.

    There all resamples agree, and it is taken to rest on as many observations as it is about
    ``clusters``.
    """
    if rate in (0.0, 1.0):
        return wilson_interval(rate * clusters, clusters)
    return percentile_interval(samples)


def cluster_standard_error(values: Floats, clusters: Ints) -> float:
    """Standard error of a mean whose items are correlated within clusters.

    Sums of residuals per cluster stand for the items, with the ``C / (C - 1)`` small-sample factor
    (Liang & Zeger 1986; for evaluations Miller 2024, arXiv 2411.00640). With every item its own
    cluster it is the textbook ``s / sqrt(n)``. Fewer than two clusters give nan.

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


def kendall_tau_b(first: Floats, second: Floats) -> Floats:
    """Kendall's rank correlation with the correction for ties (tau-b, Kendall 1945).

    1 when both order every pair alike, -1 when they order every pair oppositely, nan when either
    ties everything, holds a nan, or has fewer than two entries.

    Args:
        first: Scores of ``m`` systems. Shape ``[..., m]``.
        second: Scores of the same systems. Shape ``[..., m]``.

    Returns:
        Shape ``[...]``.
    """
    left, right = np.triu_indices(first.shape[-1], k=1)
    first_order = np.sign(first[..., left] - first[..., right])  # [..., pairs]
    second_order = np.sign(second[..., left] - second[..., right])
    agreement = np.asarray(np.sum(first_order * second_order, axis=-1))
    untied = np.asarray(np.sum(first_order**2, axis=-1) * np.sum(second_order**2, axis=-1))
    correlation = np.full(agreement.shape, np.nan)
    np.divide(agreement, np.sqrt(untied), out=correlation, where=untied > 0)
    return correlation
