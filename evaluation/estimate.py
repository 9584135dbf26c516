"""A value and its 95 % interval, for any function of sums over clustered items."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from evaluation.intervals import (
    NO_INTERVAL,
    RESAMPLES,
    TINY,
    Z_95,
    Floats,
    Interval,
    Ints,
    Mask,
    cluster_sums,
    design,
    design_bounds,
    percentile_interval,
    resample_clusters,
    weight_chunks,
)
from evaluation.metrics import ratio

Sums = Callable[[Floats], Floats]
"""A function of sums of columns, shapes ``[..., S]`` to ``[...]``; nan where it does not exist."""
UNBOUNDED = (-math.inf, math.inf)
STEP = 1e-4
"""Step of derivatives, in items."""
PROBES = 8
"""Resamples on which it is seen which columns a function depends on."""
MOST_QUANTILES = 2
"""Student's quantiles that an end is away from the value at most: with few clusters so many
resamples may be alike in all of theirs that no end could be given."""
FEW_MOVERS = 6
"""Clusters that move a difference, below which resamples say too little of it; and no test that
flips their signs can go below .05."""
UNEVEN = 1.2
"""Jackknife's error over that of a resample from which on some cluster is too large to resample: it
is nearly the mean, and so seems to move nothing (our own rule)."""
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
        """Sum over clusters drawn with replacement, as ``resample_clusters`` does."""
        return resample_clusters(self.sums, seed=self.seed)

    def rate(self, value: Sums, items: Sums) -> dict[str, Any]:
        """Estimate the share of some items, with the interval of ``intervals.design_bounds``.

        ``items`` counts them. The ends ``low`` and ``high`` are nan for fewer than two clusters.
        """
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
        missing. So no end of a difference (``is_difference``: of two judges on the same items) that
        fewer than :data:`FEW_MOVERS` clusters move is nearer than Student's quantile. For ``K`` of
        equal weight its degrees of freedom are ``2 K``, those of the variance (Satterthwaite 1946).

        A cluster with most of the items hides its own error, with a plain jackknife the most
        (Tukey 1958). Where that says more by :data:`UNEVEN`, no end is nearer than by it.

        ``bounds`` are the smallest and largest value of the function, and ``n`` the number of items
        that it is about. The ends are nan where the clusters show no spread, as kappa where judge
        and people never differ.
        """
        point = float(value(self.total))
        low, high = self._studentised(value, point, is_difference)
        low, high = max(low, bounds[0]), min(high, bounds[1])
        return {"value": point, "low": low, "high": high, "n": int(n)}

    def _studentised(self, value: Sums, point: float, is_difference: bool) -> Interval:
        from scipy.special import stdtrit  # slow to import, and most commands need none

        clusters = len(self.sums)
        if clusters < 2 or math.isnan(point):
            return NO_INTERVAL
        probes = np.concatenate([self.total[None], self.resampled[:PROBES]])
        slopes = self._slopes(value, probes, range(len(self.total)))
        used = np.flatnonzero(slopes.any(axis=0)).tolist()
        slopes_here = slopes[0]
        error = self._errors(slopes[:1], np.ones((1, clusters)))[0]
        if not error > TINY * max(1.0, abs(point)):
            return NO_INTERVAL
        slopes, errors = self._slopes(value, self.resampled, used), np.empty(RESAMPLES)
        for rows, weights in weight_chunks(clusters, RESAMPLES, self.seed):
            errors[rows] = self._errors(slopes[rows], weights)
        distance = value(self.resampled) - point
        exists = ~np.isnan(distance) & ~np.isnan(errors)
        if not exists.any():
            return NO_INTERVAL
        errors[errors < SMALLEST_ERROR * error] = 0  # a resample of clusters that are alike
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = distance[exists] / errors[exists]
        scaled = np.nan_to_num(scaled, nan=0.0, posinf=math.inf, neginf=-math.inf)
        most = MOST_QUANTILES * float(stdtrit(clusters - 1, 0.975))
        below, above = np.clip(np.quantile(scaled, [0.025, 0.975], method="nearest"), -most, most)
        below, above = min(below, 0.0) * error, max(above, 0.0) * error  # it holds its value
        if is_difference:
            squares = (self.sums @ slopes_here) ** 2
            least = _least_quantile(squares) * error
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

    def _errors(self, slopes: Floats, weights: Floats) -> Floats:
        """Compute standard errors ``[R]`` from slopes ``[R, S]`` and weights ``[R, C]``."""
        used = np.flatnonzero(slopes.any(axis=0))
        influence = slopes[:, used] @ self.sums[:, used].T
        clusters = len(self.sums)
        squares = np.einsum("rc,rc,rc->r", weights, influence, influence)
        return np.asarray(np.sqrt(squares * clusters / (clusters - 1)))


def _least_quantile(squares: Floats) -> float:
    """Compute how many errors away the ends of an interval are at least, by what clusters move.

    It is 0 where enough clusters move the value. Shape ``[C]``.
    """
    from scipy.special import stdtrit  # slow to import, and most commands need none

    movers = float(squares.sum() ** 2 / np.sum(squares**2))
    return float(stdtrit(2 * movers, 0.975)) if movers < FEW_MOVERS else 0.0


def value_interval(value: float, samples: Floats, clusters: float = math.inf) -> Interval:
    """Take the percentile interval of a value that is known to no error in a resample.

    ``samples`` are the values of resamples, ``[B]``. One that does not hold its value is widened to
    hold it. Where all resamples have the value itself they show no spread, and the ends are nan.
    With ``C`` clusters it is stretched by Student's quantile over the normal one and by
    ``sqrt(C / (C - 1))``, by which resamples of few clusters spread too little.
    """
    from scipy.special import stdtrit  # slow to import, and most commands need none

    interval = percentile_interval(samples)
    # Sums of equal numbers in another order differ in their last digits.
    if np.allclose(interval, value, rtol=1e-9, atol=1e-12):
        return NO_INTERVAL
    stretch = 1.0
    if clusters < math.inf:
        stretch = float(stdtrit(clusters - 1, 0.975)) / Z_95 * math.sqrt(clusters / (clusters - 1))
    low, high = (value + stretch * (end - value) for end in interval)
    return Interval(float(np.minimum(low, value)), float(np.maximum(high, value)))


def mean(
    values: Floats,
    among: Mask,
    clusters: Ints,
    seed: int = 0,
    *,
    is_rate: bool = False,
    is_difference: bool = False,
) -> dict[str, Any]:
    """Estimate the mean over the items in ``among``; nan when there are none. Shapes ``[n]``.

    ``n`` of the estimate is the number of items in ``among``.
    """
    columns = np.stack([np.where(among, values, 0), among], axis=1).astype(np.float64)
    draws = Draws.of(columns[among], clusters[among], seed)
    if is_rate:
        return draws.rate(share_of_columns(0, 1), lambda sums: sums[..., 1])
    return draws.estimate(share_of_columns(0, 1), float(among.sum()), is_difference=is_difference)


def share_of_columns(hits: int, items: int) -> Sums:
    """Make the function that divides one column of the sums by another one."""
    return lambda sums: ratio(sums[..., hits], sums[..., items])


def share(hits: Mask, among: Mask, clusters: Ints, seed: int = 0) -> dict[str, Any]:
    """Estimate the share of the items in ``among`` that are in ``hits``. Arguments as ``mean``."""
    return mean(hits.astype(np.float64), among, clusters, seed, is_rate=True)


def without_nan(value: Any) -> Any:
    """Copy a JSON value with ``None`` for every number that is not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return value
