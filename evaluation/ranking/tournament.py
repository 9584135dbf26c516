"""Rank models by who wins their pairwise matches: Bradley-Terry strengths and online Elo."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluation.intervals import (
    RESAMPLES,
    Floats,
    Ints,
    cluster_sums,
    kendall_tau_b,
    percentile_interval,
    rate_interval,
    resample_clusters,
)
from evaluation.metrics import ratio
from judging.errors import CustosError

OUTCOMES = {"A": 2, "B": 0, "tie": 1}
"""Outcome to half points of the first model."""
ELO_MEAN, ELO_SCALE, ELO_K = 1000.0, 400.0, 4.0
ELO_SHUFFLES = 100
_NATURAL = np.log(10) / ELO_SCALE
"""Natural log-odds in an Elo point."""
_NEWTON_STEPS = 100
_NEWTON_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Matches:
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
    def of(cls, rows: Iterable[tuple[str, str, str]]) -> Matches:
        """Read ``(model_a, model_b, outcome)`` rows, the outcome ``A``, ``B`` or ``tie``.

        Raises:
            CustosError: If there are none, or naming the row with another outcome or one model on
                both sides.
        """
        played = list(rows)
        if not played:
            raise CustosError("no matches to rank by: the data is empty")
        for row, (a, b, outcome) in enumerate(played, 1):
            if outcome not in OUTCOMES:
                raise CustosError(
                    f"match {row}: outcome '{outcome}' is not one of {', '.join(OUTCOMES)}"
                )
            if a == b:
                raise CustosError(f"match {row}: '{a}' plays itself")
        names = tuple(sorted({name for a, b, _ in played for name in (a, b)}))
        index = {name: i for i, name in enumerate(names)}
        first, second = (np.array([index[row[side]] for row in played]) for side in (0, 1))
        return cls(names, first, second, np.array([OUTCOMES[row[2]] for row in played]))

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True)
class Ratings:
    """Strengths of ``m`` models on the Elo scale: mean 1000, 400 points are odds of 10 to 1."""

    names: tuple[str, ...]
    values: Floats
    """Shape ``[m]``."""
    drawn: Floats
    """Over the resamples; a row of nan where a draw has no finite strengths. ``[B, m]``."""


def win_matrix(matches: Matches) -> Floats:
    """Wins of row over column, a tie half a win for each. Shape ``[m, m]``."""
    models = len(matches.names)
    wins = np.zeros((models, models))
    np.add.at(wins, (matches.first, matches.second), matches.half_points / 2)
    np.add.at(wins, (matches.second, matches.first), 1 - matches.half_points / 2)
    return wins


def bradley_terry(
    matches: Matches, clusters: Ints | None = None, resamples: int = RESAMPLES, seed: int = 0
) -> Ratings:
    """Maximum-likelihood strengths, ``P(i beats j) = 1 / (1 + 10^((r_j - r_i) / 400))``.

    Bradley & Terry 1952, a tie as half a win for each side. The order of matches does not matter.

    Args:
        matches: The matches.
        clusters: Matches with the same number are resampled together, as those on one question
            should be. Shape ``[n]``; by default each match is on its own.
        resamples: Bootstrap resamples.
        seed: Their seed.

    Raises:
        CustosError: Naming a model that is not connected to the others, directly or through a
            chain, by both a win (or tie) and a loss (or tie): its strength is not determined.
    """
    wins = win_matrix(matches)
    _check_connected(wins, matches.names)
    drawn = resampled_wins(matches, clusters, resamples, seed)
    return Ratings(matches.names, fit_strengths(wins), fit_strengths(drawn))


def resampled_wins(
    matches: Matches, clusters: Ints | None = None, resamples: int = RESAMPLES, seed: int = 0
) -> Floats:
    """Win matrices of resampled matches, arguments as in :func:`bradley_terry`. ``[B, m, m]``."""
    models = len(matches.names)
    if clusters is not None:
        points = _points(matches.first, matches.second, matches.half_points, models)
        sums = cluster_sums(points, clusters)
        return resample_clusters(sums, resamples, seed).reshape(resamples, models, models)
    # Matches alone: a multinomial over the distinct (pair, outcome) cells is the same and fast.
    code = (matches.first * models + matches.second) * 3 + matches.half_points
    _, sample, counts = np.unique(code, return_index=True, return_counts=True)  # [cells]
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(matches), counts / len(matches), size=resamples)
    cells = (matches.first[sample], matches.second[sample], matches.half_points[sample])
    return (drawn.astype(np.float64) @ _points(*cells, models)).reshape(resamples, models, models)


def fit_strengths(wins: Floats) -> Floats:
    """Bradley-Terry strengths on the Elo scale from win counts, for many tables at once.

    Newton's method on the concave log-likelihood with the damped step ``log(1 + r) / r``, ``r``
    being the largest change of a strength difference, which never overshoots for a logistic model
    and needs no line search (Sun & Tran-Dinh 2019, generalised self-concordance).

    Args:
        wins: Wins of row over column, ties half. Shape ``[..., m, m]``.

    Returns:
        Strengths with mean 1000, nan where no finite ones exist. Shape ``[..., m]``.
    """
    models = wins.shape[-1]
    tables = wins.reshape(-1, models, models)
    fitted = np.full((len(tables), models), np.nan)
    determined = np.flatnonzero(_reaches(tables).all(axis=(-2, -1)))
    tables = tables[determined]
    games = tables + tables.swapaxes(-1, -2)
    points = tables.sum(axis=-1)
    # The likelihood knows differences only; this adds curvature along the common shift alone.
    anchor = games.sum(axis=(-2, -1), keepdims=True) / models**2
    strengths = np.zeros(points.shape)
    for _ in range(_NEWTON_STEPS):
        odds = strengths[:, :, None] - strengths[:, None, :]
        chance = 1 / (1 + np.exp(-odds))
        weight = games * chance * (1 - chance)
        curvature = anchor - weight
        diagonal = np.arange(models)
        curvature[:, diagonal, diagonal] += weight.sum(axis=-1)
        slope = points - (games * chance).sum(axis=-1)
        step = np.linalg.solve(curvature, slope[..., None])[..., 0]
        reach = np.ptp(step, axis=-1, keepdims=True)
        damping = np.divide(np.log1p(reach), reach, out=np.ones_like(reach), where=reach > 0)
        strengths += damping * step
        if not len(reach) or reach.max() < _NEWTON_TOLERANCE:
            break
    strengths -= strengths.mean(axis=-1, keepdims=True)
    fitted[determined] = ELO_MEAN + strengths / _NATURAL
    return fitted.reshape(wins.shape[:-1])


def online_elo(matches: Matches, orders: Ints, k: float = ELO_K) -> Floats:
    """Elo ratings after playing the matches one by one, from 1000 each (Elo 1978).

    After a match each side moves by ``k`` times the difference between its score (1, a half, 0) and
    the score its rating led to expect. The last matches count most, so the result depends on the
    order; the mean stays 1000.

    Args:
        matches: The matches.
        orders: Orders to play them in, rows of match indices. Shape ``[S, n]``.
        k: Points at stake in a match.

    Returns:
        Shape ``[S, m]``.
    """
    models = len(matches.names)
    ratings = np.full(len(orders) * models, ELO_MEAN)
    start = models * np.arange(len(orders))
    score = matches.half_points / 2
    for match in np.ascontiguousarray(orders.T):
        a, b = start + matches.first[match], start + matches.second[match]
        before_a, before_b = ratings[a], ratings[b]
        expected = 1 / (1 + np.exp((before_b - before_a) * _NATURAL))
        gain = k * (score[match] - expected)
        ratings[a], ratings[b] = before_a + gain, before_b - gain
    return ratings.reshape(-1, models)


def elo_table(
    matches: Matches, k: float = ELO_K, shuffles: int = ELO_SHUFFLES, seed: int = 0
) -> dict[str, dict[str, float]]:
    """Online Elo in the order played, and over random orders of the same matches.

    Returns:
        Model to ``as_played``, ``mean`` over the shuffled orders, and ``order_low`` and
        ``order_high``, the middle 95 % of them: what the order alone can do. It is no interval of
        the model's strength; ``bradley_terry`` has one.
    """
    rng = np.random.default_rng(seed)
    played = np.arange(len(matches))
    orders = rng.permuted(np.tile(played, (shuffles, 1)), axis=1)
    ratings = online_elo(matches, np.concatenate([played[None], orders]), k)
    spread = [percentile_interval(column) for column in ratings[1:].T]
    return {
        name: {
            "as_played": float(ratings[0, i]),
            "mean": float(ratings[1:, i].mean()),
            "order_low": spread[i].low,
            "order_high": spread[i].high,
        }
        for i, name in enumerate(matches.names)
    }


def ranking_agreement(first: Ratings, second: Ratings) -> dict[str, Any]:
    """Kendall's tau-b of two rankings of the same models.

    Draws are paired: they must be of the same resampled matches, as those of two calls of
    :func:`bradley_terry` with the same ``clusters`` and seed are.

    Returns:
        ``value``, ``low``, ``high``, ``n`` (models) and ``draws``, the resamples in which both
        rankings exist.

    Raises:
        CustosError: If the models or the numbers of draws differ.
    """
    if first.names != second.names or len(first.drawn) != len(second.drawn):
        raise CustosError("the rankings are not of the same models with as many resamples")
    drawn = kendall_tau_b(first.drawn, second.drawn)
    interval = percentile_interval(drawn)
    return {
        "value": float(kendall_tau_b(first.values, second.values)),
        "low": interval.low,
        "high": interval.high,
        "n": len(first.names),
        "draws": int((~np.isnan(drawn)).sum()),
    }


def rank_models(
    matches: Matches, clusters: Ints | None = None, resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, Any]:
    """The table of a tournament, plain values ready for JSON; arguments as ``bradley_terry``.

    Returns:
        ``models``, strongest first by Bradley-Terry: ``rating`` (``value``, ``low``, ``high``),
        ``matches``, ``points`` (ties half) and ``elo`` (as ``elo_table``); ``wins``, model to model
        to points of the former over the latter; ``win_rate``, the same over their matches
        (``value``, ``low``, ``high``, ``n``), nan for pairs that never met; ``n`` matches, and
        ``draws``, the resamples with finite strengths.

    Raises:
        CustosError: As ``bradley_terry``.
    """
    ratings = bradley_terry(matches, clusters, resamples, seed)
    elo = elo_table(matches, seed=seed)
    wins, drawn = win_matrix(matches), resampled_wins(matches, clusters, resamples, seed)
    games = wins + wins.T
    rates, rates_drawn = ratio(wins, games), ratio(drawn, drawn + drawn.swapaxes(1, 2))
    met = _clusters_met(matches, clusters)
    table = {}
    win_rate: dict[str, dict[str, Any]] = {}
    for i, j in np.ndindex(*games.shape):
        if i != j:
            spread = rate_interval(float(rates[i, j]), rates_drawn[:, i, j], int(met[i, j]))
            win_rate.setdefault(matches.names[i], {})[matches.names[j]] = {
                "value": float(rates[i, j]),
                "low": spread.low,
                "high": spread.high,
                "n": int(games[i, j]),
            }
    for i in np.argsort(-ratings.values, kind="stable"):
        interval = percentile_interval(ratings.drawn[:, i])
        table[matches.names[i]] = {
            "rating": {
                "value": float(ratings.values[i]),
                "low": interval.low,
                "high": interval.high,
            },
            "matches": int(games[i].sum()),
            "points": float(wins[i].sum()),
            "elo": elo[matches.names[i]],
        }
    return {
        "models": table,
        "wins": {
            a: {b: float(wins[i, j]) for j, b in enumerate(matches.names) if i != j}
            for i, a in enumerate(matches.names)
        },
        "win_rate": win_rate,
        "n": len(matches),
        "draws": int((~np.isnan(ratings.drawn[:, 0])).sum()),
    }


def _clusters_met(matches: Matches, clusters: Ints | None) -> Ints:
    """In how many clusters two models met; matches alone are clusters of one. Shape ``[m, m]``."""
    own = np.arange(len(matches)) if clusters is None else clusters
    sides = np.sort([matches.first, matches.second], axis=0)
    low, high, _ = np.unique(np.stack([*sides, own]), axis=1)
    met = np.zeros((len(matches.names), len(matches.names)), dtype=np.int64)
    np.add.at(met, (low, high), 1)
    return met + met.T


def _points(first: Ints, second: Ints, half_points: Ints, models: int) -> Floats:
    """What each match adds to the win matrix. Shape ``[n, m * m]``."""
    added = np.zeros((len(half_points), models, models))
    cell = np.arange(len(half_points))
    added[cell, first, second] = half_points / 2
    added[cell, second, first] = 1 - half_points / 2
    return added.reshape(len(half_points), -1)


def _reaches(wins: Floats) -> npt.NDArray[np.bool_]:
    """Whether a chain of wins or ties leads from row to column. Shape ``[..., m, m]``."""
    models = wins.shape[-1]
    linked = (wins > 0) | np.eye(models, dtype=np.bool_)
    for _ in range(max(1, models - 1).bit_length()):
        linked = (linked.astype(np.float32) @ linked.astype(np.float32)) > 0
    return np.asarray(linked)


def _check_connected(wins: Floats, names: Sequence[str]) -> None:
    beats = _reaches(wins)
    if beats.all():
        return
    # The model with the fewest two-way connections is the one to name.
    odd = int(np.argmin((beats & beats.T).sum(axis=1)))
    other = int(np.argmin((beats & beats.T)[odd]))
    if not _reaches(wins + wins.T)[odd, other]:
        why = f"no chain of matches leads to '{names[other]}'"
    elif beats[odd, other]:
        why = f"no chain of wins or ties leads from '{names[other]}' back to it"
    else:
        why = f"no chain of its wins or ties leads to '{names[other]}'"
    raise CustosError(
        f"model '{names[odd]}' cannot be ranked: {why}; add matches or leave the model out"
    )
