"""Judge-corrected scores: the rate people would give, from a judge and some of people's labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from evaluation.correction.intervals import Cells, Rates, labels_alone, plug_in, ppi_plus_plus
from evaluation.intervals import Floats, Ints
from judging.errors import CustosError


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
        method: ``ppi++`` if the labelled items are a random sample of all, else ``plug-in``.
        corrected: Estimated rate of people's labels; ``n`` is the number of labelled items.
        raw: The judge's rate over all items, without a correction.
        labelled: Rate of people's labels without the judge. ``None`` for ``plug-in``: it says
            little about all items where the subset is no random sample.
        power: PPI++'s lambda, the weight of the judge. At 0 the judge would only add noise, and
            ``corrected`` is ``labelled``. ``None`` for ``plug-in``.
        sensitivity: The judge's mean on items that people called 1; nan without any.
        specificity: 1 less its mean on items that people called 0; nan without any.
    """

    method: Literal["ppi++", "plug-in"]
    corrected: Rate
    raw: Rate
    labelled: Rate | None
    power: float | None
    sensitivity: float
    specificity: float


def corrected_rate(
    judge: Floats, human: Floats, *, random_sample: bool, groups: Ints | None = None
) -> CorrectedRate:
    """Estimate the rate that people's labels would have if they had labelled every item.

    All rates are over the questions that the items are a sample of.
    ``python -m experiments interval_coverage`` measures how often the intervals hold the truth.

    Args:
        judge: The judge's label of every item, 0 or 1, or its probability of 1. Shape ``[N]``.
        human: People's label, 0 or 1; nan where nobody labelled. With a random sample it may be any
            number between, such as a squared error: the interval is then wider than it need be.
            Shape ``[N]``.
        random_sample: Whether the labelled items are a random sample of the ``N``. Otherwise the
            judge must err on them as it does on the other items of the same human label.
        groups: Items that share a question or an image are not independent: the group of each, any
            integers. Shape ``[N]``. ``None``: all items are independent.

    Raises:
        CustosError: If the labels are not as above, people labelled items of fewer than two groups,
            or the plug-in estimate does not exist: no labelled 0 or no labelled 1, sensitivity +
            specificity <= 1, or a raw rate that the two cannot produce.
    """
    judge, human = np.asarray(judge, dtype=np.float64), np.asarray(human, dtype=np.float64)
    _check(judge, human, groups, fractions=random_sample)
    cells = _cells(judge, human, groups)
    by_errors = plug_in(cells)
    sensitivity, specificity = float(by_errors.sensitivity), float(by_errors.specificity)
    raw = _rate(labels_alone(cells.judge, cells.counts, cells.starts)[0], len(judge))
    labels = int(cells.labelled.sum())
    if random_sample:
        tuned = ppi_plus_plus(cells)
        return CorrectedRate(
            "ppi++",
            _rate(tuned.rates, labels),
            raw,
            _rate(tuned.alone, labels),
            float(tuned.power),
            sensitivity,
            specificity,
        )
    if np.isnan(by_errors.rates.value):
        raise CustosError(_refusal(sensitivity, specificity, raw.value))
    corrected = _rate(by_errors.rates, labels)
    return CorrectedRate("plug-in", corrected, raw, None, None, sensitivity, specificity)


def _check(judge: Floats, human: Floats, groups: Ints | None, *, fractions: bool) -> None:
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
    allowed = (human >= 0) & (human <= 1) if fractions else (human == 0) | (human == 1)
    wrong = np.flatnonzero(~(np.isnan(human) | allowed))
    if len(wrong):
        expected = "nan or a number from 0 to 1" if fractions else "0, 1 or nan"
        raise CustosError(f"item {wrong[0]}: people's label is {human[wrong[0]]}, not {expected}")
    labelled = np.flatnonzero(~np.isnan(human))
    independent = len(labelled if groups is None else np.unique(groups[labelled]))
    if independent < 2:
        raise CustosError(
            f"people labelled items of {independent} independent groups; an interval needs two"
        )


def _cells(judge: Floats, human: Floats, groups: Ints | None) -> Cells:
    counts = np.ones_like(judge)
    if groups is None:
        return Cells(judge, human, counts)
    order = np.argsort(groups, kind="stable")
    starts = np.unique(groups[order], return_index=True)[1]
    return Cells(judge[order], human[order], counts, starts)


def _rate(rates: Rates, n: int) -> Rate:
    return Rate(float(rates.value), float(rates.low), float(rates.high), n)


def _refusal(sensitivity: float, specificity: float, raw: float) -> str:
    """Explain why the plug-in estimate does not exist, and what to do."""
    if np.isnan(sensitivity + specificity):
        return (
            "the plug-in estimate needs items that people called 1 and items that they called 0; "
            "label more, or label a random sample of the items"
        )
    rates = f"sensitivity {sensitivity:.3f} and specificity {specificity:.3f}"
    if sensitivity + specificity <= 1:
        return (
            f"the judge's {rates} sum to 1 or less: its labels say nothing about people's; "
            "use another judge, or label a random sample of the items"
        )
    return (
        f"the judge's {rates} cannot give its rate of {raw:.3f} over all items: its errors on the "
        "labelled items differ from those on the others; label a random sample of the items"
    )
