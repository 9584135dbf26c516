"""Bradley-Terry strengths: the ratings under which the results of the matches are likeliest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluation.intervals import RESAMPLES, Floats, Ints
from evaluation.ranking.match_results import MatchResults, resampled_wins, win_matrix
from judging.errors import CustosError

RATING_MEAN, RATING_SCALE = 1500.0, 400.0
"""The Elo scale: 400 points are odds of 10 to 1. The mean is about that of the ratings which
TruthfulVQA's paper prints (appendix E.4)."""
LOG_ODDS_PER_POINT = np.log(10) / RATING_SCALE
"""Natural log-odds of one rating point."""
_NEWTON_STEPS = 100
_NEWTON_TOLERANCE = 1e-9
_RATING_DIGITS = 6
"""Decimals of a rating. Further ones are errors of arithmetic, which would order models whose
results are the same."""


@dataclass(frozen=True)
class Ratings:
    """Strengths of ``m`` models on the Elo scale: mean 1500, 400 points are odds of 10 to 1."""

    names: tuple[str, ...]
    values: Floats
    """Shape ``[m]``."""
    resampled: Floats
    """Over the resamples; a row of nan where a resample has no finite strengths. ``[B, m]``."""


def bradley_terry(
    results: MatchResults, clusters: Ints | None = None, resamples: int = RESAMPLES, seed: int = 0
) -> Ratings:
    """Fit maximum-likelihood strengths, ``P(i beats j) = 1 / (1 + 10^((r_j - r_i) / 400))``.

    The model is Bradley & Terry's (1952), a tie being half a win for each side. The order of
    matches does not matter.

    Args:
        results: Results of the matches.
        clusters: Matches with the same number are resampled together, as those on one question
            should be. Shape ``[n]``; by default every match is a cluster of its own.
        resamples: Bootstrap resamples.
        seed: Seed of the resamples.

    Raises:
        CustosError: If the strength of a model is not determined, because it is not connected to
            the others, directly or through a chain, by both a win (or tie) and a loss (or tie); the
            message names the model.
    """
    wins = win_matrix(results)
    _check_connected(wins, results.names)
    resampled = fit_strengths(resampled_wins(results, clusters, resamples, seed))
    return Ratings(results.names, fit_strengths(wins), resampled)


def fit_strengths(wins: Floats) -> Floats:
    """Fit Bradley-Terry strengths on the Elo scale to win counts, for many tables at once.

    Newton's method runs on the concave log-likelihood with the damped step ``log(1 + r) / r``,
    ``r`` being the largest change of a strength difference. This step never overshoots for a
    logistic model and needs no line search (Sun & Tran-Dinh 2019, generalised self-concordance).

    Args:
        wins: Wins of row over column, ties half. Shape ``[..., m, m]``.

    Returns:
        Strengths with mean 1500, nan where no finite ones exist. Shape ``[..., m]``.
    """
    models = wins.shape[-1]
    tables = wins.reshape(-1, models, models)
    fitted = np.full((len(tables), models), np.nan)
    determined = np.flatnonzero(_reaches(tables).all(axis=(-2, -1)))
    tables = tables[determined]
    games = tables + tables.swapaxes(-1, -2)
    points = tables.sum(axis=-1)
    # The likelihood depends on differences only; this adds curvature along the common shift alone.
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
    ratings = RATING_MEAN + strengths / LOG_ODDS_PER_POINT
    fitted[determined] = ratings.round(_RATING_DIGITS)
    return fitted.reshape(wins.shape[:-1])


def _reaches(wins: Floats) -> npt.NDArray[np.bool_]:
    """Return where a chain of wins or ties leads from row to column. Shape ``[..., m, m]``."""
    models = wins.shape[-1]
    linked = (wins > 0) | np.eye(models, dtype=np.bool_)
    for _ in range(max(1, models - 1).bit_length()):
        linked = (linked.astype(np.float32) @ linked.astype(np.float32)) > 0
    return np.asarray(linked)


def _check_connected(wins: Floats, names: Sequence[str]) -> None:
    beats = _reaches(wins)
    if beats.all():
        return
    # The message names the model with the fewest two-way connections.
    isolated = int(np.argmin((beats & beats.T).sum(axis=1)))
    other = int(np.argmin((beats & beats.T)[isolated]))
    if not _reaches(wins + wins.T)[isolated, other]:
        reason = f"no chain of matches leads to '{names[other]}'"
    elif beats[isolated, other]:
        reason = f"no chain of wins or ties leads from '{names[other]}' back to it"
    else:
        reason = f"no chain of its wins or ties leads to '{names[other]}'"
    raise CustosError(
        f"model '{names[isolated]}' cannot be ranked: {reason}; add matches or leave the model out"
    )
