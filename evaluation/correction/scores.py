"""Judge-corrected rates: what people would say of all items, from a judge and some of their labels.

A benchmark is a row of cells. A cell is an item, or a number of items with the same labels by judge
and people, which is how thousands of drawn benchmarks are held. Items are a sample
of the questions that could have been asked. The rate that is meant is the one over all of those, so
that an interval has some width even when every item is labelled.

Some terms for small samples are our own and in no paper; the docstrings say which.
``docs/experiments.md`` says how often the intervals hold the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from evaluation.intervals import Floats, Ints, Mask, design, design_bounds, ratio, wilson_bounds
from judging.errors import CustosError

SAMPLING_PROBABILITY = "sampling_probability"
"""Field of a labelled row: the probability with which it was drawn for people."""


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
        probabilities: Probability with which a labelled item was drawn for people, up to a factor;
            nan elsewhere. ``None``: all are the same.
    """

    judge: Floats
    human: Floats
    counts: Floats
    starts: Ints | None = None
    probabilities: Floats | None = None

    @property
    def labelled(self) -> Floats:
        """Count the items that people labelled. Shape ``[..., K]``."""
        return np.where(np.isnan(self.human), 0.0, self.counts)

    @property
    def represented(self) -> Floats:
        """Weigh each labelled cell by how much it stands for, by inverse probability. ``[..., K]``.

        The sum is the number of labels, or fewer where probabilities differ: as many as would give
        the variance if they were equal (Kish 1965).
        """
        if self.probabilities is None:
            return self.labelled
        weights = self.labelled * np.nan_to_num(1 / self.probabilities)
        squares = weights * np.nan_to_num(1 / self.probabilities)
        return weights * ratio(weights.sum(axis=-1), squares.sum(axis=-1))[..., None]

    @property
    def unlabelled(self) -> Floats:
        """Count the items that nobody labelled. Shape ``[..., K]``."""
        return np.where(np.isnan(self.human), self.counts, 0.0)

    @property
    def human_or_zero(self) -> Floats:
        """Replace missing labels of people by 0. Shape ``[..., K]``."""
        return np.nan_to_num(self.human)


class Rates(NamedTuple):
    """Rates with 95 % intervals. Shape ``[...]`` each."""

    value: Floats
    low: Floats
    high: Floats

    def single(self, n: int) -> Rate:
        """Pick the rate of one benchmark, which was counted on ``n`` items."""
        return Rate(float(self.value), float(self.low), float(self.high), n)


class PpiEstimate(NamedTuple):
    """The PPI++ estimate beside that of the labels without the judge."""

    rates: Rates
    power: Floats
    """Weight of the judge (lambda); 0 where the judge would only add noise. Shape ``[...]``."""
    alone: Rates


class Rate(NamedTuple):
    """A rate with its 95 % interval and the number of items that it was counted on."""

    value: float
    low: float
    high: float
    n: int

    def as_json(self, scale: float = 1.0) -> dict[str, float]:
        """List the fields as plain values; ``scale`` is what a rate of 1 is in their unit."""
        ends = {name: scale * getattr(self, name) for name in ("value", "low", "high")}
        return {**ends, "n": self.n}


@dataclass(frozen=True)
class CorrectedRate:
    """The corrected rate of a benchmark, beside the raw one.

    Attributes:
        method: ``ppi++``, or ``weighted ppi++`` where some items were likelier to be drawn.
        corrected: Estimated rate of people's labels; ``n`` is the number of labelled items.
        raw: The judge's rate over all items, without a correction.
        labelled: Rate of people's labels without the judge.
        power: PPI++'s lambda, the weight of the judge. At 0 the judge would only add noise, and
            ``corrected`` is ``labelled``.
        sensitivity: The judge's mean on items that people called 1; nan without any.
        specificity: 1 less its mean on items that people called 0; nan without any.
    """

    method: Literal["ppi++", "weighted ppi++"]
    corrected: Rate
    raw: Rate
    labelled: Rate
    power: float
    sensitivity: float
    specificity: float


class UnknownSampling(CustosError):
    """Nobody knows how the labelled items were picked, so that they say nothing of the others."""

    def __init__(
        self,
        fault: str = "nobody said how the labelled items were picked, and doubtful or first ones "
        "differ from the rest",
    ) -> None:
        super().__init__(
            f"not corrected: {fault}; say --random-sample if every item was as likely, or give the "
            "sampling_probability of each, which custos review --rows writes"
        )


def corrected_rate(
    judge: Floats,
    human: Floats,
    *,
    random_sample: bool = False,
    probabilities: Floats | None = None,
    groups: Ints | None = None,
) -> CorrectedRate:
    """Estimate the rate that people's labels would have if they had labelled every item.

    All rates are over the questions that the items are a sample of. Raise ``CustosError`` if the
    labels are not as below, people labelled items of fewer than two groups, or
    (:class:`UnknownSampling`) some are not labelled and neither argument says how the labelled ones
    were drawn, or every probability is 1.

    Args:
        judge: The judge's label of every item, 0 or 1, or its probability of 1. Shape ``[N]``.
        human: People's label, 0 or 1, or any number between, such as a squared error: the interval
            is then wider than it need be; nan where nobody labelled. Shape ``[N]``.
        random_sample: Whether every item was equally likely to be labelled. With probabilities:
            whether chance alone left out a part of the drawn ones.
        probabilities: Probability with which each labelled item was drawn for people, every item
            having had one above 0; those of other items are not looked at. Where chance alone left
            out a part of the drawn ones, the same probabilities hold, unless all are 1: that says
            that none was left out. Shape ``[N]``.
        groups: Group of each item, any integers: items that share a question or an image are not
            independent. Shape ``[N]``. ``None``: all items are independent.
    """
    judge, human = np.asarray(judge, dtype=np.float64), np.asarray(human, dtype=np.float64)
    _check(judge, human, groups)
    is_labelled = ~np.isnan(human)
    if probabilities is not None:
        probabilities = unequal_probabilities(probabilities, is_labelled, random_sample)
    elif not random_sample and not is_labelled.all():
        raise UnknownSampling
    cells = Cells(judge, human, np.ones_like(judge), probabilities=probabilities)
    if groups is not None:
        order = np.argsort(groups, kind="stable")
        starts = np.unique(groups[order], return_index=True)[1]
        drawn = None if probabilities is None else probabilities[order]
        cells = Cells(judge[order], human[order], cells.counts, starts, drawn)
    tuned = ppi_plus_plus(cells)
    labels, weights = int(is_labelled.sum()), cells.represented
    hits, rest = weights * cells.human_or_zero, weights * (1 - cells.human_or_zero)
    return CorrectedRate(
        "ppi++" if probabilities is None else "weighted ppi++",
        tuned.rates.single(labels),
        labels_alone(cells.judge, cells.counts, cells.starts)[0].single(len(judge)),
        tuned.alone.single(labels),
        float(tuned.power),
        float(ratio(np.sum(hits * cells.judge, axis=-1), hits.sum(axis=-1))),
        1 - float(ratio(np.sum(rest * cells.judge, axis=-1), rest.sum(axis=-1))),
    )


def unequal_probabilities(
    probabilities: Floats, is_labelled: Mask, random_sample: bool = False
) -> Floats | None:
    """Check sampling probabilities of labelled items, and make others nan; ``None`` if all are one.

    Arguments and errors as :func:`corrected_rate`.
    """
    probabilities = np.where(is_labelled, probabilities, np.nan)
    wrong = np.flatnonzero(is_labelled & ~((probabilities > 0) & (probabilities <= 1)))
    if len(wrong):
        raise CustosError(
            f"item {wrong[0]}: was labelled, and its sampling probability is "
            f"{probabilities[wrong[0]]}, not above 0 and at most 1"
        )
    given = probabilities[is_labelled]
    left_out = int(np.sum(~is_labelled))
    if left_out and not random_sample and np.all(given == 1):
        raise UnknownSampling(
            f"by their sampling probability of 1 all items were drawn, but {left_out:,} of "
            f"{len(is_labelled):,} have no label"
        )
    return probabilities if len(given) and np.ptp(given) else None


def _check(judge: Floats, human: Floats, groups: Ints | None) -> None:
    wrong = np.flatnonzero(~((judge >= 0) & (judge <= 1)))
    if len(wrong):
        raise CustosError(
            f"item {wrong[0]}: the judge's label is {judge[wrong[0]]}, not between 0 and 1; decide "
            "what an unscored item counts as, or leave it out, before correcting"
        )
    wrong = np.flatnonzero(~(np.isnan(human) | ((human >= 0) & (human <= 1))))
    if len(wrong):
        raise CustosError(
            f"item {wrong[0]}: people's label is {human[wrong[0]]}, not nan or a number from 0 to 1"
        )
    labelled = np.flatnonzero(~np.isnan(human))
    independent = len(labelled if groups is None else np.unique(groups[labelled]))
    if independent < 2:
        raise CustosError(
            f"people labelled items of {independent} independent groups; an interval needs two"
        )


def labels_alone(
    values: Floats, counts: Floats, starts: Ints | None, least: float = 1
) -> tuple[Rates, Floats]:
    """Estimate the mean of labels, 0 to 1, and the effective number of items.

    The interval is that of :func:`evaluation.intervals.design_bounds`. Counts and ``starts`` are as
    in ``Cells``. Shapes ``[..., K]`` to ``[...]``.
    """
    n, rate = counts.sum(axis=-1), _mean(values, counts)
    if starts is None:
        return Rates(rate, *wilson_bounds(rate, n)), n
    found = design(_group_sums(values * counts, starts), _group_sums(counts, starts), least=least)
    low, high, effective = design_bounds(rate, n, found)
    return Rates(rate, low, high), effective


def variance_ratio(explained: Floats, rate: Floats, effective: Floats, groups: Floats) -> Floats:
    """Divide the variance of PPI++ by that of the labels alone. Shapes ``[...]``.

    Above 1 the judge is better left out. Without terms for small samples the ratio would be
    ``1 - explained``. Those terms are ours, because few labels flatter the judge: 50 labels without
    a disagreement do not make it perfect.

    - Two more labels are imagined, a 0 and a 1, about which the judge says nothing: its values on
      them lie one standard deviation either side of its mean. This is the idea of Agresti & Coull
      (1998), applied to a correlation.
    - The ratio grows by a share ``2 / groups``: one for the error of the tuned lambda, and one for
      residuals that are smallest at the lambda which was tuned on them.

    ``explained`` is the share of the variance that the judge takes away at the best lambda,
    ``r² (1 - n/N)`` for a correlation ``r``, ``n`` labels and ``N`` items. ``rate`` is the share of
    labels that are 1, ``effective`` their effective number, and ``groups`` the number of groups
    with a label: that of the labels if they are independent.
    """
    spread = rate * (1 - rate)
    believed = ratio(spread, spread + (1 - 2 * spread) / effective) * _shrinkage(groups)
    return np.asarray((1 - explained * believed) * (1 + 2 / groups))


def ppi_plus_plus(cells: Cells) -> PpiEstimate:
    """Estimate the rate of people's labels where they labelled items that were drawn by chance.

    The rate among the labels is moved by lambda times the difference of the judge's mean on the
    other items and on the labelled ones. Lambda minimises the cluster-robust variance on the same
    items (Angelopoulos, Duchi & Zrnic 2023, arXiv 2311.01453). To first order the estimate is
    unbiased whatever the judge's errors. At least two groups (items, if independent) must hold a
    label.

    Where some items were likelier to be drawn than others, labels weigh by the inverse of that, and
    the mean on the other items is the one that, with the weighted mean, gives the mean on all
    (Zrnic & Candès 2024, arXiv 2403.03208).

    Three terms are ours: lambda shrinks by ``groups / (groups + 2)``; the interval is Wilson's at
    the effective number of labels over the ``variance_ratio``; and where that ratio is not below 1,
    lambda is 0 and the interval is that of the labels alone.
    """
    labelled, starts = cells.represented, cells.starts
    if cells.probabilities is not None and starts is None:
        starts = np.arange(labelled.shape[-1])  # unequal weights widen the interval as groups do
    num_labels = cells.labelled.sum(axis=-1)
    share = ratio(labelled, labelled.sum(axis=-1)[..., None])
    others = cells.counts - num_labels[..., None] * share
    least = 1.0 if cells.probabilities is None else 0.0
    alone, effective = labels_alone(cells.human_or_zero, labelled, starts, least)
    groups = labelled.sum(axis=-1)
    if starts is not None:
        groups = np.sum(_group_sums(labelled, starts) > 0, axis=-1).astype(np.float64)
    gap = _mean(cells.judge, labelled) - _mean(cells.judge, others)
    of_human = _influence(cells.human_or_zero, labelled, cells.counts)
    of_gap = _influence(cells.judge, labelled, cells.counts)
    of_gap = of_gap - _influence(cells.judge, others, cells.counts)
    human_variance = _moment(of_human, of_human, cells.counts, starts)
    covariance = _moment(of_human, of_gap, cells.counts, starts)
    gap_variance = _moment(of_gap, of_gap, cells.counts, starts)

    explained = np.nan_to_num(ratio(covariance**2, human_variance * gap_variance))
    remaining = variance_ratio(explained, alone.value, effective, groups)
    helps = (remaining < 1) & (cells.unlabelled.sum(axis=-1) > 0)
    best = np.nan_to_num(ratio(covariance, gap_variance))
    power = np.where(helps, best * _shrinkage(groups), 0)
    value = np.where(helps, np.clip(alone.value - power * np.nan_to_num(gap), 0, 1), alone.value)
    bounds = wilson_bounds(value, effective / np.where(helps, remaining, 1))
    return PpiEstimate(Rates(value, *bounds), power, alone)


def _mean(values: Floats, counts: Floats) -> Floats:
    return ratio(np.sum(values * counts, axis=-1), counts.sum(axis=-1))


def _influence(values: Floats, weights: Floats, counts: Floats) -> Floats:
    """Compute how far one item of each cell moves the mean by ``weights``. Shapes ``[..., K]``."""
    deviation = (values - _mean(values, weights)[..., None]) * ratio(weights, counts)
    return np.nan_to_num(ratio(deviation, weights.sum(axis=-1)[..., None]))


def _moment(first: Floats, second: Floats, counts: Floats, starts: Ints | None) -> Floats:
    """Sum over groups the product of the groups' sums."""
    if starts is None:
        return np.asarray(np.sum(counts * first * second, axis=-1))
    first, second = (_group_sums(counts * each, starts) for each in (first, second))
    return np.asarray(np.sum(first * second, axis=-1))


def _group_sums(values: Floats, starts: Ints) -> Floats:
    return np.asarray(np.add.reduceat(values, starts, axis=-1))


def _shrinkage(groups: Floats) -> Floats:
    return groups / (groups + 2)
