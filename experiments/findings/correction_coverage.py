"""Corrected rates and rankings: how often each keeps its promise.

Part of ``python -m experiments interval_coverage``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from evaluation.correction.judged import judged_rate, measure_errors
from evaluation.intervals import Floats, Ints, Mask, resample_clusters
from evaluation.ranking.bradley_terry import (
    LOG_ODDS_PER_POINT,
    RATING_MEAN,
    MatchResults,
    fit_strengths,
    order_probabilities,
    win_matrix,
)
from evaluation.ranking.tournament import rank_by_people
from experiments.findings.question_coverage import Row, alike, promise_row, stream

Drawn = tuple[Mask, Mask, Ints]
README_ERRORS = (0.96, 0.13)
"""Sensitivity and false-positive rate, about those of ``embedded-qs`` on answers of people."""
MEASURED_RATE = 0.7
"""Rate of people's label among the rows on which the judge was measured."""


class Judging(NamedTuple):
    """One kind of judged rows."""

    questions: int
    rows: int
    """Rows of each question."""
    rate: float
    """Rate of people's label."""
    errors: tuple[float, float]
    """Sensitivity and false-positive rate of the judge."""
    likeness: float
    """Correlation of the judge's errors within questions, and of people's labels."""

    def draw(self, rng: np.random.Generator) -> Drawn:
        """Draw whether people and a judge give a label, and questions of rows. ``[n]`` each."""
        clusters = np.repeat(np.arange(self.questions), self.rows)
        people = alike(clusters, self.likeness, rng) < self.rate
        called = alike(clusters, self.likeness, rng) < np.where(people, *self.errors)
        return people, called, clusters

    def coverage(self, draws: int, rng: np.random.Generator) -> list[bool]:
        """Tell in which draws the corrected interval holds the rate.

        The judge is measured on as many questions of another rate.
        """
        held = []
        for _ in range(draws):
            elsewhere = self._replace(rate=MEASURED_RATE).draw(rng)
            known = {"r": measure_errors("Correct", *elsewhere)}
            _, called, clusters = self.draw(rng)
            found = judged_rate(called.astype(np.float64), clusters, ["r"] * len(called), known)
            corrected = found.corrected
            held.append(corrected is not None and corrected.low <= self.rate <= corrected.high)
        return held


def _judged(draws: int, rng: np.random.Generator) -> Iterator[Row]:
    for setting in (
        Judging(89, 5, 0.3, README_ERRORS, 0.1),
        Judging(89, 5, 0.9, README_ERRORS, 0.1),
        Judging(89, 5, 0.5, (0.85, 0.3), 0.1),
        Judging(30, 5, 0.3, README_ERRORS, 0.3),
        Judging(400, 1, 0.1, README_ERRORS, 0.0),
        Judging(400, 1, 0.1, (0.99, 0.01), 0.0),
    ):
        questions, rows, rate, errors, _ = setting
        name = f"{questions} questions, {rows} rows, rate {rate:g}, errors {errors}"
        yield promise_row("interval of a judged rate", name, ".95", setting.coverage(draws, rng))


def draw_matches(
    rng: np.random.Generator,
    truth: Floats,
    leaning: Floats,
    questions: int,
    agrees: float = 0.8,
    sampled: float = 0.3,
) -> tuple[MatchResults, Floats, Ints]:
    """Draw a tournament, a match of every two models on each question.

    ``truth`` has strengths by people, in natural log-odds, and ``leaning`` those by which the judge
    decides where it does not do as people, ``[m]`` each. People decided a share of the matches.

    Return the judge's results; people's half points, nan where they decided nothing; and the
    question of each match. Shape ``[n]`` each.
    """
    first, second = np.triu_indices(len(truth), k=1)
    clusters = np.repeat(np.arange(questions), len(first))
    first, second = (np.tile(side, questions) for side in (first, second))

    def decide(strengths: Floats) -> Mask:
        return np.asarray(rng.random(len(first)) < expit(strengths[first] - strengths[second]))

    people = decide(truth)
    judge = np.where(rng.random(len(first)) < agrees, people, decide(leaning))
    names = tuple(f"m{number}" for number in range(len(truth)))
    known = rng.random(len(first)) < sampled
    results = MatchResults(names, first, second, 2 * judge.astype(np.int64))
    return results, np.where(known, 2.0 * people, np.nan), clusters


def match_coverage(
    draws: int, rng: np.random.Generator
) -> tuple[list[bool], list[float], list[bool]]:
    """Draw models and tournaments of them, and estimate people's ranking of each.

    Return whether each interval of a corrected rating holds the true one; how likely people's order
    was said to be the judge's; and whether it was. Draws in which the judge ties models are left
    out of the last two.
    """
    held, said, came = list[bool](), list[float](), list[bool]()
    for _ in range(draws):
        truth, leaning = rng.normal(0, 0.6, 4), rng.normal(0, 1, 4)
        results, people, clusters = draw_matches(rng, truth, leaning, 100)
        found = rank_by_people(results, people, clusters)
        ratings = RATING_MEAN + (truth - truth.mean()) / LOG_ODDS_PER_POINT
        for name, rating in zip(results.names, ratings, strict=True):
            corrected = found["models"][name]
            held.append(corrected["low"] <= rating <= corrected["high"])
        if found["same_order"] is not None:
            judged = fit_strengths(win_matrix(results), penalised=True)
            said.append(found["same_order"])
            came.append(bool((np.argsort(judged) == np.argsort(truth)).all()))
    return held, said, came


def _rankings(draws: int, rng: np.random.Generator) -> Iterator[Row]:
    held, said, came = match_coverage(max(2, draws // 2), rng)
    setting = "4 models, 100 questions, people decided 30 %"
    yield promise_row("interval of a rating corrected by people", setting, ".95", held)
    for low, high in ((0.0, 0.5), (0.5, 0.9), (0.9, 1.0)):
        among = (np.array(said) >= low) & (np.array(said) < high)
        if among.any():
            wanted = f"{np.mean(np.array(said)[among]):.2f}"
            promise = f"people's order is the judge's, said with {low:g} to {high:g}"
            yield promise_row(promise, setting, wanted, np.array(came)[among].tolist())


def _systems(draws: int, rng: np.random.Generator) -> Iterator[Row]:
    for questions in (10, 30, 100):
        said, came = [], []
        for _ in range(draws):
            truth = np.clip(rng.normal(0.6, 0.15, 3), 0.02, 0.98)
            clusters = np.repeat(np.arange(questions), len(truth))
            people = (alike(clusters, 0.2, rng).reshape(questions, -1) < truth).astype(np.float64)
            judged = np.where(rng.random(people.shape) < 0.93, people, 1 - people).mean(axis=0)
            drawn = resample_clusters(people) / questions
            found = order_probabilities(judged, drawn, questions)["same_winner"]
            if found is not None:
                said.append(found)
                came.append(np.argmax(judged) == np.argmax(truth))
        setting = f"3 systems, {questions} questions with people's labels"
        wanted = f"{np.mean(said):.2f}" if said else "-"
        yield promise_row("people's best is the judge's", setting, wanted, came or [True])


def simulate_corrections(draws: int, seed: int) -> list[Row]:
    """Simulate promises on corrected figures; rows as those of ``simulate_questions``."""
    parts = {"judged": _judged, "rankings": _rankings, "systems": _systems}
    return [row for name, part in parts.items() for row in part(draws, stream(seed, name))]
