"""Intervals and tests for items that are not independent of each other.

Answers to one question resemble each other, so questions are resampled, not answers. The items that
are resampled together are a cluster. A metric that is resampled is a function of sums over items.
The sums are taken once per cluster, and a resample is a weighted sum of them, so that a thousand
resamples are one matrix product.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Number = TypeVar("Number", float, Floats)

Z_95 = 1.959963984540054
RESAMPLES = 1000
WEIGHTS_AT_ONCE = 1 << 20
"""Cells of the weight matrix that are in memory at once (8 MiB)."""
EXACT_CLUSTERS = 16
"""Most clusters of which all choices of signs are tried."""
FLIPS = 9999
"""Choices of signs that are drawn where there are too many to try."""
TINY = 1e-9
"""Sums of decimals that differ by less count as equal."""
LIKENESS = 0.2
"""Correlation of the rows of a cluster that is assumed as long as nothing is known of it."""
OTHER_LIKENESS = 0.1
"""Correlation by a second likeness that is assumed as long as nothing is known of it. Clusters are
large there: were nearly all of the rate in few of them, so many would seldom be without any hit."""
LIKENESS_EVENTS = 1
"""Clusters full of hits or of misses, whichever are rarer, that tell as much of the correlation as
the assumption."""


class Interval(NamedTuple):
    """A two-sided 95 % interval; both ends are nan where there is no interval."""

    low: float
    high: float


NO_INTERVAL = Interval(float("nan"), float("nan"))


def wilson_interval(successes: float, n: float) -> Interval:
    """Compute the score interval of one rate over ``n`` independent items (Wilson 1927).

    Unlike a bootstrap interval it has width where there are no hits or no misses.
    """
    if n <= 0:
        return NO_INTERVAL
    low, high = wilson_bounds(np.array(successes / n), np.array(float(n)))
    return Interval(float(low), float(high))


def wilson_bounds(rates: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Compute the ends of the score intervals (Wilson 1927) of many rates. Shapes ``[...]``.

    ``n``, above 0, is a number of items; an effective number may be a fraction.
    """
    centre = (rates + Z_95**2 / (2 * n)) / (1 + Z_95**2 / n)
    half = wilson_half_width(rates, n)
    return np.clip(centre - half, 0, rates), np.clip(centre + half, rates, 1)


def wilson_half_width(rates: Floats, n: Floats) -> Floats:
    """Compute half the width of the intervals of :func:`wilson_bounds`, not cut off at 0 and 1."""
    spread = rates * (1 - rates) / n + Z_95**2 / (4 * n * n)
    return np.asarray(Z_95 / (1 + Z_95**2 / n) * np.sqrt(spread))


def sign_flip_p(differences: Floats, clusters: Ints) -> float:
    """Test whether two judges differ on the same items, whole clusters at a time. Shapes ``[n]``.

    If neither judge were better, each cluster's sum of differences could as well have had the other
    sign (Fisher 1935). The two-sided p-value is the share of all choices of the signs that give a
    sum as far from 0 or farther, at least ``2 ** (1 - C)`` for ``C`` clusters. Sums that are whole
    numbers are counted exactly, others by :func:`sign_flips`. Where every item is a cluster of its
    own, this is McNemar's exact test.
    """
    sums = np.abs(signed := cluster_sums(differences[:, None], clusters)[:, 0])
    observed = abs(signed.sum())
    if np.all(sums == np.round(sums)):
        return _whole_sign_flip_p(sums, observed)
    sums = sums[sums > TINY]
    flips = sign_flips(len(sums))
    hits = sum(int(np.sum(np.abs(signs @ sums) >= observed - TINY)) for signs in flips)
    return share_of_flips(hits, len(sums))


def sign_flips(clusters: int) -> Iterator[Floats]:
    """Yield choices of the signs of clusters, ``[B, C]`` at a time.

    Yield all for up to :data:`EXACT_CLUSTERS` clusters, and else :data:`FLIPS` that are drawn.
    """
    if clusters <= EXACT_CLUSTERS:
        bits = (np.arange(2**clusters)[:, None] >> np.arange(clusters)) & 1
        yield np.asarray(1.0 - 2 * bits, dtype=np.float64)
        return
    rng = np.random.default_rng(0)
    at_once = max(1, WEIGHTS_AT_ONCE // clusters)
    for start in range(0, FLIPS, at_once):
        size = (min(at_once, FLIPS - start), clusters)
        flips = rng.integers(0, 2, size=size, dtype=np.int8)
        yield np.asarray(1.0 - 2 * flips, dtype=np.float64)


def share_of_flips(hits: Number, clusters: int) -> Number:
    """Turn a number of hits among :func:`sign_flips` into a p-value; of drawn flips never 0."""
    return hits / 2**clusters if clusters <= EXACT_CLUSTERS else (hits + 1) / (FLIPS + 1)


def _whole_sign_flip_p(sizes: Floats, observed: float) -> float:
    """Compute the p-value of :func:`sign_flip_p` for sums of whole numbers, given without sign.

    Of the clusters of one size a binomial number is lost; chances of several sizes are convolved.
    """
    from scipy.stats import binom  # slow to import, and most commands need none

    chances = np.ones(1)
    by_size = np.unique(sizes[sizes > 0].astype(np.int64), return_counts=True)
    for size, number in zip(*by_size, strict=True):
        of_size = np.zeros(int(size * number) + 1)
        of_size[::size] = binom.pmf(np.arange(number + 1), number, 0.5)
        chances = np.convolve(chances, of_size)
    lost = round((sizes.sum() + observed) / 2)
    return min(1.0, 2 * float(chances[lost:].sum()))


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for their number by Holm's method (1979); keep their order."""
    order = np.argsort(p_values)
    corrected = np.array(p_values)[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(corrected), 1)
    return [float(value) for value in adjusted]


class Design(NamedTuple):
    """Design effect: how far likeness in clusters widens an error. Shape ``[...]`` each."""

    effect: Floats
    """Variance of the rate over that of independent items, estimated; at least 1."""
    assumed: Floats
    """Design effect at a correlation of :data:`LIKENESS`."""
    clusters: Floats
    """Effective number of clusters: of equal ones that give the variance as surely."""


def design(hits: Floats, sizes: Floats, likeness: float = LIKENESS, least: float = 1) -> Design:
    """Estimate how far hits or misses of a cluster resemble each other.

    ``hits`` are the sums of clusters, each item 0 to 1, and ``sizes`` their numbers of items.
    Shapes ``[..., C]``. ``likeness`` is the correlation that is assumed as long as nothing is known
    of it. ``least`` is the smallest effect: 1, or 0 where items weigh unequally, which may help.
    """
    n, num_hits = sizes.sum(axis=-1), hits.sum(axis=-1)
    rate = ratio(num_hits, n)
    events = np.minimum(num_hits, n - num_hits)
    return design_of_sums(hits, sizes, rate * (1 - rate), events, likeness, least)


def design_of_sums(
    sums: Floats,
    sizes: Floats,
    spread: Floats,
    events: Floats,
    likeness: float = LIKENESS,
    least: float = 1,
) -> Design:
    """Estimate how far the likeness of items within clusters widens the error of their mean.

    The variance is that of the sums of residuals, each over ``1 - share of the items``, which makes
    it unbiased for independent items (CR2, Bell & McCaffrey 2002). Where few items differ from the
    rest (``events``), a low estimate says little: it is drawn up to the assumed effect, which
    counts as :data:`LIKENESS_EVENTS` clusters full of them (our own rule). The effective number of
    clusters is ``(sum v)^2 / sum v^2`` for variances ``v`` of the sums at that correlation (Carter,
    Schnepel & Steigerwald 2017). ``spread``, ``[...]``, is the variance of a single item; the rest
    as in :func:`design`.
    """
    n = sizes.sum(axis=-1)
    mean, share = ratio(sums.sum(axis=-1), n), ratio(sizes, n[..., None])
    residuals = sums - mean[..., None] * sizes
    variance = np.sum(ratio(residuals**2, 1 - share), axis=-1)
    mean_size = np.sum(share * sizes, axis=-1)  # of an item's cluster
    estimated = np.maximum(least, np.nan_to_num(ratio(variance * (n - 1), n * n * spread)))
    assumed = 1 + (mean_size - 1) * likeness
    effect = drawn_up(estimated, assumed, np.nan_to_num(ratio(events, mean_size)))
    found = np.clip(np.nan_to_num(ratio(effect - 1, mean_size - 1)), 0, 1)[..., None]
    of_cluster = sizes * (1 + np.maximum(sizes - 1, 0) * found)
    clusters = ratio(of_cluster.sum(axis=-1) ** 2, np.sum(of_cluster**2, axis=-1))
    return Design(effect, assumed, clusters)


def drawn_up(estimated: Floats, assumed: Floats, full: Floats) -> Floats:
    """Draw low design effects up to assumed ones, as far as few clusters are ``full`` of events."""
    drawn = (full * estimated + LIKENESS_EVENTS * assumed) / (full + LIKENESS_EVENTS)
    return np.maximum(estimated, drawn)


def design_bounds(rate: Floats, n: Floats, found: Design) -> tuple[Floats, Floats, Floats]:
    """Compute the ends of the interval of a rate of ``n`` items, and the effective number of items.

    The interval is Wilson's at the effective number of items: the number divided by the design
    effect and by the squared ratio of Student's quantiles for clusters and for items (Korn &
    Graubard 1998). No end lies nearer than that of no hits, or no misses, on the same clusters: one
    hit more can only raise what the rate may be. Shapes ``[...]``; one cluster gives nan.
    """
    spread = found.clusters > 1
    freedom = np.where(spread, found.clusters - 1, np.nan)
    quantile = student_quantile(freedom, 0.975)
    per_item = (student_quantile(np.maximum(n - 1, freedom), 0.975) / quantile) ** 2 * n
    # A cluster with nearly all items leaves nothing, and an interval from 0 to 1.
    per_item = np.where(spread, np.maximum(per_item, TINY), np.nan)
    effective = np.maximum(per_item / found.effect, TINY)
    low, high = wilson_bounds(rate, effective)
    _, at_least = wilson_bounds(np.zeros_like(rate), per_item / found.assumed)
    return np.minimum(low, 1 - at_least), np.maximum(high, at_least), effective


def student_quantile(freedom: Any, share: float) -> Any:
    """Compute the quantile of Student's t for numbers of degrees of freedom, of any shape."""
    from scipy.special import stdtrit  # slow to import, and most commands need none

    return stdtrit(freedom, share)


def clustered_rate(hits: Floats, clusters: Ints, others: Ints | None = None) -> Interval:
    """Compute the interval of a rate of 0/1 items ``[n]`` that are alike within clusters.

    It is that of :func:`design_bounds`; a single cluster counts as one item. Where items are alike
    in a second way too, as attacks of one wording, the variances of both are added up, less that of
    independent items (Cameron, Gelbach & Miller 2011), and the fewer clusters count.
    """
    rate, n = np.asarray(hits.mean()), np.asarray(float(len(hits)))
    columns = np.stack([hits, np.ones(len(hits))], axis=1)
    both = design(*cluster_sums(columns, clusters).T)
    if others is not None and len(np.unique(others)) > 1:
        sums, sizes = cluster_sums(columns, others).T
        other = design(sums, sizes, OTHER_LIKENESS)
        both = Design(
            both.effect + other.effect - 1,
            both.assumed + other.assumed - 1,
            np.minimum(both.clusters, other.clusters),
        )
    if both.clusters <= 1:
        return wilson_interval(float(rate), 1)
    low, high, _ = design_bounds(rate, n, both)
    return Interval(float(low), float(high))


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide; the quotient is nan where the denominator is zero or nan."""
    numerator, denominator = np.broadcast_arrays(
        np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    )
    quotient = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator != 0)
    return quotient


def number_clusters(keys: Sequence[Hashable]) -> Ints:
    """Number distinct keys from 0 in order of first appearance. Shape ``[n]``."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def cluster_sums(values: Floats, clusters: Ints) -> Floats:
    """Add up the rows ``[n, S]`` of each cluster. ``[C, S]``, one a cluster in ascending order."""
    if not len(values):
        return np.zeros((0, values.shape[1]))
    order = np.argsort(clusters, kind="stable")
    _, starts = np.unique(clusters[order], return_index=True)
    return np.add.reduceat(values[order], starts, axis=0)


@lru_cache(maxsize=4)
def cluster_weights(clusters: int, seed: int) -> npt.NDArray[np.uint8]:
    """Draw as many clusters as there are, with replacement, and count how often each is drawn.

    The draws depend on the arguments alone, so that two judges on the same items are compared on
    the same draws. Shape ``[B, C]``; read-only.
    """
    rng = np.random.default_rng(seed)
    weights = np.empty((RESAMPLES, clusters), dtype=np.uint8)
    chunk = max(1, WEIGHTS_AT_ONCE // clusters)
    for start in range(0, RESAMPLES, chunk):
        rows = min(chunk, RESAMPLES - start)
        picks = rng.integers(clusters, size=(rows, clusters))  # [rows, C]
        picks += clusters * np.arange(rows)[:, None]
        counts = np.bincount(picks.ravel(), minlength=rows * clusters)
        weights[start : start + rows] = counts.reshape(rows, clusters)
    weights.setflags(write=False)
    return weights


def weight_chunks(clusters: int, seed: int) -> Iterator[tuple[slice, Floats]]:
    """Yield the columns of :func:`cluster_weights` in chunks that fit in memory as floats."""
    weights = cluster_weights(clusters, seed)
    chunk = WEIGHTS_AT_ONCE // RESAMPLES
    for start in range(0, clusters, chunk):
        columns = slice(start, start + chunk)
        yield columns, weights[:, columns].astype(np.float64)


def resample_clusters(sums: Floats, seed: int = 0) -> Floats:
    """Add up the sums ``[C, S]`` of clusters that are drawn by :func:`cluster_weights`: ``[B, S]``.

    All are nan when ``C < 2``, as one cluster has no spread.
    """
    if len(sums) < 2:
        return np.full((RESAMPLES, sums.shape[1]), np.nan)
    resampled = np.zeros((RESAMPLES, sums.shape[1]))
    for columns, weights in weight_chunks(len(sums), seed):
        resampled += weights @ sums[columns]
    return resampled


def percentile_interval(samples: Floats) -> Interval:
    """Take the percentile interval of resampled values, ``[B]``, leaving out those that are nan."""
    samples = samples[~np.isnan(samples)]
    if not len(samples):
        return NO_INTERVAL
    low, high = np.quantile(samples, [(1 - 0.95) / 2, (1 + 0.95) / 2])
    return Interval(float(low), float(high))


def cluster_standard_error(values: Floats, clusters: Ints) -> float:
    """Estimate the standard error of a mean whose items ``[n]`` are correlated within clusters.

    Sums of residuals per cluster stand for the items, with the ``C / (C - 1)`` small-sample factor
    (Liang & Zeger 1986; for evaluations Miller 2024, arXiv 2411.00640). One cluster gives nan.
    """
    if not len(values):
        return float("nan")
    residuals = cluster_sums((values - values.mean())[:, None], clusters)[:, 0]
    if len(residuals) < 2:
        return float("nan")
    factor = len(residuals) / (len(residuals) - 1)
    return float(np.sqrt(factor * np.sum(residuals**2)) / len(values))
