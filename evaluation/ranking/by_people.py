"""The ranking that people would give, from a judge's matches and people's outcomes of some."""

from __future__ import annotations

from typing import Any

import numpy as np

from evaluation.estimate import value_interval
from evaluation.intervals import RESAMPLES, Floats, Ints, cluster_sums, resample_clusters
from evaluation.metrics import ratio
from evaluation.ranking.agreement import order_probabilities
from evaluation.ranking.bradley_terry import LOG_ODDS_PER_POINT, fit_strengths
from evaluation.ranking.match_results import MatchResults, win_matrix
from judging.errors import CustosError


def rank_by_people(
    results: MatchResults, people: Floats, clusters: Ints, seed: int = 0
) -> dict[str, Any]:
    """Estimate Bradley-Terry ratings by people, who decided a random sample of a judge's matches.

    People's table of wins on the sample is moved by lambda times the difference of the judge's
    tables on the other matches and on the sample (PPI++, Angelopoulos, Duchi & Zrnic 2023). The
    strengths are those under which the moved table is expected. To first order they are unbiased
    whatever the judge's errors. Lambda minimises the variance of the residuals. Firth's penalty
    keeps all strengths finite.

    Args:
        results: The judge's results.
        people: Half points of the first model by people, 0 to 2; nan where they decided nothing.
            Shape ``[n]``.
        clusters: Question of each match; questions are resampled. Shape ``[n]``.
        seed: Seed of the resamples.

    Returns:
        ``models``: by name, the strongest first, ``value``, ``low`` and ``high`` of the rating;
        ``same_order`` and ``same_winner`` as ``order_probabilities``, for people's ranking and the
        judge's on all matches; ``n`` (matches that people decided) and ``power`` (lambda).

    Raises:
        CustosError: If people decided matches of fewer than two questions, or no chain of matches
            that they decided leads from a model to another one.
    """
    known = ~np.isnan(people)
    if len(np.unique(clusters[known])) < 2:
        raise CustosError("people decided matches on fewer than two questions; decide more")
    judged = fit_strengths(win_matrix(results), penalised=True)
    power = _power(results, people, judged)
    sums = cluster_sums(_columns(results, people), clusters)
    total = sums.sum(axis=0, keepdims=True)
    if np.isnan(_strengths(total, 0)).any():
        raise CustosError("no chain of matches that people decided connects all models")
    values = _strengths(total, power)[0]
    drawn = _strengths(resample_clusters(sums, RESAMPLES, seed), power)
    models = {}
    for i in np.argsort(-values, kind="stable"):
        value = float(values[i])
        interval = value_interval(value, drawn[:, i])
        models[results.names[i]] = {"value": value, "low": interval.low, "high": interval.high}
    return {
        "models": models,
        **order_probabilities(judged, drawn, len(np.unique(clusters[known]))),
        "n": int(known.sum()),
        "power": power,
    }


def _power(results: MatchResults, people: Floats, judged: Floats) -> float:
    """Return the weight of the judge: of its residuals in people's, from 0 to 1."""
    known = ~np.isnan(people)
    if known.all():
        return 0.0
    gap = (judged[results.first] - judged[results.second]) * LOG_ODDS_PER_POINT
    chance = 1 / (1 + np.exp(-gap[known]))
    of_judge = results.half_points[known] / 2 - chance
    of_people = people[known] / 2 - chance
    sampled = known.sum() / (~known).sum()
    best = ratio(np.sum(of_judge * of_people), np.sum(of_judge**2) * (1 + sampled))
    return float(np.clip(np.nan_to_num(best), 0, 1))


def _columns(results: MatchResults, people: Floats) -> Floats:
    """Return each match's part of three win tables, and whether it is in the sample or not.

    The tables are people's and the judge's on the sample, and the judge's on the other matches.
    Shape ``[n, 3 m² + 2]``.
    """
    models, matches = len(results.names), len(results)
    known = ~np.isnan(people)
    tables = np.zeros((matches, 3, models, models))
    rows = np.arange(matches)
    for place, among, half_points in (
        (0, known, np.nan_to_num(people)),
        (1, known, results.half_points),
        (2, ~known, results.half_points),
    ):
        tables[rows, place, results.first, results.second] = among * half_points / 2
        tables[rows, place, results.second, results.first] = among * (1 - half_points / 2)
    return np.concatenate([tables.reshape(matches, -1), np.stack([known, ~known], axis=1)], axis=1)


def _strengths(sums: Floats, power: float) -> Floats:
    """Fit strengths to the moved tables of resamples. Shapes ``[B, 3 m² + 2]`` to ``[B, m]``."""
    models = round(((sums.shape[1] - 2) / 3) ** 0.5)
    tables = sums[:, :-2].reshape(len(sums), 3, models, models)
    sample, others = sums[:, -2, None, None], sums[:, -1, None, None]
    gap = ratio(tables[:, 1], sample) - ratio(tables[:, 2], others)
    moved = ratio(tables[:, 0], sample) - power * np.nan_to_num(gap)
    return fit_strengths(moved * sample, penalised=True)
