"""A value and its 95 % interval, for any function of sums over clustered items.

Two judges on the same rows are told apart by their difference, or shown to be no worse.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from evaluation.intervals import (
    NO_INTERVAL,
    RESAMPLES,
    Z_95,
    Floats,
    Interval,
    Ints,
    Mask,
    Number,
    cluster_sums,
    design,
    design_bounds,
    design_of_sums,
    percentile_interval,
    ratio,
    resample_clusters,
    sign_flip_p,
    student_quantile,
    weight_chunks,
    wilson_interval,
)

Sums = Callable[[Floats], Floats]
"""A function of sums of columns, shapes ``[..., S]`` to ``[...]``; nan where it does not exist."""
UNBOUNDED = (-math.inf, math.inf)
STEP = 1e-4
"""Step of derivatives, in items."""
FLAT = 1e-7
"""Standard error that may come from the step alone."""
PROBES = 8
"""Resamples on which it is seen which columns a function depends on."""
MOST_QUANTILES = 2
"""Most of Student's quantiles between a value and an end. Of few clusters, many resamples hold some
that are all alike: they have no error, and are infinitely far from the value in units of it."""
FEW_MOVERS = 6
"""Fewest clusters that must move a difference for resamples to tell enough of it. With fewer, no
test that flips their signs can go below .05, either."""
UNEVEN = 1.2
"""Ratio of the jackknife's error to that by influences from which on the former counts (our own
rule). A cluster with most of the items is nearly the mean itself, and seems to move nothing."""
SMALLEST_ERROR = 1e-5
"""Share of the standard error below which that of a resample is rounding."""


@dataclass(frozen=True)
class Draws:
    """Column sums of every cluster of items, and of resamples of the clusters."""

    sums: Floats
    """Sums of each cluster. Shape ``[C, S]``."""
    seed: int = 0

    @classmethod
    def of(cls, columns: Floats, clusters: Ints, seed: int = 0) -> Draws:
        """Sum per-item columns ``[n, S]`` by cluster ``[n]``; clusters are resampled whole."""
        return cls(cluster_sums(columns, clusters), seed)

    @property
    def total(self) -> Floats:
        """Sum over all items. Shape ``[S]``."""
        return np.asarray(self.sums.sum(axis=0))

    @cached_property
    def resampled(self) -> Floats:
        """Sum over clusters drawn with replacement. Shape ``[B, S]``."""
        return resample_clusters(self.sums, self.seed)

    def rate(self, value: Sums, items: Sums) -> dict[str, Any]:
        """Estimate a share of what ``items`` counts, with the interval of ``design_bounds``."""
        sizes = items(self.sums)
        hits = np.nan_to_num(value(self.sums)) * sizes
        rate, n = value(self.total), items(self.total)
        low, high, _ = design_bounds(rate, n, design(hits, sizes))
        return {"value": float(rate), "low": float(low), "high": float(high), "n": int(n)}

    def estimate(
        self,
        value: Sums,
        n: float,
        bounds: tuple[float, float] = UNBOUNDED,
        *,
        is_difference: bool = False,
    ) -> dict[str, Any]:
        """Estimate a smooth function of the sums that does not change with their scale.

        The interval is the studentised bootstrap's over clusters (Efron & Tibshirani 1993, chapter
        12.5): every resample's distance from the value is taken in standard errors of that
        resample, by the infinitesimal jackknife. With few clusters it covers far better than the
        quantiles of the resamples.

        Two judges may differ in a handful of clusters, which are then either all in a resample or
        missing. So no end of a difference (``is_difference``: of two judges, or of a judge and
        people, on the same items) that fewer than :data:`FEW_MOVERS` clusters move is nearer than
        Student's quantile. For ``K`` of equal weight its degrees of freedom are ``2 K``, those of
        the variance (Satterthwaite 1946).

        A cluster with most of the items hides its own error, with a plain jackknife the most
        (Tukey 1958). Where that says more by :data:`UNEVEN`, no end is nearer than by it.

        ``bounds`` are the smallest and largest value of the function, which is about ``n`` items.
        The ends are nan where the clusters show no spread.
        """
        point = float(value(self.total))
        low, high = self._studentised(value, point, is_difference)
        low, high = max(low, bounds[0]), min(high, bounds[1])
        return {"value": point, "low": low, "high": high, "n": int(n)}

    def _studentised(self, value: Sums, point: float, is_difference: bool) -> Interval:
        clusters = len(self.sums)
        if clusters < 2 or math.isnan(point):
            return NO_INTERVAL
        probes = np.concatenate([self.total[None], self.resampled[:PROBES]])
        slopes = self._slopes(value, probes, range(len(self.total)))
        used = np.flatnonzero(slopes.any(axis=0)).tolist()
        influences = (self.sums[:, used] @ slopes[0, used]) ** 2
        scale = clusters / (clusters - 1)
        error = math.sqrt(influences.sum() * scale)
        flat = FLAT * max(1.0, abs(point))
        if not error > flat:
            return NO_INTERVAL
        slopes = self._slopes(value, self.resampled, used)[:, used]
        squares = np.zeros(RESAMPLES)
        for drawn, weights in weight_chunks(clusters, self.seed):
            influence = slopes @ self.sums[drawn, used].T
            squares += np.einsum("rc,rc,rc->r", weights, influence, influence)
        errors = np.sqrt(squares * scale)
        distance = value(self.resampled) - point
        exists = ~np.isnan(distance) & ~np.isnan(errors)
        if not (np.abs(distance[exists]) > flat).any():
            return NO_INTERVAL
        errors[errors < SMALLEST_ERROR * error] = 0  # a resample of clusters that are alike
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = distance[exists] / errors[exists]
        scaled = np.nan_to_num(scaled, nan=0.0, posinf=math.inf, neginf=-math.inf)
        most = MOST_QUANTILES * float(student_quantile(clusters - 1, 0.975))
        below, above = np.clip(np.quantile(scaled, [0.025, 0.975], method="nearest"), -most, most)
        below, above = min(below, 0.0) * error, max(above, 0.0) * error  # it holds its value
        if is_difference:
            least = _least_quantile(influences) * error
            below, above = min(below, -least), max(above, least)
        left_out = np.nan_to_num(value(self.total - self.sums) - point)
        squares = (left_out - left_out.mean()) ** 2
        jackknife = math.sqrt(squares.sum() * (clusters - 1) / clusters)
        if jackknife > UNEVEN * error:
            least = max(_least_quantile(squares), Z_95) * jackknife
            below, above = min(below, -least), max(above, least)
        return Interval(float(point - above), float(point - below))

    def _slopes(self, value: Sums, totals: Floats, columns: Iterable[int]) -> Floats:
        """Compute the derivatives of a function by columns of the sums; 0 by the others.

        Where a count is 0, no item that is drawn has a part in it, and the slope is left out: a
        label that comes into use would make some functions jump. Shapes ``[R, S]``.
        """
        slopes = np.zeros_like(totals)
        is_count = np.asarray((self.sums >= 0).all(axis=0))
        for column in columns:
            ahead, behind = totals.copy(), totals.copy()
            ahead[:, column] += STEP
            behind[:, column] -= STEP
            with np.errstate(invalid="ignore"):  # a count just below 0
                slope = (value(ahead) - value(behind)) / (2 * STEP)
            unused = is_count[column] & (totals[:, column] == 0)
            slopes[:, column] = np.where(unused, 0, slope)
        return slopes


def _least_quantile(squares: Floats) -> float:
    """Compute how many errors away an interval's ends are at least, where few clusters move it."""
    movers = float(squares.sum() ** 2 / np.sum(squares**2))
    return float(student_quantile(2 * movers, 0.975)) if movers < FEW_MOVERS else 0.0


def value_interval(value: float, samples: Floats, clusters: int) -> Interval:
    """Take the percentile interval of a value whose error in a resample is not known.

    It is stretched by :func:`few_clusters_stretch` and widened to hold its value. Where all
    ``samples``, ``[B]``, have the value itself they show no spread, and the ends are nan.
    """
    interval = percentile_interval(samples)
    # Sums of equal numbers in another order differ in their last digits.
    if np.allclose(interval, value, rtol=1e-9, atol=1e-12):
        return NO_INTERVAL
    stretch = few_clusters_stretch(clusters)
    low, high = (value + stretch * (end - value) for end in interval)
    return Interval(float(np.minimum(low, value)), float(np.maximum(high, value)))


def few_clusters_stretch(clusters: int) -> float:
    """Compute how much wider few clusters make an interval than the quantiles of their resamples.

    That is Student's quantile over the normal one, and ``sqrt(C / (C - 1))``, by which resamples of
    ``C`` clusters spread too little.
    """
    quantile = float(student_quantile(clusters - 1, 0.975))
    return quantile / Z_95 * math.sqrt(clusters / (clusters - 1))


def mean(
    values: Floats,
    among: Mask | None,
    clusters: Ints,
    seed: int = 0,
    *,
    bounds: tuple[float, float] = UNBOUNDED,
    is_difference: bool = False,
) -> dict[str, Any]:
    """Estimate the mean over all items, or those in ``among``; nan without any. Shapes ``[n]``.

    ``bounds`` are the smallest and largest value of an item; the rest as in ``Draws.estimate``.
    """
    columns, clusters = _with_ones(values, among, clusters)
    draws = Draws.of(columns, clusters, seed)
    ratio_of = share_of_columns(0, 1)
    return draws.estimate(ratio_of, len(columns), bounds, is_difference=is_difference)


def share(hits: Mask | Floats, among: Mask | None, clusters: Ints) -> dict[str, Any]:
    """Estimate the share of all items, or of those in ``among``, that are hits. Shapes ``[n]``."""
    draws = Draws.of(*_with_ones(hits, among, clusters))
    return draws.rate(share_of_columns(0, 1), lambda sums: sums[..., 1])


def _with_ones(values: Mask | Floats, among: Mask | None, clusters: Ints) -> tuple[Floats, Ints]:
    """Lay out the chosen values, each beside a 1, ``[m, 2]``, and their clusters."""
    chosen = np.ones(len(values), dtype=bool) if among is None else among
    columns = np.stack([values[chosen], np.ones(chosen.sum())], axis=1)
    return columns.astype(np.float64), clusters[chosen]


def share_of_columns(hits: int, items: int) -> Sums:
    """Make the function that divides one column of the sums by another one."""
    return lambda sums: ratio(sums[..., hits], sums[..., items])


def without_nan(value: Any) -> Any:
    """Copy a JSON value with ``None`` for every number that is not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return value


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

    def difference(sums: Floats) -> Floats:
        return ratio(sums[..., 0] - sums[..., 1], sums[..., 2])

    rates = {
        name: draws.rate(share_of_columns(column, 2), lambda sums: sums[..., 2])
        for column, name in enumerate(("first", "second"))
    }
    apart = draws.estimate(difference, len(first), (-1.0, 1.0), is_difference=True)
    if groups > 1 and not apart["low"] < apart["high"]:  # the resamples show no spread
        values = (rates["first"]["value"], rates["second"]["value"])
        apart |= newcombe_interval(*values, groups)._asdict()
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
    the number of items over the design effect and by Student's quantile for the effective number of
    clusters. Unlike Wald's it holds where the judges never differ: 150 such items leave out a loss
    of 2 points, 100 do not. Differences are those of the second judge less the first, -1, 0 or 1.
    Shapes ``[n]``.
    """
    mean, changed, effective, freedom = _summary(differences, clusters)
    if not freedom > 0:
        return -1.0, 1.0
    quantile = float(student_quantile(freedom, 1 - LEVEL))
    low, high = -1.0, mean
    while high - low > PRECISION:
        loss = (low + high) / 2
        is_rejected = tango_score(mean, changed, loss) * np.sqrt(effective) > quantile
        low, high = (loss, high) if is_rejected else (low, loss)
    spread = changed - mean**2
    error = np.sqrt(max(spread, 1 / effective) / effective)  # as if one item at least had changed
    return low, float(min(1.0, (quantile + student_quantile(freedom, POWER)) * error))


def loss_within_p(differences: Floats, clusters: Ints, margin: float) -> float:
    """Test, as :func:`lowest_difference`, for a loss of at least the margin, one-sided.

    A small p-value shows that the loss is less; it is 1 for a single question.
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


def tango_score(mean: Number, changed: float, difference: float) -> Number:
    """Compute the score of Tango (1998) of a true difference of two rates, for a single item.

    ``mean`` is the observed difference, ``changed`` the share of the items on which exactly one of
    the two judges is right.
    """
    lost = (changed - mean) / 2
    slope = -changed + (2 - mean) * difference
    root = np.sqrt(slope**2 + 8 * lost * difference * (1 - difference))
    chance_of_loss = (root - slope) / 4
    variance = 2 * chance_of_loss + difference * (1 - difference)
    score: Number = (mean - difference) / np.sqrt(np.maximum(variance, PRECISION))
    return score
