"""Rates of people's labels from a judge's labels and a few of people's, many benchmarks at once.

A benchmark is a row of cells. A cell is an item, or a number of items that are alike in what the
judge and people said, which is how the coverage simulation holds thousands of benchmarks. Items are
a sample of the questions that could have been asked: the rate meant is the one over all of those,
so an interval keeps some width even when every item is labelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from evaluation.intervals import Z_95, Floats, Ints
from evaluation.metrics import ratio


@dataclass(frozen=True)
class Cells:
    """What the judge and people said of the items of benchmarks.

    Shape ``[..., K]`` each, or one that broadcasts to it (with ``starts``, ``[..., K]`` itself).

    Attributes:
        judge: The judge's label, 0 or 1, or its probability of 1.
        human: People's label, 0 or 1; nan where nobody labelled.
        counts: Items in the cell.
        starts: Where each group of dependent items begins on the last axis, ascending from 0.
            ``None``: all items are independent.
    """

    judge: Floats
    human: Floats
    counts: Floats
    starts: Ints | None = None

    @property
    def labelled(self) -> Floats:
        """Counts of the items people labelled. Shape ``[..., K]``."""
        return np.where(np.isnan(self.human), 0.0, self.counts)

    @property
    def unlabelled(self) -> Floats:
        """Counts of the items nobody labelled. Shape ``[..., K]``."""
        return np.where(np.isnan(self.human), self.counts, 0.0)

    @property
    def answers(self) -> Floats:
        """People's labels, 0 where there is none. Shape ``[..., K]``."""
        return np.nan_to_num(self.human)


class Rates(NamedTuple):
    """Rates with 95 % intervals. Shape ``[...]`` each."""

    value: Floats
    low: Floats
    high: Floats


class Powered(NamedTuple):
    """PPI++ beside what the labels say without the judge."""

    rates: Rates
    power: Floats
    """Weight of the judge (lambda): 0 when it was not worth listening to. Shape ``[...]``."""
    alone: Rates


class PluggedIn(NamedTuple):
    """The plug-in estimate with the judge's two rates; nan rates mean that it does not exist."""

    rates: Rates
    sensitivity: Floats
    specificity: Floats


def wilson_rates(rate: Floats, n: Floats) -> Rates:
    """Score intervals (Wilson 1927) of rates over ``n`` effective items, which may be a fraction.

    Args:
        rate: In ``[0, 1]``. Shape ``[...]``.
        n: Shape ``[...]``.
    """
    z2 = Z_95 * Z_95
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = wilson_half_width(rate, n)
    return Rates(rate, np.clip(centre - half, 0, rate), np.clip(centre + half, rate, 1))


def wilson_half_width(rate: Floats, n: Floats) -> Floats:
    """Half the width of the score interval. Shapes as ``wilson_rates``."""
    z2 = Z_95 * Z_95
    spread = rate * (1 - rate) / n + z2 / (4 * n * n)
    return np.asarray(Z_95 * np.sqrt(spread) / (1 + z2 / n))


def rate_alone(values: Floats, counts: Floats, starts: Ints | None) -> tuple[Rates, Floats]:
    """The mean of labels and its score interval, groups of items counted as dependent.

    The interval is Wilson's at the effective number of items: the number divided by the design
    effect (variance over that of independent labels of the same rate) and by the squared ratio of
    Student's quantiles for groups and for items (Korn & Graubard 1998). Where every label is the
    same, groups are taken to agree throughout; a design effect below 1 is not believed.

    Args:
        values: Labels, 0 to 1. Shape ``[..., K]``.
        counts: Items in each cell; 0 leaves a cell out. Shape ``[..., K]``.
        starts: As in ``Cells``.

    Returns:
        The rates, and the effective number of items. Shape ``[...]`` each.
    """
    n, groups = counts.sum(axis=-1), _groups(counts, starts)
    rate = _mean(values, counts)
    deviation = _influence(values, counts)
    variance = _moment(deviation, deviation, counts, starts) * groups / (groups - 1)
    agreeing = n if starts is None else np.sum(_group_sums(counts, starts) ** 2, axis=-1)
    mixed = rate * (1 - rate) > 0
    effect = np.where(mixed, ratio(variance * (n - 1), rate * (1 - rate)), agreeing / n)
    effective = n / np.maximum(effect, 1) * _student_ratio(n, groups)
    return wilson_rates(rate, effective), effective


def variance_ratio(explained: Floats, rate: Floats, effective: Floats, groups: Floats) -> Floats:
    """Variance of PPI++ over that of the labels alone; above 1 the judge is better left out.

    A few labels flatter the judge: 50 without a disagreement do not make it perfect. So two further
    labels are imagined, one 0 and one 1, about which it says nothing, its own values there one
    standard deviation either side of their mean (the idea of Agresti & Coull 1998, for a
    correlation). Then the ratio grows by a share ``2 / groups``: one for the error of the tuned
    lambda, one for residuals that are smallest at the lambda tuned on them.

    Args:
        explained: Share of the variance the judge takes away at the best lambda, ``r² (1 - n/N)``
            for a correlation ``r``, ``n`` labels and ``N`` items. Shape ``[...]``.
        rate: Share of labels that are 1. Shape ``[...]``.
        effective: Effective number of labels. Shape ``[...]``.
        groups: Number of groups with a label; the number of labels if independent. Shape ``[...]``.

    Returns:
        Shape ``[...]``.
    """
    spread = rate * (1 - rate)
    known = ratio(spread, spread + (1 - 2 * spread) / effective) * _shrinkage(groups)
    return np.asarray((1 - explained * known) * (1 + 2 / groups))


def powered(cells: Cells) -> Powered:
    """PPI++ rate of people's labels if a random sample of the items is labelled.

    The rate among labels is moved by lambda times the difference of the judge's mean on the other
    items and on the labelled ones; lambda minimises the (cluster-robust) variance on the same
    items (Angelopoulos, Duchi & Zrnic 2023, arXiv 2311.01453). Unbiased to first order whatever the
    judge's errors. The interval is Wilson's at the effective number of labels over the variance
    ratio; where that is not below 1, lambda is 0 and the interval that of the labels alone.

    At least two groups (items, if independent) must hold a label.
    """
    labelled, unlabelled = cells.labelled, cells.unlabelled
    alone, effective = rate_alone(cells.answers, labelled, cells.starts)
    groups = _groups(labelled, cells.starts)
    gap = _mean(cells.judge, labelled) - _mean(cells.judge, unlabelled)
    of_human = _influence(cells.answers, labelled)
    of_gap = _influence(cells.judge, labelled) - _influence(cells.judge, unlabelled)
    human = _moment(of_human, of_human, cells.counts, cells.starts)
    shared = _moment(of_human, of_gap, cells.counts, cells.starts)
    judge = _moment(of_gap, of_gap, cells.counts, cells.starts)

    explained = np.nan_to_num(ratio(shared**2, human * judge))
    left = variance_ratio(explained, alone.value, effective, groups)
    helps = (left < 1) & (unlabelled.sum(axis=-1) > 0)
    power = np.where(helps, np.nan_to_num(ratio(shared, judge)) * _shrinkage(groups), 0)
    value = np.where(helps, np.clip(alone.value - power * np.nan_to_num(gap), 0, 1), alone.value)
    return Powered(wilson_rates(value, effective / np.where(helps, left, 1)), power, alone)


def plug_in(cells: Cells) -> PluggedIn:
    """Rate of people's labels from the judge's sensitivity and specificity (Rogan & Gladen 1978).

    For a labelled subset that is no random sample, as long as the judge errs on it as on the other
    items of the same human label. Labelled items count with people's label; on the others the
    judge's rate ``q`` stands for ``(q - (1 - specificity)) / (sensitivity + specificity - 1)``.

    The interval holds every rate that the data do not contradict at 5 % (Fieller 1954): all of
    ``[0, 1]`` when sensitivity + specificity is not clearly above 1. The variance takes in the
    sampling of the items, of the judge's rate and of its two error rates, the latter as if people
    had labelled two more items of each class on which the judge was once right and once wrong.

    Rates are nan where sensitivity + specificity <= 1 or either is unknown, and where no rate in
    ``[0, 1]`` agrees with the data (the subset's errors are then not those of the other items).
    """
    total, share = cells.counts.sum(axis=-1), _mean(np.isnan(cells.human) * 1.0, cells.counts)
    labelled, unlabelled = cells.labelled, cells.unlabelled
    positives, negatives = labelled * cells.answers, labelled * (1 - cells.answers)
    on_positives, on_negatives = _mean(cells.judge, positives), _mean(cells.judge, negatives)
    known = _mean(cells.answers, labelled) * (1 - share)
    informed = on_positives - on_negatives
    # Zero at the true rate p: informed * (value - p).
    at_zero = share * np.nan_to_num(_mean(cells.judge, unlabelled) - on_negatives)
    at_zero = at_zero + known * informed

    def variance(rate: float) -> Floats:
        rest = known - rate  # minus the share of items that are unlabelled and 1
        influence = (
            share[..., None] * _influence(cells.judge, unlabelled)
            + rest[..., None] * _influence(cells.judge, positives)
            - (share + rest)[..., None] * _influence(cells.judge, negatives)
            + ((1 - share) * informed)[..., None] * _influence(cells.answers, labelled)
        )
        sampled = _moment(influence, influence, cells.counts, cells.starts)
        imagined = rest**2 * _two_more(on_positives, positives, cells.starts)
        imagined = imagined + (share + rest) ** 2 * _two_more(on_negatives, negatives, cells.starts)
        # How many items of either kind the benchmark holds is itself a sample's outcome.
        moved = ratio((1 - share) * rate - known, np.sqrt(share * (1 - share) * total))
        return np.asarray(sampled + imagined + (informed * np.nan_to_num(moved)) ** 2)

    groups = _groups(labelled, cells.starts)
    z2 = Z_95**2 / _student_ratio(labelled.sum(axis=-1), groups)
    none, half, whole = variance(0.0), variance(0.5), variance(1.0)
    bend = 2 * (none + whole - 2 * half)
    squared = informed**2 - z2 * bend
    linear = -2 * at_zero * informed - z2 * (whole - none - bend)
    constant = at_zero**2 - z2 * none
    root = np.sqrt(np.maximum(linear**2 - 4 * squared * constant, 0))
    bounded = squared > 0
    low = np.where(bounded, ratio(-linear - root, 2 * squared), 0)
    high = np.where(bounded, ratio(-linear + root, 2 * squared), 1)
    exists = (informed > 0) & (high > 0) & (low < 1)
    ends = (ratio(at_zero, informed), low, high)
    rates = Rates(*(np.where(exists, np.clip(end, 0, 1), np.nan) for end in ends))
    return PluggedIn(rates, on_positives, 1 - on_negatives)


def _mean(values: Floats, counts: Floats) -> Floats:
    return ratio(np.sum(values * counts, axis=-1), counts.sum(axis=-1))


def _influence(values: Floats, counts: Floats) -> Floats:
    """How much one item of each cell moves the mean over ``counts``; 0 outside of it."""
    deviation = (values - _mean(values, counts)[..., None]) * (counts > 0)
    return np.nan_to_num(ratio(deviation, counts.sum(axis=-1)[..., None]))


def _moment(first: Floats, second: Floats, counts: Floats, starts: Ints | None) -> Floats:
    """Sum over groups of the product of the groups' sums."""
    if starts is None:
        return np.asarray(np.sum(counts * first * second, axis=-1))
    return np.asarray(
        np.sum(_group_sums(counts * first, starts) * _group_sums(counts * second, starts), axis=-1)
    )


def _group_sums(values: Floats, starts: Ints) -> Floats:
    return np.asarray(np.add.reduceat(values, starts, axis=-1))


def _groups(counts: Floats, starts: Ints | None) -> Floats:
    """Number of groups with an item among ``counts``."""
    if starts is None:
        return np.asarray(counts.sum(axis=-1))
    return np.asarray(np.sum(_group_sums(counts, starts) > 0, axis=-1), dtype=np.float64)


def _student_ratio(n: Floats, groups: Floats) -> Floats:
    quantiles = special.stdtrit(n - 1, 0.975) / special.stdtrit(groups - 1, 0.975)
    return np.asarray(quantiles**2)


def _shrinkage(groups: Floats) -> Floats:
    return groups / (groups + 2)


def _two_more(mean: Floats, counts: Floats, starts: Ints | None) -> Floats:
    """What a label of 0 and one of 1 add to the variance of a mean over ``counts``.

    Items of a group resemble each other, so each stands for a group of average size.
    """
    return ratio(mean**2 + (1 - mean) ** 2, counts.sum(axis=-1) * _groups(counts, starts))
