"""A value and its 95 % interval, for any function of sums over clustered items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluation.intervals import RESAMPLES, Floats, Ints, cluster_sums, resample_clusters
from evaluation.measure import Metric, Tally, summarise
from evaluation.metrics import ratio

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Draws:
    """Column sums of every cluster of items, and over clusters drawn with replacement."""

    sums: Floats
    """Shape ``[C, S]``."""
    drawn: Floats
    """Shape ``[B, S]``; nan with fewer than two clusters."""

    @classmethod
    def of(
        cls, columns: Floats, clusters: Ints, resamples: int = RESAMPLES, seed: int = 0
    ) -> Draws:
        """Sum per-item columns.

        Args:
            columns: Shape ``[n, S]``.
            clusters: Items with the same number are resampled together. Shape ``[n]``.
            resamples: Number of draws ``B``.
            seed: Seed of the draws.
        """
        sums = cluster_sums(columns, clusters)
        return cls(sums, resample_clusters(sums, resamples, seed))

    @property
    def total(self) -> Floats:
        """Sums over all items. Shape ``[S]``."""
        return np.asarray(self.sums.sum(axis=0))

    def estimate(
        self, value: Callable[[Floats], Floats], n: float, is_rate: bool = False
    ) -> dict[str, Any]:
        """Apply a function of the sums, shapes ``[..., S]`` to ``[...]``.

        Args:
            value: The function; nan where it does not exist.
            n: Number of items it is about.
            is_rate: A share of the ``n`` items: at 0 and 1 its interval is Wilson's.

        Returns:
            ``value``, ``low``, ``high`` and ``n``.
        """
        metric = Metric(lambda tally: value(tally.sums), lambda tally: np.asarray(n), is_rate)
        return summarise(metric, Tally((), self.sums), Tally((), self.drawn))


def share(
    hits: Mask, among: Mask, clusters: Ints, resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, Any]:
    """Share of the items in ``among`` that are in ``hits`` too; nan when ``among`` is empty.

    Args:
        hits: Shape ``[n]``.
        among: Shape ``[n]``.
        clusters: Shape ``[n]``.
        resamples: Bootstrap resamples.
        seed: Their seed.

    Returns:
        ``value``, ``low``, ``high`` and ``n``, the number of items in ``among``.
    """
    columns = np.stack([hits & among, among], axis=1).astype(np.float64)
    draws = Draws.of(columns, clusters, resamples, seed)
    return draws.estimate(lambda sums: ratio(sums[..., 0], sums[..., 1]), float(among.sum()), True)
