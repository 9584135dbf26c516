"""Online Elo ratings, which depend on the order in which the matches are played."""

from __future__ import annotations

import numpy as np

from evaluation.intervals import Floats, Ints, percentile_interval
from evaluation.ranking.bradley_terry import LOG_ODDS_PER_POINT, RATING_MEAN
from evaluation.ranking.match_results import MatchResults

ELO_K = 4.0
ELO_SHUFFLES = 100


def online_elo(results: MatchResults, orders: Ints, k: float = ELO_K) -> Floats:
    """Return Elo ratings after playing the matches one by one, from 1500 each (Elo 1978).

    After a match each side moves by ``k`` times the difference between its score (1, a half, 0) and
    the score that its rating predicted. The last matches count most, so that the result depends on
    the order. The mean stays 1500.

    Args:
        results: Results of the matches.
        orders: Orders to play them in, rows of match indices. Shape ``[S, n]``.
        k: Points at stake in a match.

    Returns:
        Shape ``[S, m]``.
    """
    models = len(results.names)
    ratings = np.full(len(orders) * models, RATING_MEAN)
    start = models * np.arange(len(orders))
    score = results.half_points / 2
    for match in np.ascontiguousarray(orders.T):
        a, b = start + results.first[match], start + results.second[match]
        before_a, before_b = ratings[a], ratings[b]
        expected = 1 / (1 + np.exp((before_b - before_a) * LOG_ODDS_PER_POINT))
        gain = k * (score[match] - expected)
        ratings[a], ratings[b] = before_a + gain, before_b - gain
    return ratings.reshape(-1, models)


def elo_table(
    results: MatchResults, k: float = ELO_K, shuffles: int = ELO_SHUFFLES, seed: int = 0
) -> dict[str, dict[str, float]]:
    """Return online Elo in the order played, and over random orders of the same matches.

    Args:
        results: Results of the matches, in the order played.
        k: Points at stake in a match.
        shuffles: Number of random orders.
        seed: Seed of the random orders.

    Returns:
        Model to ``as_played``, ``mean`` over the random orders, and ``order_low`` and
        ``order_high``, the middle 95 % of them, which show the effect of the order alone. They are
        no interval of the model's strength; ``bradley_terry`` has one.
    """
    rng = np.random.default_rng(seed)
    as_played = np.arange(len(results))
    orders = rng.permuted(np.tile(as_played, (shuffles, 1)), axis=1)
    ratings = online_elo(results, np.concatenate([as_played[None], orders]), k)
    spread = [percentile_interval(column) for column in ratings[1:].T]
    return {
        name: {
            "as_played": float(ratings[0, i]),
            "mean": float(ratings[1:, i].mean()),
            "order_low": spread[i].low,
            "order_high": spread[i].high,
        }
        for i, name in enumerate(results.names)
    }
