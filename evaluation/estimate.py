"""A value and its 95 % interval, for any function of sums over clustered items."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluation.intervals import (
    Floats,
    Interval,
    Ints,
    cluster_sums,
    percentile_interval,
    rate_interval,
    resample_clusters,
)
from evaluation.metrics import ratio

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Draws:
    """Column sums of every cluster of items, and of resamples of the clusters."""

    sums: Floats
    """Sums of each cluster. Shape ``[C, S]``."""
    seed: int = 0

    @classmethod
    def of(cls, columns: Floats, clusters: Ints, seed: int = 0) -> Draws:
        """Sum per-item columns by cluster.

        Args:
            columns: Shape ``[n, S]``.
            clusters: Items with the same number are resampled together. Shape ``[n]``.
            seed: Seed of the resamples.
        """
        return cls(cluster_sums(columns, clusters), seed)

    @property
    def total(self) -> Floats:
        """Return the sums over all items. Shape ``[S]``."""
        return np.asarray(self.sums.sum(axis=0))

    @cached_property
    def resampled(self) -> Floats:
        """Return the sums over clusters drawn with replacement, as ``resample_clusters`` does."""
        return resample_clusters(self.sums, seed=self.seed)

    def estimate(
        self, value: Callable[[Floats], Floats], n: float, is_rate: bool = False
    ) -> dict[str, Any]:
        """Apply a function of the sums, shapes ``[..., S]`` to ``[...]``.

        The interval of a rate whose resamples all agree, as at 0 and 1, is Wilson's, over as many
        observations as there are clusters that hold items of the rate. All other intervals are
        those of :func:`value_interval`.

        Args:
            value: The function; nan where it does not exist.
            n: Number of items that it is about.
            is_rate: Whether it is a share of the ``n`` items.

        Returns:
            ``value``, ``low``, ``high`` and ``n``.
        """
        point, samples = float(value(self.total)), value(self.resampled)
        if is_rate:
            # A cluster without items of the rate has no rate.
            clusters = int((~np.isnan(value(self.sums))).sum())
            low, high = _widened(rate_interval(point, samples, clusters), point)
        else:
            low, high = value_interval(point, samples)
        return {"value": point, "low": low, "high": high, "n": int(n)}


def value_interval(value: float, samples: Floats) -> Interval:
    """Return the interval of a value that is no rate, from its resamples, shape ``[B]``.

    An interval that does not hold its value is widened to hold it: chance can only add to a
    calibration error, so that all resamples of a well-calibrated judge may lie above its value.
    Where all resamples have the value itself, as kappa where judge and people never differ, or the
    difference of two judges who never differ, they show no spread, and the ends are nan.
    """
    interval = percentile_interval(samples)
    # Sums of equal numbers in another order differ in their last digits.
    if np.allclose(interval, value, rtol=1e-9, atol=1e-12):
        return Interval(math.nan, math.nan)
    return _widened(interval, value)


def _widened(interval: Interval, value: float) -> Interval:
    """Return an interval that holds a value; nan if either is nan."""
    low, high = np.minimum(interval.low, value), np.maximum(interval.high, value)
    return Interval(float(low), float(high))


def mean(
    values: Floats, among: Mask, clusters: Ints, seed: int = 0, *, is_rate: bool = False
) -> dict[str, Any]:
    """Estimate the mean over the items in ``among``; nan when there are none.

    Args:
        values: Shape ``[n]``; those of other items may be nan.
        among: Shape ``[n]``.
        clusters: Shape ``[n]``.
        seed: Seed of the resamples.
        is_rate: Whether all values are 0 or 1.

    Returns:
        ``value``, ``low``, ``high`` and ``n``, the number of items in ``among``.
    """
    columns = np.stack([np.where(among, values, 0), among], axis=1).astype(np.float64)
    draws = Draws.of(columns, clusters, seed)
    return draws.estimate(
        lambda sums: ratio(sums[..., 0], sums[..., 1]), float(among.sum()), is_rate
    )


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
