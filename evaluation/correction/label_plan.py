"""The number of questions and rows that people must label for what is to be shown.

Every number is found with the intervals and tests that will be applied, at their expected values.
Rows on one question are alike, so that questions count more than rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evaluation.comparisons.gate import LEVEL, POWER, tango_score
from evaluation.correction.intervals import variance_ratio
from evaluation.estimate import Mask
from evaluation.intervals import (
    LIKENESS,
    LIKENESS_EVENTS,
    Z_95,
    Design,
    Floats,
    Ints,
    cluster_sums,
    design,
    design_bounds,
    wilson_half_width,
)
from judging.errors import CustosError
from judging.verdicts.calibration import CHANCE

MOST_QUESTIONS = 1 << 18
"""Questions beyond which a plan only says that there are more."""
PRECISION = 1e-6


class Need(NamedTuple):
    """Questions and rows that are needed; ``None`` where :data:`MOST_QUESTIONS` are too few."""

    questions: int | None
    rows: int | None


class LabelPlan(NamedTuple):
    """Numbers of labels, with and without a judge; ``None`` where even all items are too few."""

    with_judge: int | None
    alone: int | None


@dataclass(frozen=True)
class Questions:
    """How rows share questions."""

    rows: float = 1
    """Mean number of rows on a question."""
    alike: float = 1
    """Mean number of rows on the question of a row: more than ``rows`` where sizes differ."""
    correlation: float = LIKENESS
    """Correlation of what is measured within a question."""
    even: float = 1
    """Effective number of questions, as a share: below 1 where sizes differ."""

    @classmethod
    def like(cls, hits: Floats, clusters: Ints) -> Questions:
        """Measure how rows share questions, and how far they are alike.

        Args:
            hits: 0 or 1, such as whether the judge was right. Shape ``[n]``.
            clusters: Question of each row, at least two. Shape ``[n]``.
        """
        sums, sizes = cluster_sums(np.stack([hits, np.ones(len(hits))], axis=1), clusters).T
        found = design(sums, sizes)
        alike = float(np.sum(sizes**2) / sizes.sum())
        correlation = min(1.0, (float(found.effect) - 1) / (alike - 1)) if alike > 1 else LIKENESS
        even = min(1.0, float(found.clusters) / len(sizes))
        return cls(len(hits) / len(sizes), alike, correlation, even)

    def design(self, questions: Floats, events: Floats, share: Floats | float = 1.0) -> Design:
        """Return the design that is to be expected.

        Args:
            questions: Number of questions with a row. Shape ``[...]``.
            events: Number of rows that differ from the rest. Shape ``[...]``.
            share: Share of the rows that are taken, drawn singly. Shape ``[...]``.
        """
        size = 1 + (self.alike - 1) * np.asarray(share)
        effect, assumed = (1 + (size - 1) * likeness for likeness in (self.correlation, LIKENESS))
        full = events / size
        drawn = (full * effect + LIKENESS_EVENTS * assumed) / (full + LIKENESS_EVENTS)
        return Design(np.maximum(effect, drawn), assumed, questions * self.even)


def rate_half_width(questions: Floats, rate: float, shape: Questions) -> Floats:
    """Return half the expected width of the interval of a rate, such as an accuracy.

    Args:
        questions: Shape ``[...]``.
        rate: The rate, a guess.
        shape: How rows share questions.

    Returns:
        Shape ``[...]``; nan for too few questions.
    """
    n, rates = questions * shape.rows, np.full(np.shape(questions), rate)
    low, high, _ = design_bounds(rates, n, shape.design(questions, n * min(rate, 1 - rate)))
    return np.asarray((high - low) / 2)


def rate_needs(half_width: float, rate: float, shape: Questions) -> Need:
    """Return what a rate needs to have an interval that is expected to be narrow enough."""
    return _smallest(lambda questions: rate_half_width(questions, rate, shape) <= half_width, shape)


def gate_needs(margin: float, changed: float, shape: Questions) -> Need:
    """Return what a judge that is just as good needs to be shown no worse, in :data:`POWER` cases.

    Args:
        margin: Loss of accuracy that does not matter (``custos compare --gate --margin``).
        changed: Share of the rows on which just one of the two judges is right.
        shape: How rows share questions; the correlation is that of the difference.
    """
    from scipy.special import ndtr, stdtrit  # slow to import, and most commands need none

    def is_enough(questions: Floats) -> Mask:
        n = questions * shape.rows
        found = shape.design(questions, n * changed)
        effective = n / found.effect
        freedom = np.maximum(found.clusters - 1, PRECISION)
        # The observed difference from which on a loss of the margin is rejected.
        low, high = np.full(np.shape(n), -margin), np.full(np.shape(n), margin + changed)
        for _ in range(30):
            middle = (low + high) / 2
            scores = np.array([tango_score(mean, changed, -margin) for mean in middle])
            is_rejected = scores * np.sqrt(effective) > stdtrit(freedom, 1 - LEVEL)
            low, high = np.where(is_rejected, low, middle), np.where(is_rejected, middle, high)
        power = ndtr(-high / np.sqrt(max(changed, PRECISION) / effective))
        return np.asarray((power >= POWER) & (found.clusters > 1))

    return _smallest(is_enough, shape)


def risk_needs(risk: float, error: float, kept: float, shape: Questions) -> Need:
    """Return what a level needs to be shown (``custos eval --risk``), in :data:`POWER` cases.

    Args:
        risk: Largest share of wrong verdicts among those kept.
        error: True share of them, a guess below the risk.
        kept: Share of the verdicts that are kept.
        shape: How rows share questions.
    """
    from scipy.special import bdtr  # slow to import, and most commands need none

    def is_enough(questions: Floats) -> Mask:
        n = questions * shape.rows * kept
        found = shape.design(questions, n * error, kept)
        _, highest, effective = design_bounds(np.full(np.shape(n), error), n, found)
        # Wilson's upper end is below the risk where the score test rejects the risk.
        most = risk - Z_95 * np.sqrt(risk * (1 - risk) / effective)
        independent = np.floor(n / found.effect)
        chance = bdtr(np.floor(np.maximum(most, 0) * independent), independent.astype(int), error)
        _, at_least, _ = design_bounds(np.zeros(np.shape(n)), n, found)
        return np.asarray((most >= 0) & (at_least < risk) & (chance >= POWER) & ~np.isnan(highest))

    return _smallest(is_enough, shape)


def threshold_needs(risk: float, error: float, kept: float) -> int | None:
    """Return how many questions a calibration needs to find a threshold, in :data:`POWER` cases.

    One verdict of each question is tested (``judging.verdicts.calibration``). Arguments as above.
    """
    from scipy.stats import binom  # slow to import, and most commands need none

    def is_enough(questions: Floats) -> Mask:
        tested = np.floor(questions * kept)
        most = binom.ppf(CHANCE, tested, risk)
        most = np.where(binom.cdf(most, tested, risk) > CHANCE, most - 1, most)
        return np.asarray(binom.cdf(most, tested, error) >= POWER)

    return _smallest(is_enough, Questions()).questions


def judge_correlation(rate: float, sensitivity: float, specificity: float) -> float:
    """Return the correlation of a judge's 0/1 labels with people's (the phi coefficient).

    It is 0 if either uses one label only, and negative if sensitivity + specificity < 1.

    Args:
        rate: Share of items that people call 1.
        sensitivity: Share of those that the judge calls 1.
        specificity: Share of the other items that the judge calls 0.
    """
    judge_rate = rate * sensitivity + (1 - rate) * (1 - specificity)
    human_spread, judge_spread = rate * (1 - rate), judge_rate * (1 - judge_rate)
    if not min(human_spread, judge_spread):
        return 0.0
    return float((sensitivity + specificity - 1) * np.sqrt(human_spread / judge_spread))


def expected_half_widths(
    labels: Floats, items: int, rate: float, correlation: float, shape: Questions | None = None
) -> tuple[Floats, Floats]:
    """Return half the expected interval widths of PPI++ and of the labels alone.

    What all items leave open, because other questions could have been asked, no judge takes away;
    of the rest, it leaves ``1 - correlation²``.

    Args:
        labels: Numbers of labelled items, drawn singly, from 2. Shape ``[...]``.
        items: Number of items ``N``.
        rate: Rate of people's labels, a guess.
        correlation: Correlation of the judge's labels with people's, a guess or an estimate.
        shape: How items share questions; ``None``: they do not.

    Returns:
        Shape ``[...]`` each.
    """
    from scipy.special import stdtrit  # slow to import, and most commands need none

    shape = shape or Questions()
    guess, share = np.full(np.shape(labels), rate), labels / items
    questions = items / shape.rows * (1 - (1 - share) ** shape.rows)
    found = shape.design(questions, labels * min(rate, 1 - rate), share)
    freedom = np.maximum(found.clusters - 1, PRECISION)
    student = (stdtrit(np.maximum(labels - 1, freedom), 0.975) / stdtrit(freedom, 0.975)) ** 2
    effective = labels * student / found.effect
    of_all = share * (1 + (shape.alike - 1) * shape.correlation)
    explained = correlation**2 * (1 - share) / (of_all + 1 - share)
    remaining = np.minimum(variance_ratio(explained, guess, effective, found.clusters), 1)
    return wilson_half_width(guess, effective / remaining), wilson_half_width(guess, effective)


def labels_needed(
    half_width: float, items: int, rate: float, correlation: float, shape: Questions | None = None
) -> LabelPlan:
    """Return the smallest number of labels whose 95 % interval is expected to be narrow enough.

    Args:
        half_width: Half of the interval's width, as a share: .03 is 3 points either side.
        items: Number of items of the benchmark.
        rate: Rate of people's labels, a guess; .5 needs the most labels.
        correlation: Correlation of the judge's labels with people's, from ``judge_correlation`` or
            from labels at hand.
        shape: As in ``expected_half_widths``.

    Raises:
        CustosError: If a number is out of its range.
    """
    if not (half_width > 0 and items >= 2 and 0 < rate < 1 and -1 <= correlation <= 1):
        raise CustosError(
            "a plan needs a half-width above 0, two items or more, a rate between 0 and 1 and a "
            f"correlation from -1 to 1, not {half_width}, {items}, {rate} and {correlation}"
        )
    labels = np.arange(2, items + 1, dtype=np.float64)
    with_judge, alone = expected_half_widths(labels, items, rate, correlation, shape)
    return LabelPlan(
        _first_within(with_judge, half_width, labels), _first_within(alone, half_width, labels)
    )


def _first_within(half_widths: Floats, limit: float, labels: Floats) -> int | None:
    enough = np.flatnonzero(half_widths <= limit)
    return int(labels[enough[0]]) if len(enough) else None


def _smallest(is_enough: Callable[[Floats], Mask], shape: Questions) -> Need:
    """Return the number of questions from which on they suffice, with their rows."""
    most = 4
    while not is_enough(np.array([float(most)]))[0]:
        most *= 2
        if most > MOST_QUESTIONS:
            return Need(None, None)
    questions = np.arange(2, most + 1, dtype=np.float64)
    too_few = np.flatnonzero(~is_enough(questions))
    first = int(questions[too_few[-1]]) + 1 if len(too_few) else 2
    return Need(first, int(np.ceil(first * shape.rows)))
