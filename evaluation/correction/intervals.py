"""Rates of people's labels on many benchmarks, from a judge's labels and a few of people's.

A benchmark is a row of cells. A cell is an item, or a number of items with the same labels by judge
and people, which is how the coverage experiment holds thousands of benchmarks. Items are a sample
of the questions that could have been asked. The rate that is meant is the one over all of those, so
that an interval has some width even when every item is labelled.

Some terms for small samples are our own and in no paper; the docstrings say which.
``python -m experiments interval_coverage`` measures how often the intervals hold the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evaluation.intervals import (
    LIKENESS,
    Z_95,
    Design,
    Floats,
    Interval,
    Ints,
    cluster_sums,
    design,
    design_bounds,
    wilson_bounds,
    wilson_interval,
)
from evaluation.metrics import ratio

OTHER_LIKENESS = 0.1
"""Correlation by a second likeness that is assumed as long as nothing is known of it. Clusters are
large there: were nearly all of the rate in few of them, so many would seldom be without any hit."""


@dataclass(frozen=True)
class Cells:
    """The judge's and people's labels of the items of benchmarks.

    Shape ``[..., K]`` each, or one that broadcasts to it (with ``starts``, ``[..., K]`` itself).

    Attributes:
        judge: The judge's label, 0 or 1, or its probability of 1.
        human: People's label, 0 or 1; nan where nobody labelled.
        counts: Items in the cell.
        starts: Start of each group of dependent items on the last axis, ascending from 0.
            ``None``: all items are independent.
    """

    judge: Floats
    human: Floats
    counts: Floats
    starts: Ints | None = None

    @property
    def labelled(self) -> Floats:
        """Return the counts of the items that people labelled. Shape ``[..., K]``."""
        return np.where(np.isnan(self.human), 0.0, self.counts)

    @property
    def unlabelled(self) -> Floats:
        """Return the counts of the items that nobody labelled. Shape ``[..., K]``."""
        return np.where(np.isnan(self.human), self.counts, 0.0)

    @property
    def human_or_zero(self) -> Floats:
        """Return people's labels, 0 where there is none. Shape ``[..., K]``."""
        return np.nan_to_num(self.human)


class Rates(NamedTuple):
    """Rates with 95 % intervals. Shape ``[...]`` each."""

    value: Floats
    low: Floats
    high: Floats


class PpiEstimate(NamedTuple):
    """The PPI++ estimate beside that of the labels without the judge."""

    rates: Rates
    power: Floats
    """Weight of the judge (lambda); 0 where the judge would only add noise. Shape ``[...]``."""
    alone: Rates


class PlugInEstimate(NamedTuple):
    """The plug-in estimate with the judge's two rates; nan rates mean that it does not exist."""

    rates: Rates
    sensitivity: Floats
    specificity: Floats


def labels_alone(values: Floats, counts: Floats, starts: Ints | None) -> tuple[Rates, Floats]:
    """Return the mean of labels and its score interval, with dependence within groups.

    The interval is that of :func:`evaluation.intervals.design_bounds`.

    Args:
        values: Labels, 0 to 1. Shape ``[..., K]``.
        counts: Items in each cell; 0 leaves a cell out. Shape ``[..., K]``.
        starts: As in ``Cells``.

    Returns:
        The rates, and the effective number of items. Shape ``[...]`` each.
    """
    n, rate = counts.sum(axis=-1), _mean(values, counts)
    if starts is None:
        return Rates(rate, *wilson_bounds(rate, n)), n
    found = design(_group_sums(values * counts, starts), _group_sums(counts, starts))
    low, high, effective = design_bounds(rate, n, found)
    return Rates(rate, low, high), effective


def clustered_rate(hits: Floats, clusters: Ints, others: Ints | None = None) -> Interval:
    """Return the interval of a rate whose items depend on each other within clusters.

    It is that of :func:`evaluation.intervals.design_bounds`; a single cluster counts as one item.
    Where items are alike in a second way too, as attacks of one wording, the variances of both are
    added up, less that of independent items (Cameron, Gelbach & Miller 2011), and the fewer
    clusters count.

    Args:
        hits: 0 or 1, at least one. Shape ``[n]``.
        clusters: Cluster of each item. Shape ``[n]``.
        others: Cluster of each item by the second likeness. Shape ``[n]``.
    """
    rate, n = np.asarray(hits.mean()), np.asarray(float(len(hits)))
    columns = np.stack([hits, np.ones(len(hits))], axis=1)
    ways = [clusters] if others is None or len(np.unique(others)) < 2 else [clusters, others]
    found = [
        design(sums[:, 0], sums[:, 1], likeness)
        for way, likeness in zip(ways, (LIKENESS, OTHER_LIKENESS), strict=False)
        for sums in (cluster_sums(columns, way),)
    ]
    both = Design(
        np.sum([way.effect for way in found], axis=0) - (len(found) - 1),
        np.sum([way.assumed for way in found], axis=0) - (len(found) - 1),
        np.min([way.clusters for way in found], axis=0),
    )
    if both.clusters <= 1:
        return wilson_interval(float(rate), 1)
    low, high, _ = design_bounds(rate, n, both)
    return Interval(float(low), float(high))


def variance_ratio(explained: Floats, rate: Floats, effective: Floats, groups: Floats) -> Floats:
    """Return the variance of PPI++ over that of the labels alone.

    Above 1 the judge is better left out. Without terms for small samples the ratio is
    ``1 - explained``. Those terms are ours, because few labels flatter the judge: 50 labels without
    a disagreement do not make it perfect.

    - Two more labels are imagined, a 0 and a 1, about which the judge says nothing: its values on
      them lie one standard deviation either side of its mean. This is the idea of Agresti & Coull
      (1998), applied to a correlation.
    - The ratio grows by a share ``2 / groups``: one for the error of the tuned lambda, and one for
      residuals that are smallest at the lambda which was tuned on them.

    Args:
        explained: Share of the variance that the judge takes away at the best lambda,
            ``r² (1 - n/N)`` for a correlation ``r``, ``n`` labels and ``N`` items. Shape ``[...]``.
        rate: Share of labels that are 1. Shape ``[...]``.
        effective: Effective number of labels. Shape ``[...]``.
        groups: Number of groups with a label; the number of labels if independent. Shape ``[...]``.

    Returns:
        Shape ``[...]``.
    """
    spread = rate * (1 - rate)
    believed = ratio(spread, spread + (1 - 2 * spread) / effective) * _shrinkage(groups)
    return np.asarray((1 - explained * believed) * (1 + 2 / groups))


def ppi_plus_plus(cells: Cells) -> PpiEstimate:
    """Estimate the rate of people's labels where they labelled a random sample of the items.

    The rate among the labels is moved by lambda times the difference of the judge's mean on the
    other items and on the labelled ones. Lambda minimises the cluster-robust variance on the same
    items (Angelopoulos, Duchi & Zrnic 2023, arXiv 2311.01453). To first order the estimate is
    unbiased whatever the judge's errors.

    Three terms are ours: lambda shrinks by ``groups / (groups + 2)``; the interval is Wilson's at
    the effective number of labels over the ``variance_ratio``; and where that ratio is not below 1,
    lambda is 0 and the interval is that of the labels alone.

    Args:
        cells: At least two groups (items, if independent) must hold a label.
    """
    labelled, unlabelled = cells.labelled, cells.unlabelled
    alone, effective = labels_alone(cells.human_or_zero, labelled, cells.starts)
    groups = _count_groups(labelled, cells.starts)
    gap = _mean(cells.judge, labelled) - _mean(cells.judge, unlabelled)
    of_human = _influence(cells.human_or_zero, labelled)
    of_gap = _influence(cells.judge, labelled) - _influence(cells.judge, unlabelled)
    human_variance = _moment(of_human, of_human, cells.counts, cells.starts)
    covariance = _moment(of_human, of_gap, cells.counts, cells.starts)
    gap_variance = _moment(of_gap, of_gap, cells.counts, cells.starts)

    explained = np.nan_to_num(ratio(covariance**2, human_variance * gap_variance))
    remaining = variance_ratio(explained, alone.value, effective, groups)
    helps = (remaining < 1) & (unlabelled.sum(axis=-1) > 0)
    best = np.nan_to_num(ratio(covariance, gap_variance))
    power = np.where(helps, best * _shrinkage(groups), 0)
    value = np.where(helps, np.clip(alone.value - power * np.nan_to_num(gap), 0, 1), alone.value)
    bounds = wilson_bounds(value, effective / np.where(helps, remaining, 1))
    return PpiEstimate(Rates(value, *bounds), power, alone)


def plug_in(cells: Cells) -> PlugInEstimate:
    """Estimate the rate of people's labels from the judge's sensitivity and specificity.

    This is for a labelled subset that is no random sample, as long as the judge errs on it as on
    the other items of the same human label (Rogan & Gladen 1978). Labelled items count with
    people's label. On the others the judge's rate ``q`` stands for
    ``(q - (1 - specificity)) / (sensitivity + specificity - 1)``.

    The interval holds every rate that the data do not contradict at 5 % (Fieller 1954). It is all
    of ``[0, 1]`` when sensitivity + specificity is not clearly above 1. Its variance counts the
    sampling of the items, of the judge's rate and of its two error rates. Two terms are ours: the
    error rates vary as if people had labelled two more items of each class, on which the judge was
    once right and once wrong, and Student's quantiles take the place of the normal ones as in
    ``labels_alone``.

    Rates are nan where sensitivity + specificity <= 1 or either is unknown, and where no rate in
    ``[0, 1]`` agrees with the data (the subset's errors are then not those of the other items).
    """
    total = cells.counts.sum(axis=-1)
    unlabelled_share = _mean(np.isnan(cells.human) * 1.0, cells.counts)
    labelled, unlabelled = cells.labelled, cells.unlabelled
    positives = labelled * cells.human_or_zero
    negatives = labelled * (1 - cells.human_or_zero)
    on_positives, on_negatives = _mean(cells.judge, positives), _mean(cells.judge, negatives)
    known = _mean(cells.human_or_zero, labelled) * (1 - unlabelled_share)
    informed = on_positives - on_negatives
    # Score of a rate of 0; the score of any rate is this less ``informed * rate``.
    score = unlabelled_share * np.nan_to_num(_mean(cells.judge, unlabelled) - on_negatives)
    score = score + known * informed

    def variance(rate: float) -> Floats:
        """Return the variance of the score if the rate is true."""
        unknown = known - rate  # minus the share of items that are unlabelled and 1
        influence = (
            unlabelled_share[..., None] * _influence(cells.judge, unlabelled)
            + unknown[..., None] * _influence(cells.judge, positives)
            - (unlabelled_share + unknown)[..., None] * _influence(cells.judge, negatives)
            + ((1 - unlabelled_share) * informed)[..., None]
            * _influence(cells.human_or_zero, labelled)
        )
        sampling = _moment(influence, influence, cells.counts, cells.starts)
        imagined = unknown**2 * _two_more_labels(on_positives, positives, cells.starts)
        imagined = imagined + (unlabelled_share + unknown) ** 2 * _two_more_labels(
            on_negatives, negatives, cells.starts
        )
        # How many items of either class the benchmark holds varies from sample to sample, too.
        composition = ratio(
            (1 - unlabelled_share) * rate - known,
            np.sqrt(unlabelled_share * (1 - unlabelled_share) * total),
        )
        return np.asarray(sampling + imagined + (informed * np.nan_to_num(composition)) ** 2)

    groups = _count_groups(labelled, cells.starts)
    z2 = Z_95**2 / _student_ratio(labelled.sum(axis=-1), groups)
    low, high = fieller_bounds(score, informed, (variance(0.0), variance(0.5), variance(1.0)), z2)
    exists = (informed > 0) & (high > 0) & (low < 1)
    ends = (ratio(score, informed), low, high)
    rates = Rates(*(np.where(exists, np.clip(end, 0, 1), np.nan) for end in ends))
    return PlugInEstimate(rates, on_positives, 1 - on_negatives)


def fieller_bounds(
    score: Floats, informed: Floats, variances: tuple[Floats, Floats, Floats], z2: Floats
) -> tuple[Floats, Floats]:
    """Solve ``(score - informed * rate)² = z2 * variance(rate)`` for the rate.

    Args:
        score: Shape ``[...]``.
        informed: Shape ``[...]``.
        variances: Variance, a quadratic of the rate, at the rates 0, 1/2 and 1. Shape ``[...]``.
        z2: Squared normal quantile. Shape ``[...]``.

    Returns:
        The lower and the upper root; 0 and 1 where no interval is bounded. Shape ``[...]`` each.
    """
    at_zero, at_half, at_one = variances
    bend = 2 * (at_zero + at_one - 2 * at_half)
    squared = informed**2 - z2 * bend
    linear = -2 * score * informed - z2 * (at_one - at_zero - bend)
    constant = score**2 - z2 * at_zero
    root = np.sqrt(np.maximum(linear**2 - 4 * squared * constant, 0))
    bounded = squared > 0
    low = np.where(bounded, ratio(-linear - root, 2 * squared), 0)
    high = np.where(bounded, ratio(-linear + root, 2 * squared), 1)
    return low, high


def _mean(values: Floats, counts: Floats) -> Floats:
    return ratio(np.sum(values * counts, axis=-1), counts.sum(axis=-1))


def _influence(values: Floats, counts: Floats) -> Floats:
    """Return how far one item of each cell moves the mean over ``counts``; 0 outside of it."""
    deviation = (values - _mean(values, counts)[..., None]) * (counts > 0)
    return np.nan_to_num(ratio(deviation, counts.sum(axis=-1)[..., None]))


def _moment(first: Floats, second: Floats, counts: Floats, starts: Ints | None) -> Floats:
    """Sum over groups the product of the groups' sums."""
    if starts is None:
        return np.asarray(np.sum(counts * first * second, axis=-1))
    return np.asarray(
        np.sum(_group_sums(counts * first, starts) * _group_sums(counts * second, starts), axis=-1)
    )


def _group_sums(values: Floats, starts: Ints) -> Floats:
    return np.asarray(np.add.reduceat(values, starts, axis=-1))


def _count_groups(counts: Floats, starts: Ints | None) -> Floats:
    """Count the groups with an item among ``counts``."""
    if starts is None:
        return np.asarray(counts.sum(axis=-1))
    return np.asarray(np.sum(_group_sums(counts, starts) > 0, axis=-1), dtype=np.float64)


def _student_ratio(n: Floats, groups: Floats) -> Floats:
    """Return the squared ratio of Student's quantiles for items and for groups."""
    from scipy.special import stdtrit  # takes long, and most commands need none

    quantiles = stdtrit(n - 1, 0.975) / stdtrit(groups - 1, 0.975)
    return np.asarray(quantiles**2)


def _shrinkage(groups: Floats) -> Floats:
    """Return the share of a tuned lambda that is believed, a term of ours."""
    return groups / (groups + 2)


def _two_more_labels(mean: Floats, counts: Floats, starts: Ints | None) -> Floats:
    """Return what a label of 0 and one of 1 add to the variance of a mean, a term of ours.

    Items of a group resemble each other, so each of the two stands for a group of average size.
    """
    return ratio(mean**2 + (1 - mean) ** 2, counts.sum(axis=-1) * _count_groups(counts, starts))
