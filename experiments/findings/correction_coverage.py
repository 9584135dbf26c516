"""Corrected rates and rankings: how often each keeps its promise.

Part of ``python -m experiments interval_coverage``. ``before`` is the judged figure as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from evaluation.correction.judged import judged_rate, measure_errors
from evaluation.estimate import Mask
from evaluation.intervals import Ints
from experiments.findings.question_coverage import alike

Row = dict[str, Any]
Drawn = tuple[Mask, Mask, Ints]
README_ERRORS = (0.96, 0.13)
"""Sensitivity and false-positive rate, about those of ``embedded-qs`` on answers of people."""
MEASURED_RATE = 0.7
"""Rate of people's label among the rows on which the judge was measured."""


def draw_judged(
    rng: np.random.Generator,
    questions: int,
    rows: int,
    rate: float,
    errors: tuple[float, float],
    likeness: float,
) -> Drawn:
    """Draw whether people and a judge give a label, and the question of each row. ``[n]`` each.

    Args:
        rng: Source of the draws.
        questions: Number of questions.
        rows: Rows of each.
        rate: Rate of people's label.
        errors: Sensitivity and false-positive rate of the judge.
        likeness: Correlation of the judge's errors within questions, and of people's labels.
    """
    clusters = np.repeat(np.arange(questions), rows)
    people = alike(clusters, likeness, rng) < rate
    called = alike(clusters, likeness, rng) < np.where(people, *errors)
    return people, called, clusters


def judged_coverage(
    draws: int,
    rng: np.random.Generator,
    questions: int,
    rows: int,
    rate: float,
    errors: tuple[float, float],
    likeness: float,
) -> tuple[list[bool], list[bool]]:
    """Return in which draws the raw and the corrected interval hold the rate.

    The judge is measured on as many questions of another rate. Arguments as in ``draw_judged``.
    """
    before, now = [], []
    for _ in range(draws):
        elsewhere = draw_judged(rng, questions, rows, MEASURED_RATE, errors, likeness)
        known = {"r": measure_errors("Correct", *elsewhere)}
        _, called, clusters = draw_judged(rng, questions, rows, rate, errors, likeness)
        found = judged_rate(called.astype(np.float64), clusters, ["r"] * len(called), known)
        before.append(found.raw.low <= rate <= found.raw.high)
        now.append(
            found.corrected is not None and found.corrected.low <= rate <= found.corrected.high
        )
    return before, now


def _judged(draws: int, rng: np.random.Generator) -> Iterator[Row]:
    for questions, rows, rate, errors, likeness in (
        (89, 5, 0.3, README_ERRORS, 0.1),
        (89, 5, 0.9, README_ERRORS, 0.1),
        (89, 5, 0.5, (0.85, 0.3), 0.1),
        (30, 5, 0.3, README_ERRORS, 0.3),
        (400, 1, 0.1, README_ERRORS, 0.0),
        (400, 1, 0.1, (0.99, 0.01), 0.0),
    ):
        before, now = judged_coverage(draws, rng, questions, rows, rate, errors, likeness)
        setting = f"{questions} questions, {rows} rows, rate {rate:g}, errors {errors}"
        yield {
            "promise": "interval of a judged rate",
            "setting": setting,
            "wanted": ".95",
            "before": float(np.mean(before)),
            "now": float(np.mean(now)),
        }


PARTS: Mapping[str, Callable[[int, np.random.Generator], Iterator[Row]]] = {"judged": _judged}
"""Parts of the simulation by name."""
