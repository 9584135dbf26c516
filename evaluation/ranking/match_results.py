"""Results of matches between models as arrays, and the win matrices that they add up to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from evaluation.intervals import RESAMPLES, Floats, Ints, cluster_sums, resample_clusters
from judging.errors import CustosError

HALF_POINTS = {"A": 2, "B": 0, "tie": 1}
"""Outcome of a match to half points of its first model."""


@dataclass(frozen=True)
class MatchResults:
    """``n`` matches between ``m`` models, as arrays."""

    names: tuple[str, ...]
    """Models, sorted. Length ``m``."""
    first: Ints
    """Index of model A. Shape ``[n]``."""
    second: Ints
    """Index of model B. Shape ``[n]``."""
    half_points: Ints
    """2 where A won, 1 for a tie, 0 where B won. Shape ``[n]``."""

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str, str]]) -> MatchResults:
        """Read ``(model_a, model_b, outcome)`` rows, the outcome ``A``, ``B`` or ``tie``.

        Raises:
            CustosError: If there are no rows, or a row has another outcome or the same model on
                both sides; the message names the row.
        """
        played = list(rows)
        if not played:
            raise CustosError("no matches to rank by: the data is empty")
        for row, (a, b, outcome) in enumerate(played, 1):
            if outcome not in HALF_POINTS:
                raise CustosError(
                    f"match {row}: outcome '{outcome}' is not one of {', '.join(HALF_POINTS)}"
                )
            if a == b:
                raise CustosError(f"match {row}: '{a}' plays itself")
        names = tuple(sorted({name for a, b, _ in played for name in (a, b)}))
        index = {name: i for i, name in enumerate(names)}
        first, second = (np.array([index[row[side]] for row in played]) for side in (0, 1))
        return cls(names, first, second, np.array([HALF_POINTS[row[2]] for row in played]))

    def __len__(self) -> int:
        return len(self.first)


def win_matrix(results: MatchResults) -> Floats:
    """Count the wins of row over column, a tie as half a win for each. Shape ``[m, m]``."""
    models = len(results.names)
    wins = np.zeros((models, models))
    np.add.at(wins, (results.first, results.second), results.half_points / 2)
    np.add.at(wins, (results.second, results.first), 1 - results.half_points / 2)
    return wins


def resampled_wins(
    results: MatchResults, clusters: Ints | None = None, resamples: int = RESAMPLES, seed: int = 0
) -> Floats:
    """Return the win matrices of resampled matches.

    Args:
        results: Results of the matches.
        clusters: Matches with the same number are resampled together. Shape ``[n]``; by default
            every match is a cluster of its own.
        resamples: Number of resamples ``B``.
        seed: Seed of the resamples.

    Returns:
        Shape ``[B, m, m]``.
    """
    models = len(results.names)
    if clusters is not None:
        points = _points(results.first, results.second, results.half_points, models)
        sums = cluster_sums(points, clusters)
        return resample_clusters(sums, resamples, seed).reshape(resamples, models, models)
    # Equal single matches need not be told apart: a multinomial over the distinct results has the
    # same distribution and does not grow with the number of matches.
    code = (results.first * models + results.second) * 3 + results.half_points
    _, sample, counts = np.unique(code, return_index=True, return_counts=True)
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(len(results), counts / len(results), size=resamples)
    points = _points(
        results.first[sample], results.second[sample], results.half_points[sample], models
    )
    return (weights.astype(np.float64) @ points).reshape(resamples, models, models)


def clusters_met(results: MatchResults, clusters: Ints | None) -> Ints:
    """Count the clusters in which two models met; clusters as in ``resampled_wins``. ``[m, m]``."""
    numbers = np.arange(len(results)) if clusters is None else clusters
    sides = np.sort([results.first, results.second], axis=0)
    low, high, _ = np.unique(np.stack([*sides, numbers]), axis=1)
    met = np.zeros((len(results.names), len(results.names)), dtype=np.int64)
    np.add.at(met, (low, high), 1)
    return met + met.T


def _points(first: Ints, second: Ints, half_points: Ints, models: int) -> Floats:
    """Return each match's part of the win matrix. Shape ``[n, m * m]``."""
    added = np.zeros((len(half_points), models, models))
    match = np.arange(len(half_points))
    added[match, first, second] = half_points / 2
    added[match, second, first] = 1 - half_points / 2
    return added.reshape(len(half_points), -1)
