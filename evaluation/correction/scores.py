"""Judge-corrected scores: the rate people would give, from a judge and some of people's labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from evaluation.correction.intervals import Cells, Rates, labels_alone, ppi_plus_plus
from evaluation.intervals import Floats, Ints
from evaluation.metrics import ratio
from judging.errors import CustosError

SAMPLING_PROBABILITY = "sampling_probability"
"""Field of a labelled row: the probability with which it was drawn for people."""


class Rate(NamedTuple):
    """A rate with its 95 % interval and the number of items that it was counted on."""

    value: float
    low: float
    high: float
    n: int


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

    def __init__(self) -> None:
        super().__init__(
            "not corrected: nobody said how the labelled items were picked, and doubtful or first "
            "ones differ from the rest; say --random-sample if every item was as likely, or give "
            "the sampling_probability of each, which custos review --rows writes"
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

    All rates are over the questions that the items are a sample of.
    ``python -m experiments interval_coverage`` measures how often the intervals hold the truth.

    Args:
        judge: The judge's label of every item, 0 or 1, or its probability of 1. Shape ``[N]``.
        human: People's label, 0 or 1, or any number between, such as a squared error: the interval
            is then wider than it need be; nan where nobody labelled. Shape ``[N]``.
        random_sample: Whether every item was equally likely to be labelled.
        probabilities: Probability with which each labelled item was drawn for people, every item
            having had one above 0; those of other items are not looked at. Where chance alone left
            out a part of the drawn ones, the same probabilities hold. Shape ``[N]``.
        groups: Items that share a question or an image are not independent: the group of each, any
            integers. Shape ``[N]``. ``None``: all items are independent.

    Raises:
        CustosError: If the labels are not as above, people labelled items of fewer than two groups,
            or (:class:`UnknownSampling`) neither argument says how the labelled items were drawn
            and some are not labelled.
    """
    judge, human = np.asarray(judge, dtype=np.float64), np.asarray(human, dtype=np.float64)
    _check(judge, human, groups)
    is_labelled = ~np.isnan(human)
    if probabilities is not None:
        probabilities = np.where(is_labelled, probabilities, np.nan)
        wrong = np.flatnonzero(is_labelled & ~((probabilities > 0) & (probabilities <= 1)))
        if len(wrong):
            raise CustosError(
                f"item {wrong[0]}: was labelled, and its sampling probability is "
                f"{probabilities[wrong[0]]}, not above 0 and at most 1"
            )
        if np.ptp(probabilities[is_labelled]) == 0:
            probabilities = None
    elif not random_sample and not is_labelled.all():
        raise UnknownSampling
    cells = _cells(judge, human, groups, probabilities)
    tuned = ppi_plus_plus(cells)
    labels, weights = int(is_labelled.sum()), cells.represented
    hits, rest = weights * cells.human_or_zero, weights * (1 - cells.human_or_zero)
    return CorrectedRate(
        "ppi++" if probabilities is None else "weighted ppi++",
        _rate(tuned.rates, labels),
        _rate(labels_alone(cells.judge, cells.counts, cells.starts)[0], len(judge)),
        _rate(tuned.alone, labels),
        float(tuned.power),
        float(ratio(np.sum(hits * cells.judge, axis=-1), hits.sum(axis=-1))),
        1 - float(ratio(np.sum(rest * cells.judge, axis=-1), rest.sum(axis=-1))),
    )


def _check(judge: Floats, human: Floats, groups: Ints | None) -> None:
    if judge.ndim != 1 or human.shape != judge.shape:
        raise CustosError(
            f"one label per item is needed: the judge's have shape {judge.shape}, people's "
            f"{human.shape}; mark items without a human label with nan"
        )
    if groups is not None and np.shape(groups) != judge.shape:
        raise CustosError(f"{np.size(groups)} groups for {len(judge)} items; name one per item")
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


def _cells(
    judge: Floats, human: Floats, groups: Ints | None, probabilities: Floats | None
) -> Cells:
    counts = np.ones_like(judge)
    if groups is None:
        return Cells(judge, human, counts, probabilities=probabilities)
    order = np.argsort(groups, kind="stable")
    starts = np.unique(groups[order], return_index=True)[1]
    drawn = None if probabilities is None else probabilities[order]
    return Cells(judge[order], human[order], counts, starts, drawn)


def _rate(rates: Rates, n: int) -> Rate:
    return Rate(float(rates.value), float(rates.low), float(rates.high), n)
