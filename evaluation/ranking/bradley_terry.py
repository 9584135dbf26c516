"""Results of matches, Bradley-Terry strengths, and how far rankings agree.

Strengths are the ratings under which the results are likeliest. Rankings are those of answering
systems by people and judge, and of models by two judges.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from evaluation.estimate import Draws, few_clusters_stretch, share_of_columns
from evaluation.intervals import (
    NO_INTERVAL,
    Z_95,
    Floats,
    Ints,
    Mask,
    ratio,
    resample_clusters,
)
from evaluation.measure import CORRECT
from evaluation.outcomes import Outcomes
from judging.errors import CustosError
from judging.files.values import is_empty
from judging.types import LabelledExample, score_of

HALF_POINTS = {"A": 2, "B": 0, "tie": 1}
"""Outcome of a match to half points of its first model."""
RATING_MEAN, RATING_SCALE = 1500.0, 400.0
"""The Elo scale: 400 points are odds of 10 to 1. The mean is about that of the ratings which
TruthfulVQA's paper prints (appendix E.4)."""
LOG_ODDS_PER_POINT = np.log(10) / RATING_SCALE
"""Natural log-odds of one rating point."""
STRONGEST = 12.0
"""Farthest that a penalised strength is from the mean, in natural log-odds: 2,085 points."""
_NEWTON_STEPS = 100
_NEWTON_TOLERANCE = 1e-9
_RATING_DIGITS = 6
"""Decimals of a rating. Further ones are errors of arithmetic, which would order models whose
results are the same."""


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

        Raise ``CustosError`` if there are no rows.
        """
        played = list(rows)
        if not played:
            raise CustosError("no matches to rank by: the data is empty")
        names = tuple(sorted({name for a, b, _ in played for name in (a, b)}))
        index = {name: i for i, name in enumerate(names)}
        first, second = (np.array([index[row[side]] for row in played]) for side in (0, 1))
        return cls(names, first, second, np.array([HALF_POINTS[row[2]] for row in played]))

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True)
class Ratings:
    """Strengths of ``m`` models on the Elo scale: mean 1500, 400 points are odds of 10 to 1."""

    names: tuple[str, ...]
    values: Floats
    """Shape ``[m]``."""
    resampled: Floats
    """Over the resamples; a row of nan where a resample has no finite strengths. ``[B, m]``."""
    is_penalised: bool = False
    """Whether Firth's penalty made them finite, as where a model won all its matches."""


def wins_by_cluster(
    results: MatchResults,
    clusters: Ints,
    half_points: Floats | Ints,
    weights: Floats | float = 1.0,
) -> Floats:
    """Count the wins of row over column in each cluster, a tie as half a win for each.

    ``clusters``, ``half_points`` and ``weights`` are of matches, ``[n]``. Shape ``[C, m, m]``.
    """
    models, places = len(results.names), np.unique(clusters, return_inverse=True)[1]
    wins = np.zeros((places.max() + 1, models, models))
    np.add.at(wins, (places, results.first, results.second), weights * half_points / 2)
    np.add.at(wins, (places, results.second, results.first), weights * (1 - half_points / 2))
    return wins


def win_matrix(results: MatchResults) -> Floats:
    """Count the wins of row over column. Shape ``[m, m]``."""
    together = np.zeros_like(results.first)
    return np.asarray(wins_by_cluster(results, together, results.half_points)[0])


def resampled_wins(results: MatchResults, clusters: Ints) -> Floats:
    """Count the wins in resamples of the matches, whole clusters. Shape ``[B, m, m]``."""
    wins = wins_by_cluster(results, clusters, results.half_points)
    return resample_clusters(wins.reshape(len(wins), -1)).reshape(-1, *wins.shape[1:])


def bradley_terry(results: MatchResults, clusters: Ints) -> Ratings:
    """Fit maximum-likelihood strengths, ``P(i beats j) = 1 / (1 + 10^((r_j - r_i) / 400))``.

    The model is Bradley & Terry's (1952), a tie being half a win for each side. Where the strength
    of a model would be infinite, as it is not connected to the others by both a win (or tie) and a
    loss (or tie), directly or through a chain, all strengths and resamples are those of Firth's
    penalty. ``clusters``, ``[n]``, are the matches' questions, which are resampled. Raise
    ``CustosError`` if no chain of matches leads from a model to another one.
    """
    wins = win_matrix(results)
    met = _reaches(wins + wins.T)
    if not met.all():
        isolated = int(np.argmin(met.sum(axis=1)))
        other = int(np.argmin(met[isolated]))
        raise CustosError(
            f"model '{results.names[isolated]}' cannot be ranked: no chain of matches leads to "
            f"'{results.names[other]}'; add matches or leave the model out"
        )
    penalised = not _reaches(wins).all()
    drawn = fit_strengths(resampled_wins(results, clusters), penalised=penalised)
    return Ratings(results.names, fit_strengths(wins, penalised=penalised), drawn, penalised)


def fit_strengths(wins: Floats, *, penalised: bool = False) -> Floats:
    """Fit Bradley-Terry strengths on the Elo scale to win counts, for many tables at once.

    Newton's method runs on the concave log-likelihood with the damped step ``log(1 + r) / r``,
    ``r`` being the largest change of a strength difference. This step never overshoots for a
    logistic model and needs no line search (Sun & Tran-Dinh 2019, generalised self-concordance).

    Firth's penalty (1993; Heinze & Schemper 2002 for logistic models) adds half the logarithm of
    the information's determinant. Matches of two models then count as if each had won a little
    more, by half their leverage: together one win for each model but one. That takes away the
    first-order bias and keeps the strengths of a model that always won finite: none is farther from
    the mean than :data:`STRONGEST`.

    Wins are of row over column, ties half; corrected ones may lie beyond the matches that were
    played, which ``penalised`` alone allows. Strengths are nan where no finite ones exist or, with
    the penalty, where models are not connected by matches. Shapes ``[..., m, m]`` to ``[..., m]``.
    """
    models = wins.shape[-1]
    tables = wins.reshape(-1, models, models)
    fitted = np.full((len(tables), models), np.nan)
    links = tables + tables.swapaxes(-1, -2) if penalised else tables
    determined = np.flatnonzero(_reaches(links).all(axis=(-2, -1)))
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
        if penalised:
            spread = np.linalg.inv(curvature)
            variance = np.diagonal(spread, axis1=-2, axis2=-1)
            leverage = weight * (variance[:, :, None] + variance[:, None, :] - 2 * spread)
            slope += (leverage * (0.5 - chance)).sum(axis=-1)
            weight = leverage * chance * (1 - chance)
            curvature -= weight
            curvature[:, diagonal, diagonal] += weight.sum(axis=-1)
        step = np.linalg.solve(curvature, slope[..., None])[..., 0]
        reach = np.ptp(step, axis=-1, keepdims=True)
        damping = np.divide(np.log1p(reach), reach, out=np.ones_like(reach), where=reach > 0)
        strengths += damping * step
        if penalised:
            strengths -= strengths.mean(axis=-1, keepdims=True)
            strengths = np.clip(strengths, -STRONGEST, STRONGEST)
        if not len(reach) or reach.max() < _NEWTON_TOLERANCE:
            break
    strengths -= strengths.mean(axis=-1, keepdims=True)
    ratings = RATING_MEAN + strengths / LOG_ODDS_PER_POINT
    fitted[determined] = ratings.round(_RATING_DIGITS)
    return fitted.reshape(wins.shape[:-1])


def _reaches(wins: Floats) -> Mask:
    """Find where a chain of wins or ties leads from row to column. Shape ``[..., m, m]``."""
    models = wins.shape[-1]
    linked = (wins > 0) | np.eye(models, dtype=np.bool_)
    for _ in range(max(1, models - 1).bit_length()):
        linked = (linked.astype(np.float32) @ linked.astype(np.float32)) > 0
    return np.asarray(linked)


MAX_ANSWERERS = 100
"""Most answering systems that are ranked. Where there are more, as where ``answerer`` names the
person who wrote each answer, an order of them says nothing."""

RANK_DIGITS = 9
"""Decimals in which scores that are equal may differ by errors of arithmetic."""


def kendall_tau_b(first: Floats, second: Floats) -> Floats:
    """Compute Kendall's rank correlation with the correction for ties (tau-b, Kendall 1945).

    It is nan where either ties everything or holds a nan. Shapes ``[..., m]`` to ``[...]``.
    """
    left, right = np.triu_indices(first.shape[-1], k=1)
    first_order = np.sign(first[..., left] - first[..., right])  # [..., pairs]
    second_order = np.sign(second[..., left] - second[..., right])
    agreement = np.asarray(np.sum(first_order * second_order, axis=-1))
    untied = np.asarray(np.sum(first_order**2, axis=-1) * np.sum(second_order**2, axis=-1))
    return ratio(agreement, np.sqrt(untied))


def sampling_ceiling(values: Floats, resampled: Floats) -> float:
    """Bound the mean rank correlation of an order with itself on as many other questions.

    A ranking of the same models on other questions, as a published one, is not expected to agree
    more than this, even if both judges are perfect. It is estimated by the orders on resamples of
    the questions, ``[B, m]``. They are nearer to the order here than other questions would be, so
    that it is too high, most so where models are alike: for two equal ones .5 in place of 0.
    """
    correlations = kendall_tau_b(values, resampled)
    exists = ~np.isnan(correlations)
    return float(correlations[exists].mean()) if exists.any() else float("nan")


def order_probabilities(judged: Floats, drawn: Floats, clusters: int) -> dict[str, float | None]:
    """Estimate how likely people's order of some models is the judged one.

    ``judged`` are scores by the judge, the higher the better, ``[m]``. ``drawn`` are what people's
    scores may truly be, as resamples of the best estimate of them, ``[B, m]``; rows with a nan are
    left out, and ties are put in order at random. The draws were made from ``clusters`` questions:
    a coin would speak for one of two models on all ``C`` of them with probability ``2 ** -C``, and
    nothing is said to be surer. The best of many that are close looks better than it is, so draws
    of four models or more are :func:`drawn_together` first.

    ``same_order`` is the share of draws with the whole order, as ``(k + 1) / (B + 2)``,
    ``same_winner`` that with the best model; ``None`` without draws, or with a tie in the judged
    scores that it depends on.
    """
    known = drawn[~np.isnan(drawn).any(axis=-1)]
    if not len(known):
        return {"same_order": None, "same_winner": None}
    known = drawn_together(known)
    ranked = np.argsort(-judged, kind="stable")
    scores = judged[ranked]
    # Sums of equal numbers in another order differ in their last digits.
    rounded = known[:, ranked].round(RANK_DIGITS)
    coin = np.random.default_rng(0).random(rounded.shape)
    drawn_order = np.lexsort((coin, -rounded), axis=-1)
    is_same = drawn_order == np.arange(len(ranked))
    surest = 1 - 2.0**-clusters
    same_order, same_winner = (
        float(np.clip((hits.sum() + 1) / (len(hits) + 2), 1 - surest, surest))
        for hits in (is_same.all(axis=-1), is_same[:, 0])
    )
    is_tied = np.diff(scores).round(RANK_DIGITS) == 0
    return {
        "same_order": None if is_tied.any() else same_order,
        "same_winner": None if is_tied[:1].any() else same_winner,
    }


def drawn_together(drawn: Floats) -> Floats:
    """Shrink draws of four models or more as far as chance alone accounts for their spread.

    What is left are draws of the true scores, where these are normal about a common mean (James &
    Stein 1961; their spread is estimated by that of the scores less the noise). Three models or
    fewer do not tell their spread. Shape ``[B, m]``.
    """
    models, centre = drawn.shape[1], drawn.mean(axis=0)
    if models < 4:
        return drawn
    moves = drawn - centre
    noise, spread = moves.var(axis=1, ddof=1).mean(), centre.var(ddof=1)
    chance = float(ratio(noise, spread)) * (models - 3) / (models - 1)
    kept = max(0.0, 1 - chance) if spread else 0.0
    return np.asarray(centre.mean() + kept * (centre - centre.mean()) + np.sqrt(kept) * moves)


def ranking_agreement(first: Ratings, second: Ratings, clusters: int) -> dict[str, Any]:
    """Compute Kendall's tau-b of two rankings of the same models, or answering systems.

    The interval holds that of the orders on all questions such as these, of which there are
    ``clusters`` here. Correlations of resamples do not tell it: chance alone puts close models in
    some order, and keeps it through the resamples. So two models have an order in a ranking only
    where they are apart by more than chance moves any two models of either ranking, in standard
    errors (Mogstad, Romano, Shaikh & Wilhelm 2024). Two that have none in one of the rankings may
    agree or not.

    Resamples are paired: they must be of the same resampled matches, as those of two calls of
    ``bradley_terry`` with the same ``clusters`` are. Beside the estimate the result has ``ceiling``
    of the second ranking and ``draws``, the resamples in which both rankings exist.
    """
    value = float(kendall_tau_b(first.values, second.values))
    low, high = NO_INTERVAL
    if clusters > 1 and not np.isnan(value):
        in_errors, farthest = zip(_apart(first, clusters), _apart(second, clusters), strict=True)
        reach = max(Z_95, np.quantile(np.maximum(*farthest), 0.95, method="higher"))
        reach *= few_clusters_stretch(clusters)
        of_first, of_second = (np.sign(apart) * (np.abs(apart) > reach) for apart in in_errors)
        agreement = of_first * of_second
        low, high = (float(np.mean(np.where(agreement, agreement, end))) for end in (-1, 1))
    exists = ~np.isnan(first.resampled[:, 0] + second.resampled[:, 0])
    return {
        "value": value,
        "low": low,
        "high": high,
        "n": len(first.names),
        "ceiling": sampling_ceiling(second.values, second.resampled),
        "draws": int(exists.sum()),
    }


def _apart(ranking: Ratings, clusters: int) -> tuple[Floats, Floats]:
    """Compute how far every two models are apart, and how far chance moves any two, in errors.

    No standard error is less than as if one cluster of those alike had said the reverse. Where a
    resample has no ranking, chance may move it anywhere. Shapes ``[pairs]`` and ``[B]``.
    """
    left, right = np.triu_indices(len(ranking.names), k=1)
    apart = ranking.values[left] - ranking.values[right]
    moves = ranking.resampled[:, left] - ranking.resampled[:, right] - apart
    exists = ~np.isnan(moves).any(axis=1)
    errors = np.sqrt(np.sum(moves[exists] ** 2, axis=0) / max(1, exists.sum()))
    errors = np.maximum(errors, 2 * np.abs(apart) / clusters)
    farthest = np.full(len(moves), np.inf)
    farthest[exists] = np.nan_to_num(ratio(np.abs(moves[exists]), errors)).max(axis=1)
    return np.nan_to_num(ratio(apart, errors)), farthest


def answerer_of(example: LabelledExample) -> str | None:
    """Name the system that gave a response, as ``metadata`` does."""
    answerer = example.metadata.get("answerer")
    return None if is_empty(answerer) else str(answerer)


def correct_labels(outcomes: Outcomes) -> list[int]:
    """List the indices of the labels whose score is Correct."""
    return [i for i, label in enumerate(outcomes.labels) if score_of(label) == CORRECT]


def rank_answerers(
    outcomes: Outcomes, answerers: Sequence[str | None], seed: int = 0
) -> dict[str, Any] | None:
    """Compare the share of Correct answers per answering system, by people and by the judge.

    Both shares are over the items that the judge scored, so that they differ by judgement alone.
    Items whose system is ``None`` are left out.

    The result has ``answerers`` (best first by people; each ``n``, ``people`` and ``judge``),
    ``kendall_tau`` (:func:`ranking_agreement`) and what :func:`order_probabilities` returns, for
    people's order on all such questions and the judge's on these. It is ``None`` with fewer than
    two systems or more than :data:`MAX_ANSWERERS`, or with labels that do not include Correct.
    """
    names = sorted({name for name in answerers if name is not None})
    correct = correct_labels(outcomes)
    if not 2 <= len(names) <= MAX_ANSWERERS or not correct:
        return None
    # By system: whether an item is its, people call it Correct, the judge does. [n, 3 m]
    of_system = np.array([[answerer == name for name in names] for answerer in answerers], float)
    of_system *= outcomes.scored[:, None]
    by_people, by_judge = (
        of_system * np.isin(side, correct)[:, None] for side in (outcomes.human, outcomes.predicted)
    )
    columns = np.concatenate([of_system, by_people, by_judge], axis=1)
    answered = of_system.any(axis=1)  # a question without any of them tells nothing of their order
    draws = Draws.of(columns[answered], outcomes.clusters[answered], seed)
    counts, *_ = _by_side(draws.total)
    (people, judge), (people_resampled, judge_resampled) = (
        _shares(sums) for sums in (draws.total, draws.resampled)
    )
    m = len(names)
    rows = {
        names[i]: {
            "n": int(counts[i]),
            **{
                side: draws.rate(share_of_columns((place + 1) * m + i, i), itemgetter((..., i)))
                for place, side in enumerate(("people", "judge"))
            },
        }
        for i in np.argsort(-people, kind="stable")
    }
    tau = ranking_agreement(
        Ratings(tuple(names), judge, judge_resampled),
        Ratings(tuple(names), people, people_resampled),
        len(draws.sums),
    )
    del tau["draws"]
    return {
        "answerers": rows,
        "kendall_tau": tau,
        **order_probabilities(judge, people_resampled, len(draws.sums)),
    }


def _by_side(sums: Floats) -> Floats:
    """Split ``[..., 3 m]`` into answers, Correct by people, by the judge: ``[3, ..., m]``."""
    return np.moveaxis(sums.reshape(*sums.shape[:-1], 3, -1), -2, 0)


def _shares(sums: Floats) -> tuple[Floats, Floats]:
    """Compute the shares of Correct by people and by the judge. Shape ``[..., m]`` each."""
    answers, by_people, by_judge = _by_side(sums)
    return ratio(by_people, answers), ratio(by_judge, answers)
