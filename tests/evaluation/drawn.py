"""Drawn rows, tournaments and benchmarks of which the truth is known."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from evaluation.correction.judged import judged_rate, measure_errors
from evaluation.correction.scores import CorrectedRate, corrected_rate
from evaluation.intervals import Floats, Ints, Mask
from evaluation.ranking.bradley_terry import MatchResults

Drawn = tuple[Mask, Mask, Ints]
MEASURED_RATE = 0.7
"""Rate of people's label among the rows on which the judge was measured."""


def alike(clusters: Ints, correlation: float, rng: np.random.Generator) -> Floats:
    """Uniform numbers that are alike within clusters. Shape ``[n]``."""
    shared = rng.random(int(clusters.max()) + 1)[clusters]
    takes_shared = rng.random(len(clusters)) < np.sqrt(correlation)
    return np.where(takes_shared, shared, rng.random(len(clusters)))


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
        """In which draws the corrected interval holds the rate.

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


def draw_matches(
    rng: np.random.Generator,
    truth: Floats,
    leaning: Floats,
    questions: int,
    agrees: float = 0.8,
    sampled: float = 0.3,
) -> tuple[MatchResults, Floats, Ints]:
    """A tournament, a match of every two models on each question.

    ``truth`` has strengths by people, in natural log-odds, and ``leaning`` those by which the judge
    decides where it does not do as people, ``[m]`` each. People decided a share of the matches.
    Returns the judge's results, people's half points (nan where they decided nothing), and the
    question of each match, ``[n]`` each.
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


ITEMS = 2000
LABEL_LIKENESS, ERROR_LIKENESS = 0.3, 0.2
"""Correlation, within a group, of people's labels and of the judge's errors."""


class Setting(NamedTuple):
    """One kind of benchmark, some of whose items people labelled."""

    accuracy: float
    """Share of people's 1, and of their 0, on which the judge agrees."""
    rate: float
    """Rate of people's labels over all questions."""
    labels: int
    """Items that people labelled."""


def draw(setting: Setting, benchmarks: int, rng: np.random.Generator) -> Iterator[CorrectedRate]:
    """Correct the rates of benchmarks of independent items."""
    for _ in range(benchmarks):
        human = rng.random(ITEMS) < setting.rate
        judge = np.where(rng.random(ITEMS) < setting.accuracy, human, ~human).astype(np.float64)
        is_labelled = rng.permutation(ITEMS) < setting.labels
        known = np.where(is_labelled, human, np.nan)
        yield corrected_rate(judge, known, groups=np.arange(ITEMS), random_sample=True)


def draw_groups(
    setting: Setting, size: int, benchmarks: int, rng: np.random.Generator, *, are_known: bool
) -> Iterator[CorrectedRate]:
    """Correct the rates of benchmarks of which people labelled whole groups, known or not.

    Each group has a rate and error rates of its own, beta-distributed about the setting's.
    """
    groups = np.arange(ITEMS) // size

    def spread(mean: float, likeness: float) -> Floats:
        weight = (1 - likeness) / likeness
        return rng.beta(mean * weight, (1 - mean) * weight, ITEMS // size)[groups]

    for _ in range(benchmarks):
        ones = rng.random(ITEMS) < spread(setting.rate, LABEL_LIKENESS)
        sensitivity = spread(setting.accuracy, ERROR_LIKENESS)
        alarms = 1 - spread(setting.accuracy, ERROR_LIKENESS)
        called = rng.random(ITEMS) < np.where(ones, sensitivity, alarms)
        order = rng.permutation(ITEMS // size)[groups]
        human = np.where(order < setting.labels // size, ones, np.nan)
        given = groups if are_known else np.arange(ITEMS)
        yield corrected_rate(called.astype(np.float64), human, groups=given, random_sample=True)
