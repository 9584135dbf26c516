"""How many questions and rows people must label for what is to be shown, and which ones.

Every number is found with the intervals and tests that will be applied, at their expected values.
Rows on one question are alike, so that questions count more than rows. Rows are drawn with known
probabilities: only labels of such rows say something of all. Doubtful rows are likelier, so that
people also see what a judge leaves to them, and no row is left without a chance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evaluation.correction.scores import variance_ratio
from evaluation.estimate import LEVEL, POWER, PRECISION, tango_score
from evaluation.intervals import (
    LIKENESS,
    Z_95,
    Design,
    Floats,
    Ints,
    Mask,
    cluster_sums,
    design,
    design_bounds,
    drawn_up,
    student_quantile,
    wilson_half_width,
)
from judging.verdicts.calibration import CHANCE

MOST_QUESTIONS = 1 << 18
"""Questions beyond which a plan only says that there are more."""
DOUBTFUL_SHARE = 0.5
"""Share of the drawn rows that doubtful ones may take, as long as there are others."""
EVEN_SHARE = 0.5
"""Share of the other drawn rows that is spread evenly; the rest is by doubt. It is a floor: no row
of which a judge is sure without reason is so unlikely that it would carry the whole result."""


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
        """Measure how rows share questions, two or more, and how far hits (0 or 1) are alike."""
        sums, sizes = cluster_sums(np.stack([hits, np.ones(len(hits))], axis=1), clusters).T
        found = design(sums, sizes)
        alike = float(np.sum(sizes**2) / sizes.sum())
        correlation = min(1.0, (float(found.effect) - 1) / (alike - 1)) if alike > 1 else LIKENESS
        even = min(1.0, float(found.clusters) / len(sizes))
        return cls(len(hits) / len(sizes), alike, correlation, even)

    def design(self, questions: Floats, events: Floats, share: Floats | float = 1.0) -> Design:
        """Compute the design that is to be expected. Shapes ``[...]``.

        ``events`` is the number of rows that differ from the rest, ``share`` that of the rows which
        are taken, drawn singly.
        """
        size = 1 + (self.alike - 1) * np.asarray(share)
        effect, assumed = (1 + (size - 1) * likeness for likeness in (self.correlation, LIKENESS))
        return Design(drawn_up(effect, assumed, events / size), assumed, questions * self.even)


def rate_half_width(questions: Floats, rate: float, shape: Questions) -> Floats:
    """Compute half the expected width of a rate's interval; nan for too few questions."""
    n, rates = questions * shape.rows, np.full(np.shape(questions), rate)
    low, high, _ = design_bounds(rates, n, shape.design(questions, n * min(rate, 1 - rate)))
    return np.asarray((high - low) / 2)


def rate_needs(half_width: float, rate: float, shape: Questions) -> Need:
    """Find what a rate needs to have an interval that is expected to be narrow enough."""
    return _smallest(lambda questions: rate_half_width(questions, rate, shape) <= half_width, shape)


def gate_needs(margin: float, changed: float, shape: Questions) -> Need:
    """Find what a judge that is just as good needs to be shown no worse, in :data:`POWER` cases.

    ``margin`` is the loss of accuracy that does not matter (``custos compare --gate --margin``),
    ``changed`` the share of rows on which just one of the two judges is right. The correlation is
    that of the difference.
    """
    from scipy.special import ndtr  # slow to import, and most commands need none

    def is_enough(questions: Floats) -> Mask:
        n = questions * shape.rows
        found = shape.design(questions, n * changed)
        effective = n / found.effect
        freedom = np.maximum(found.clusters - 1, PRECISION)
        quantile = student_quantile(freedom, 1 - LEVEL)
        # The observed difference from which on a loss of the margin is rejected.
        low, high = np.full(np.shape(n), -margin), np.full(np.shape(n), margin + changed)
        for _ in range(30):
            middle = (low + high) / 2
            scores = tango_score(middle, changed, -margin)
            is_rejected = scores * np.sqrt(effective) > quantile
            low, high = np.where(is_rejected, low, middle), np.where(is_rejected, middle, high)
        power = ndtr(-high / np.sqrt(max(changed, PRECISION) / effective))
        return np.asarray((power >= POWER) & (found.clusters > 1))

    return _smallest(is_enough, shape)


def risk_needs(risk: float, error: float, kept: float, shape: Questions) -> Need:
    """Find what a level needs to be shown (``custos eval --risk``), in :data:`POWER` cases.

    ``risk`` is the largest share of wrong verdicts among those kept, ``error`` their true share, a
    guess below it, and ``kept`` the share of the verdicts that are kept.
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
    """Find how many questions a calibration needs to choose a threshold, in :data:`POWER` cases.

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
    """Compute the correlation of a judge's 0/1 labels with people's (the phi coefficient).

    It is 0 if either uses one label only. ``rate`` is the share of items that people call 1.
    """
    judge_rate = rate * sensitivity + (1 - rate) * (1 - specificity)
    human_spread, judge_spread = rate * (1 - rate), judge_rate * (1 - judge_rate)
    if not min(human_spread, judge_spread):
        return 0.0
    return float((sensitivity + specificity - 1) * np.sqrt(human_spread / judge_spread))


def expected_half_widths(
    labels: Floats, items: int, rate: float, correlation: float, shape: Questions
) -> tuple[Floats, Floats]:
    """Compute half the expected interval widths of PPI++ and of the labels alone. ``[...]`` each.

    What all items leave open, because other questions could have been asked, no judge takes away;
    of the rest, it leaves ``1 - correlation²``. ``labels`` are numbers of labelled ones among
    ``items``, drawn singly, from 2; ``rate`` is a guess of people's rate, and ``correlation`` that
    of the judge's labels with people's, guessed or estimated.
    """
    guess, share = np.full(np.shape(labels), rate), labels / items
    questions = items / shape.rows * (1 - (1 - share) ** shape.rows)
    found = shape.design(questions, labels * min(rate, 1 - rate), share)
    freedom = np.maximum(found.clusters - 1, PRECISION)
    quantile = student_quantile(freedom, 0.975)
    ratio = student_quantile(np.maximum(labels - 1, freedom), 0.975) / quantile
    effective = labels * ratio**2 / found.effect
    of_all = share * (1 + (shape.alike - 1) * shape.correlation)
    explained = correlation**2 * (1 - share) / (of_all + 1 - share)
    remaining = np.minimum(variance_ratio(explained, guess, effective, found.clusters), 1)
    return wilson_half_width(guess, effective / remaining), wilson_half_width(guess, effective)


def labels_needed(
    half_width: float, items: int, rate: float, correlation: float, shape: Questions
) -> LabelPlan:
    """Find the smallest number of labels whose 95 % interval is expected to be narrow enough.

    A rate of .5 needs the most labels. Arguments as :func:`expected_half_widths`.
    """
    labels = np.arange(2, items + 1, dtype=np.float64)

    def first_within(half_widths: Floats) -> int | None:
        enough = np.flatnonzero(half_widths <= half_width)
        return int(labels[enough[0]]) if len(enough) else None

    with_judge, alone = expected_half_widths(labels, items, rate, correlation, shape)
    return LabelPlan(first_within(with_judge), first_within(alone))


def _smallest(is_enough: Callable[[Floats], Mask], shape: Questions) -> Need:
    """Find the number of questions from which on they suffice, with their rows."""
    most = 4
    while not is_enough(np.array([float(most)]))[0]:
        most *= 2
        if most > MOST_QUESTIONS:
            return Need(None, None)
    questions = np.arange(2, most + 1, dtype=np.float64)
    too_few = np.flatnonzero(~is_enough(questions))
    first = int(questions[too_few[-1]]) + 1 if len(too_few) else 2
    return Need(first, int(np.ceil(first * shape.rows)))


def sampling_probabilities(
    confidence: Floats, is_doubtful: Mask, num_rows: int, slices: Ints | None = None
) -> Floats:
    """Compute the probability with which each of ``N`` rows should be drawn.

    Of the doubtful rows, as many as fit into :data:`DOUBTFUL_SHARE` are drawn, each as likely. The
    others are drawn in proportion to the square root of the probability that the judge is wrong,
    with which a rate is estimated best (Zrnic & Candès 2024, arXiv 2403.03208), above a floor.

    A confidence of nan counts as none, and ``is_doubtful`` marks rows that people should see
    anyway; shapes ``[N]``. The probabilities add up to ``num_rows`` if there are as many rows.
    Every slice gets equally many rows, a small one all that it has.
    """
    doubt = np.sqrt(1 - np.nan_to_num(confidence))
    slices = np.zeros(len(doubt), dtype=np.int64) if slices is None else slices
    _, slices, sizes = np.unique(slices, return_inverse=True, return_counts=True)
    probabilities = np.empty(len(doubt))
    budgets = _capped(np.ones(len(sizes)), sizes.astype(np.float64), num_rows)
    for number, budget in enumerate(budgets):
        inside = slices == number
        for_doubtful, rest = inside & is_doubtful, inside & ~is_doubtful
        given = min(float(for_doubtful.sum()), max(DOUBTFUL_SHARE * budget, budget - rest.sum()))
        probabilities[for_doubtful] = given / max(1, for_doubtful.sum())
        of_rest = doubt[rest]
        even = np.full(len(of_rest), EVEN_SHARE / max(1, len(of_rest)))
        by_doubt = (1 - EVEN_SHARE) * of_rest / of_rest.sum() if of_rest.sum() else even
        probabilities[rest] = _capped(even + by_doubt, np.ones(len(of_rest)), budget - given)
    return probabilities


def systematic_sample(probabilities: Floats, order: Floats, rng: np.random.Generator) -> Ints:
    """Draw rows systematically, spread over what they are ordered by.

    Along the order, whose first column counts most, the probabilities are added up, and a row is
    drawn where the sum passes a whole number plus one random start (Madow 1949). The indices are in
    random order: a person who stops early has labelled a random part of them. Shapes ``[N]`` and
    ``[N, K]``.
    """
    rows = np.lexsort([rng.random(len(order)), *order.T[::-1]])
    passed = np.floor(np.cumsum(probabilities[rows]) + rng.random())
    is_drawn = np.diff(passed, prepend=0.0) > 0
    return rng.permutation(rows[is_drawn])


def _capped(weights: Floats, most: Floats, total: float) -> Floats:
    """Divide a total in proportion to weights, none getting more than its most. Shape ``[K]``."""
    given, is_open = np.zeros(len(weights)), np.ones(len(weights), dtype=bool)
    while is_open.any():
        left = total - given[~is_open].sum()
        given[is_open] = left * weights[is_open] / weights[is_open].sum()
        over = is_open & (given >= most)
        if not over.any():
            break
        given[over] = most[over]
        is_open &= ~over
    return np.minimum(given, most)
