"""Agreement of rankings: of answering systems by people and judge, of models by two judges."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from evaluation.estimate import Draws, share_of_columns, value_interval
from evaluation.intervals import Floats
from evaluation.measure import CORRECT
from evaluation.metrics import ratio
from evaluation.outcomes import Outcomes
from evaluation.ranking.bradley_terry import Ratings
from judging.errors import CustosError
from judging.files.values import is_empty
from judging.types import LabelledExample, score_of

MAX_ANSWERERS = 100
"""Most answering systems that are ranked. Where there are more, as where ``answerer`` names the
person who wrote each answer, an order of them says nothing."""

RANK_DIGITS = 9
"""Decimals in which scores that are equal may differ by errors of arithmetic."""


def kendall_tau_b(first: Floats, second: Floats) -> Floats:
    """Compute Kendall's rank correlation with the correction for ties (tau-b, Kendall 1945).

    It is 1 when both order every pair alike, -1 when they order every pair oppositely, and nan when
    either ties everything, holds a nan, or has fewer than two entries. Shapes ``[..., m]`` to
    ``[...]``.
    """
    left, right = np.triu_indices(first.shape[-1], k=1)
    first_order = np.sign(first[..., left] - first[..., right])  # [..., pairs]
    second_order = np.sign(second[..., left] - second[..., right])
    agreement = np.asarray(np.sum(first_order * second_order, axis=-1))
    untied = np.asarray(np.sum(first_order**2, axis=-1) * np.sum(second_order**2, axis=-1))
    return ratio(agreement, np.sqrt(untied))


def sampling_ceiling(values: Floats, resampled: Floats) -> float:
    """Estimate the rank correlation of an order with itself on as many other questions.

    The order on few questions differs from the order on all of them. A ranking of the same models
    on other questions, as a published one, is thus not expected to agree more than this, even if
    both judges are perfect. It is estimated by the orders on resamples of the questions,
    ``[B, m]``.
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
    nothing is said to be surer.

    ``same_order`` is of every two models, ``same_winner`` of the best. They are the share of draws
    with it, as ``(k + 1) / (B + 2)``, which is never certain; ``None`` without draws, or with a tie
    in the judged scores that it depends on.
    """
    known = drawn[~np.isnan(drawn).any(axis=-1)]
    ranked = np.argsort(-judged, kind="stable")
    scores = judged[ranked]
    if not len(known):
        return {"same_order": None, "same_winner": None}
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


def ranking_agreement(first: Ratings, second: Ratings) -> dict[str, Any]:
    """Compute Kendall's tau-b of two rankings of the same models, or answering systems.

    Resamples are paired: they must be of the same resampled matches, as those of two calls of
    ``bradley_terry`` with the same ``clusters`` and seed are. The result has ``value``, ``low``,
    ``high``, ``n`` (models), ``ceiling`` of the second ranking and ``draws``, the resamples in
    which both rankings exist. Raise ``CustosError`` if the models or the numbers of resamples
    differ.
    """
    if first.names != second.names or len(first.resampled) != len(second.resampled):
        raise CustosError("the rankings are not of the same models with as many resamples")
    value = float(kendall_tau_b(first.values, second.values))
    resampled = kendall_tau_b(first.resampled, second.resampled)
    return {
        "value": value,
        **value_interval(value, resampled)._asdict(),
        "n": len(first.names),
        "ceiling": sampling_ceiling(second.values, second.resampled),
        "draws": int((~np.isnan(resampled)).sum()),
    }


def answerer_of(example: LabelledExample) -> str | None:
    """Name the system that gave a response, as ``metadata`` does."""
    answerer = example.metadata.get("answerer")
    return None if is_empty(answerer) else str(answerer)


def rank_answerers(
    outcomes: Outcomes, answerers: Sequence[str | None], seed: int = 0
) -> dict[str, Any] | None:
    """Compare the share of Correct answers per answering system, by people and by the judge.

    Both shares are over the items that the judge scored, so that they differ by judgement alone.
    Items whose system is ``None`` are left out.

    The result has ``answerers`` (best first by people; each ``n``, ``people`` and ``judge``),
    ``kendall_tau`` (tau-b of the two orders, with the ``ceiling`` of :func:`sampling_ceiling`) and
    what :func:`order_probabilities` returns, for people's order on all such questions and the
    judge's on these. It is ``None`` with fewer than two systems or more than :data:`MAX_ANSWERERS`,
    or with labels that do not include Correct.
    """
    names = sorted({name for name in answerers if name is not None})
    correct = [i for i, label in enumerate(outcomes.labels) if score_of(label) == CORRECT]
    if not 2 <= len(names) <= MAX_ANSWERERS or not correct:
        return None
    # By system: whether an item is its, people call it Correct, the judge does. [n, 3 m]
    of_system = np.array([[answerer == name for name in names] for answerer in answerers], float)
    of_system *= outcomes.scored[:, None]
    by_people, by_judge = (
        of_system * np.isin(side, correct)[:, None] for side in (outcomes.human, outcomes.predicted)
    )
    columns = np.concatenate([of_system, by_people, by_judge], axis=1)
    draws = Draws.of(columns, outcomes.clusters, seed)
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
