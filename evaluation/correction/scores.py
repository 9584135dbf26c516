"""Judge-corrected rates: what people would say of all items, from a judge and some of their labels.

Items are a sample of the questions that could have been asked. The rate that is meant is the one
over all of those, so that an interval has some width even when every item is labelled.

Some terms for small samples are our own and in no paper; the docstrings say which.
``docs/experiments.md`` says how often the intervals hold the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from evaluation.intervals import (
    Floats,
    Ints,
    Mask,
    cluster_sums,
    clustered_rate,
    design,
    design_bounds,
    ratio,
    wilson_bounds,
)
from judging.errors import CustosError

SAMPLING_PROBABILITY = "sampling_probability"
"""Field of a labelled row: the probability with which it was drawn for people."""


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
    groups: Ints,
    random_sample: bool = False,
    probabilities: Floats | None = None,
) -> CorrectedRate:
    """Estimate the rate that people's labels would have if they had labelled every item.

    All rates are over the questions that the items are a sample of. The rate among the labels is
    moved by lambda times the difference of the judge's mean on the other items and on the labelled
    ones. Lambda minimises the cluster-robust variance on the same items (PPI++, Angelopoulos, Duchi
    & Zrnic 2023, arXiv 2311.01453). To first order the estimate is unbiased whatever the judge's
    errors.

    Where some items were likelier to be drawn than others, labels weigh by the inverse of that, and
    the mean on the other items is the one that, with the weighted mean, gives the mean on all
    (Zrnic & Candès 2024, arXiv 2403.03208).

    Three terms are ours: lambda shrinks by ``groups / (groups + 2)``; the interval is Wilson's at
    the effective number of labels over the :func:`variance_ratio`; and where that ratio is not
    below 1, lambda is 0 and the interval is that of the labels alone.

    Raise ``CustosError`` if the labels are not as below, people labelled items of fewer than two
    groups, or (:class:`UnknownSampling`) some are not labelled and neither argument says how the
    labelled ones were drawn, or every probability is 1.

    Args:
        judge: The judge's label of every item, 0 or 1, or its probability of 1. Shape ``[N]``.
        human: People's label, 0 or 1, or any number between, such as a squared error: the interval
            is then wider than it need be; nan where nobody labelled. Shape ``[N]``.
        groups: Group of each item, any integers: items that share a question or an image are not
            independent. Shape ``[N]``.
        random_sample: Whether every item was equally likely to be labelled. With probabilities:
            whether chance alone left out a part of the drawn ones.
        probabilities: Probability with which each labelled item was drawn for people, every item
            having had one above 0; those of other items are not looked at. Where chance alone left
            out a part of the drawn ones, the same probabilities hold, unless all are 1: that says
            that none was left out. Shape ``[N]``.
    """
    judge, human = np.asarray(judge, dtype=np.float64), np.asarray(human, dtype=np.float64)
    _check(judge, human, groups)
    is_labelled, people = ~np.isnan(human), np.nan_to_num(human)
    if probabilities is not None:
        probabilities = unequal_probabilities(probabilities, is_labelled, random_sample)
    elif not random_sample and not is_labelled.all():
        raise UnknownSampling
    weights, labels = label_weights(is_labelled, probabilities), int(is_labelled.sum())
    others = 1 - labels * weights / weights.sum()
    of_people = _influence(people, weights)
    of_gap = _influence(judge, weights) - _influence(judge, others)
    columns = np.stack([people * weights, weights, of_people, of_gap], axis=1)
    hits, sizes, of_people, of_gap = cluster_sums(columns, groups).T
    alone, size = _mean(people, weights), np.asarray(sizes.sum())
    # Unequal weights may help, too.
    found = design(hits, sizes, least=1.0 if probabilities is None else 0.0)
    low, high, effective = design_bounds(alone, size, found)
    labelled = Rate(float(alone), float(low), float(high), labels)

    covariance, gap_variance = of_people @ of_gap, of_gap @ of_gap
    explained = np.nan_to_num(ratio(covariance**2, (of_people @ of_people) * gap_variance))
    labelled_groups = np.asarray(np.sum(sizes > 0), dtype=np.float64)
    remaining = variance_ratio(explained, alone, effective, labelled_groups)
    corrected, power = labelled, 0.0
    if remaining < 1 and not is_labelled.all():
        power = float(np.nan_to_num(ratio(covariance, gap_variance)) * _shrinkage(labelled_groups))
        gap = np.nan_to_num(_mean(judge, weights) - _mean(judge, others))
        value = np.clip(alone - power * gap, 0, 1)
        low, high = wilson_bounds(value, effective / remaining)
        corrected = Rate(float(value), float(low), float(high), labels)
    return CorrectedRate(
        "ppi++" if probabilities is None else "weighted ppi++",
        corrected,
        raw_rate(judge, groups),
        labelled,
        power,
        float(_mean(judge, weights * people)),
        1 - float(_mean(judge, weights * (1 - people))),
    )


def raw_rate(values: Floats, clusters: Ints) -> Rate:
    """Estimate a rate of items, 0 to 1, that are alike within clusters. Shapes ``[n]``."""
    return Rate(float(values.mean()), *clustered_rate(values, clusters), len(values))


def label_weights(is_labelled: Mask, probabilities: Floats | None) -> Floats:
    """Weigh each labelled item by how much it stands for, by inverse probability. Shape ``[N]``.

    The sum is the number of labels, or fewer where probabilities differ: as many as would give the
    variance if they were equal (Kish 1965).
    """
    weights = is_labelled.astype(np.float64)
    if probabilities is not None:
        weights = np.nan_to_num(weights / probabilities)
        weights *= weights.sum() / np.sum(weights**2)
    return weights


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


def _check(judge: Floats, human: Floats, groups: Ints) -> None:
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
    independent = len(np.unique(groups[~np.isnan(human)]))
    if independent < 2:
        raise CustosError(
            f"people labelled items of {independent} independent groups; an interval needs two"
        )


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


def _mean(values: Floats, weights: Floats) -> Floats:
    return ratio(np.asarray(np.sum(values * weights)), weights.sum())


def _influence(values: Floats, weights: Floats) -> Floats:
    """Compute how far each item moves the mean by ``weights``. Shape ``[N]``."""
    return np.nan_to_num(ratio((values - _mean(values, weights)) * weights, weights.sum()))


def _shrinkage(groups: Floats) -> Floats:
    return groups / (groups + 2)
