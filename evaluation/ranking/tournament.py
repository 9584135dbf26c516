"""The table of a tournament: ratings, points and win rates of all models."""

from __future__ import annotations

from typing import Any

import numpy as np

from evaluation.estimate import value_interval
from evaluation.intervals import Floats, Interval, Ints, rate_interval
from evaluation.metrics import ratio
from evaluation.ranking.bradley_terry import bradley_terry
from evaluation.ranking.elo import elo_table
from evaluation.ranking.match_results import (
    MatchResults,
    clusters_met,
    resampled_wins,
    win_matrix,
)

TAIL = 0.025
"""Share of the resamples beyond either end of an interval."""


def rank_models(results: MatchResults, clusters: Ints | None = None) -> dict[str, Any]:
    """Return the table of a tournament as plain values; arguments as in ``bradley_terry``.

    A resample in which a model wins or loses all its matches has no finite strengths. Where more
    than :data:`TAIL` of the resamples have none, the ends of the intervals lie among these, and
    ratings have no interval. Nor have they where a model wins or loses all its matches and Firth's
    penalty makes the ratings finite: how much stronger it may be, no resample shows.

    Returns:
        ``models``, strongest first by Bradley-Terry: ``rating`` (``value``, ``low``, ``high``),
        ``matches``, ``points`` (ties half) and ``elo`` (as ``elo_table``). ``wins``: model to model
        to points of the former over the latter. ``win_rate``: the same over their matches
        (``value``, ``low``, ``high``, ``n``), nan for pairs that never met. ``n``: the number of
        matches. ``draws``: the resamples with finite strengths. ``penalised``: whether ratings are
        those of Firth's penalty.

    Raises:
        CustosError: As ``bradley_terry``.
    """
    names = results.names
    ratings = bradley_terry(results, clusters)
    elo = elo_table(results)
    wins = win_matrix(results)
    is_finite = ~np.isnan(ratings.resampled[:, 0])
    has_intervals = is_finite.mean() >= 1 - TAIL and not ratings.is_penalised
    models = {}
    for i in np.argsort(-ratings.values, kind="stable"):
        value = float(ratings.values[i])
        interval = Interval(np.nan, np.nan)
        if has_intervals:
            interval = value_interval(value, ratings.resampled[:, i])
        models[names[i]] = {
            "rating": {"value": value, "low": interval.low, "high": interval.high},
            "matches": int((wins + wins.T)[i].sum()),
            "points": float(wins[i].sum()),
            "elo": elo[names[i]],
        }
    return {
        "models": models,
        "wins": {
            a: {b: float(wins[i, j]) for j, b in enumerate(names) if i != j}
            for i, a in enumerate(names)
        },
        "win_rate": _win_rates(
            results,
            wins,
            resampled_wins(results, clusters),
            clusters_met(results, clusters),
        ),
        "n": len(results),
        "draws": int(is_finite.sum()),
        "penalised": ratings.is_penalised,
    }


def _win_rates(
    results: MatchResults, wins: Floats, resampled: Floats, met: Ints
) -> dict[str, dict[str, dict[str, float]]]:
    """Return every model's rate of points over every other.

    Args:
        results: Results of the matches.
        wins: Win matrix. Shape ``[m, m]``.
        resampled: Win matrices of the resamples. Shape ``[B, m, m]``.
        met: Clusters in which two models met. Shape ``[m, m]``.
    """
    games = wins + wins.T
    rates, resampled_rates = ratio(wins, games), ratio(resampled, resampled + resampled.mT)
    table: dict[str, dict[str, dict[str, float]]] = {}
    for i, j in np.ndindex(*games.shape):
        if i != j:
            rate = float(rates[i, j])
            interval = rate_interval(rate, resampled_rates[:, i, j], int(met[i, j]))
            table.setdefault(results.names[i], {})[results.names[j]] = {
                "value": rate,
                "low": interval.low,
                "high": interval.high,
                "n": int(games[i, j]),
            }
    return table
