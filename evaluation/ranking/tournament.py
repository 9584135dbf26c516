"""The table of a tournament, with ratings, win rates and Elo; and the table people would give."""

from __future__ import annotations

from typing import Any

import numpy as np

from evaluation.correction.scores import unequal_probabilities
from evaluation.estimate import value_interval
from evaluation.intervals import (
    NO_INTERVAL,
    Z_95,
    Floats,
    Ints,
    cluster_sums,
    design,
    percentile_interval,
    ratio,
    resample_clusters,
    student_quantile,
    wilson_bounds,
)
from evaluation.ranking.bradley_terry import (
    LOG_ODDS_PER_POINT,
    RATING_MEAN,
    MatchResults,
    bradley_terry,
    fit_strengths,
    order_probabilities,
    win_matrix,
    wins_by_cluster,
)
from judging.errors import CustosError

TAIL = 0.025
"""Share of the resamples beyond either end of an interval."""
ELO_K = 4.0
ELO_SHUFFLES = 100


def rank_models(results: MatchResults, clusters: Ints) -> dict[str, Any]:
    """Compute the table of a tournament as plain values; arguments and errors as ``bradley_terry``.

    A resample in which a model wins or loses all its matches has no finite strengths. Where more
    than :data:`TAIL` of the resamples have none, the ends of the intervals lie among these, and
    ratings have no interval. Nor have they where a model wins or loses all its matches and Firth's
    penalty makes the ratings finite: how much stronger it may be, no resample shows.

    ``models`` has, strongest first by Bradley-Terry, ``rating``, ``matches``, ``points`` (ties
    half) and ``elo`` (as ``elo_table``). ``wins`` leads from model to model to points of the former
    over the latter, and ``win_rate`` to the same over their matches. ``n`` is the number of
    matches, ``draws`` that of the resamples with finite strengths, and ``penalised`` says whether
    ratings are those of Firth's penalty.
    """
    names = results.names
    ratings = bradley_terry(results, clusters)
    elo = elo_table(results)
    by_cluster = wins_by_cluster(results, clusters, results.half_points)
    wins = by_cluster.sum(axis=0)
    games = wins + wins.T
    is_finite = ~np.isnan(ratings.resampled[:, 0])
    num_clusters = len(np.unique(clusters))
    has_intervals = is_finite.mean() >= 1 - TAIL and not ratings.is_penalised
    models = {}
    for i in np.argsort(-ratings.values, kind="stable"):
        value, interval = float(ratings.values[i]), NO_INTERVAL
        if has_intervals:
            interval = value_interval(value, ratings.resampled[:, i], num_clusters)
        models[names[i]] = {
            "rating": {"value": value, **interval._asdict()},
            "matches": int(games[i].sum()),
            "points": float(wins[i].sum()),
            "elo": elo[names[i]],
        }
    rates, (lows, highs) = ratio(wins, games), win_rate_bounds(by_cluster)
    win_rates: dict[str, dict[str, dict[str, float]]] = {}
    for i, j in np.ndindex(*games.shape):
        if i != j:
            ends = {"low": float(lows[i, j]), "high": float(highs[i, j])}
            measured = {"value": float(rates[i, j]), **ends, "n": int(games[i, j])}
            win_rates.setdefault(names[i], {})[names[j]] = measured
    return {
        "models": models,
        "wins": {
            a: {b: float(wins[i, j]) for j, b in enumerate(names) if i != j}
            for i, a in enumerate(names)
        },
        "win_rate": win_rates,
        "n": len(results),
        "draws": int(is_finite.sum()),
        "penalised": ratings.is_penalised,
    }


def win_rate_bounds(wins: Floats) -> tuple[Floats, Floats]:
    """Compute the ends of the intervals of win rates from the wins in each cluster.

    They are Wilson's at the effective number of matches, which is higher where many are ties, and
    stretched by Student's quantile for the clusters, as on few of them the spread is hardly known.
    Matches of two models in one cluster count as one until their likeness is known. Where two never
    met, the ends are nan. Shapes ``[C, m, m]`` to ``[m, m]``.
    """
    points = np.moveaxis(wins, 0, -1)
    sizes = points + points.swapaxes(0, 1)
    games = sizes.sum(axis=-1)
    found = design(points, sizes, likeness=1, least=0)
    stretch = student_quantile(np.maximum(found.clusters - 1, 1), 0.975) / Z_95
    return wilson_bounds(ratio(points.sum(axis=-1), games), games / found.effect / stretch**2)


def online_elo(results: MatchResults, orders: Ints, k: float = ELO_K) -> Floats:
    """Compute Elo ratings after playing the matches one by one, from 1500 each (Elo 1978).

    After a match each side moves by ``k`` times the difference between its score (1, a half, 0) and
    the score that its rating predicted. The last matches count most, so that the result depends on
    the order. Orders are rows of match indices: ``[S, n]`` to ``[S, m]``.
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


def elo_table(results: MatchResults) -> dict[str, dict[str, float]]:
    """Compute online Elo in the order played, and over random orders of the same matches.

    A model leads to ``as_played``, ``mean`` over the random orders, and ``order_low`` and
    ``order_high``, the middle 95 % of them, which show the effect of the order alone.
    """
    as_played = np.arange(len(results))
    orders = np.tile(as_played, (ELO_SHUFFLES, 1))
    orders = np.random.default_rng(0).permuted(orders, axis=1)
    ratings = online_elo(results, np.concatenate([as_played[None], orders]))
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


def rank_by_people(
    results: MatchResults,
    people: Floats,
    clusters: Ints,
    probabilities: Floats | None = None,
) -> dict[str, Any]:
    """Estimate Bradley-Terry ratings by people, who decided a random sample of a judge's matches.

    People's table of wins on the sample is moved by lambda times the difference of the judge's
    tables on the other matches and on the sample (PPI++, Angelopoulos, Duchi & Zrnic 2023). The
    strengths are those under which the moved table is expected. To first order they are unbiased
    whatever the judge's errors. Lambda minimises the variance of the residuals. Firth's penalty
    keeps all strengths finite.

    ``people`` are half points of the first model, 0 to 2, nan where people decided nothing.
    ``clusters`` are the matches' questions, which are resampled. ``probabilities`` are those with
    which decided matches were drawn, where some were likelier: matches then weigh by the inverse,
    as in :func:`evaluation.correction.scores.corrected_rate`. Shapes ``[n]``. Raise ``CustosError``
    if people decided matches of fewer than two questions, no chain of matches that they decided
    leads from a model to another one, or probabilities are no such thing.

    ``models`` has by name, the strongest first, ``value``, ``low`` and ``high`` of the rating;
    ``same_order`` and ``same_winner`` are as ``order_probabilities``, for people's ranking and the
    judge's on all matches; ``n`` counts the matches that people decided, and ``power`` is lambda.
    """
    known = ~np.isnan(people)
    questions = len(np.unique(clusters[known]))
    if questions < 2:
        raise CustosError("people decided matches on fewer than two questions; decide more")
    drawn_by = None if probabilities is None else unequal_probabilities(probabilities, known)
    weights = known.astype(np.float64) if drawn_by is None else np.nan_to_num(1 / drawn_by)
    weights *= weights.sum() / np.sum(weights**2)  # their sum is the effective number (Kish 1965)
    judged = fit_strengths(win_matrix(results), penalised=True)
    power = _power(results, people, weights, judged)
    sums = _sums(results, people, weights, clusters)
    total = sums.sum(axis=0, keepdims=True)
    if np.isnan(_strengths(total, 0)).any():
        raise CustosError("no chain of matches that people decided connects all models")
    values = _strengths(total, power)[0]
    drawn = _strengths(resample_clusters(sums), power)
    models = {}
    for i in np.argsort(-values, kind="stable"):
        value = float(values[i])
        interval = value_interval(value, drawn[:, i], questions)
        models[results.names[i]] = {"value": value, "low": interval.low, "high": interval.high}
    return {
        "models": models,
        **order_probabilities(judged, drawn, questions),
        "n": int(known.sum()),
        "power": power,
    }


def _power(results: MatchResults, people: Floats, weights: Floats, judged: Floats) -> float:
    """Compute the weight of the judge: of its residuals in people's, from 0 to 1."""
    known = ~np.isnan(people)
    if known.all():
        return 0.0
    gap = (judged[results.first] - judged[results.second]) * LOG_ODDS_PER_POINT
    chance = 1 / (1 + np.exp(-gap[known]))
    of_judge = results.half_points[known] / 2 - chance
    of_people = people[known] / 2 - chance
    sampled = known.sum() / (~known).sum()
    squares = weights[known] ** 2  # a residual counts as often in the sum whose variance this is
    shared, own = np.sum(squares * of_judge * of_people), np.sum(squares * of_judge**2)
    return float(np.clip(np.nan_to_num(ratio(shared, own * (1 + sampled))), 0, 1))


def _sums(results: MatchResults, people: Floats, weights: Floats, clusters: Ints) -> Floats:
    """Add up three win tables in each cluster, with weight and number of its matches.

    The tables are people's and the judge's on the sample, by ``weights``, and the judge's on all
    matches. The numbers are the weight, those in the sample, and those of all matches.
    Shape ``[C, 3 m² + 3]``.
    """
    judged = results.half_points
    tables = [
        wins_by_cluster(results, clusters, np.nan_to_num(people), weights),
        wins_by_cluster(results, clusters, judged, weights),
        wins_by_cluster(results, clusters, judged),
    ]
    numbers = np.stack([weights, ~np.isnan(people), np.ones(len(results))], axis=1)
    flat = [table.reshape(len(table), -1) for table in tables]
    return np.concatenate([*flat, cluster_sums(numbers, clusters)], axis=1)


def _strengths(sums: Floats, power: float) -> Floats:
    """Fit strengths to the moved tables of resamples. Shapes ``[B, 3 m² + 3]`` to ``[B, m]``."""
    models = round(((sums.shape[1] - 3) / 3) ** 0.5)
    tables = sums[:, :-3].reshape(len(sums), 3, models, models)
    sample, decided, matches = (sums[:, [number], None] for number in (-3, -2, -1))
    on_sample = ratio(tables[:, 1], sample)
    gap = on_sample - ratio(tables[:, 2] - decided * on_sample, matches - decided)
    moved = ratio(tables[:, 0], sample) - power * np.nan_to_num(gap)
    return fit_strengths(moved * sample, penalised=True)
