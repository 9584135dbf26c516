"""Pairwise verdicts against people: TruthfulJudge's five measures (its section 5.4).

A label is ``A``, ``B`` or, for a tie, ``None`` (a string; Python's ``None`` is no label at all).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special

from evaluation import metrics
from evaluation.estimate import Draws
from evaluation.intervals import RESAMPLES, Floats
from evaluation.measure import METRICS, Metric, Tally, summarise
from evaluation.outcomes import Outcomes, gather, number_off
from judging.errors import CustosError
from judging.types import LabelledExample, Verdict

PAIR_LABELS = ("A", "B", "None")
A, B, TIE = range(3)
WINNERS = np.array([A, B])

_HALF_CREDIT = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.5, 0.5, 1.0]])


def _winner_rows(confusion: Floats) -> Floats:
    return np.asarray(confusion[..., WINNERS, :].sum(axis=(-2, -1)))


def accuracy_ties_excluded(confusion: Floats) -> Floats:
    """Among pairs with a human winner, the share where the judge names it.

    Pairs that people tied are left out; a tie by the judge is wrong. Shapes ``[..., 3, 3]`` to
    ``[...]``, rows people.
    """
    named = confusion[..., A, A] + confusion[..., B, B]
    return metrics.ratio(named, _winner_rows(confusion))


def accuracy_ties_half(confusion: Floats) -> Floats:
    """Mean credit over all pairs: 1 for agreement, a half where one side ties, 0 for a reversal.

    Shapes as ``accuracy_ties_excluded``.
    """
    credit = (confusion * _HALF_CREDIT).sum(axis=(-2, -1))
    return metrics.ratio(credit, confusion.sum(axis=(-2, -1)))


def loser_rate(confusion: Floats) -> Floats:
    """Our false-positive rate: among pairs with a human winner, the share won by the loser.

    The paper words its own as the share of incorrect contender answers that the judge accepts,
    and its figures lie near one minus accuracy; the two are not to be compared. Ours, accuracy with
    ties excluded and the judge's tie rate on the same pairs add up to 1. Shapes as
    ``accuracy_ties_excluded``.
    """
    reversed_ = confusion[..., A, B] + confusion[..., B, A]
    return metrics.ratio(reversed_, _winner_rows(confusion))


PAIR_METRICS: Mapping[str, Metric] = {
    "accuracy_ties_counted": METRICS["accuracy"],
    "accuracy_ties_excluded": Metric(
        lambda tally: accuracy_ties_excluded(tally.confusion),
        lambda tally: _winner_rows(tally.confusion),
        is_rate=True,
    ),
    "accuracy_ties_half": Metric(
        lambda tally: accuracy_ties_half(tally.confusion), lambda tally: tally.scored, is_rate=True
    ),
    "kappa": METRICS["kappa"],
    "fpr_ours": Metric(
        lambda tally: loser_rate(tally.confusion),
        lambda tally: _winner_rows(tally.confusion),
        is_rate=True,
    ),
    "ece_model": METRICS["ece"],
    "coverage": METRICS["coverage"],
}


def measure_pairs(
    examples: Sequence[LabelledExample],
    verdicts: Sequence[Verdict],
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, dict[str, Any]]:
    """Compare pairwise verdicts with people; questions (or groups) are resampled.

    All but ``coverage`` are over the pairs the judge gave a label. Cohen's kappa is over the three
    labels; both calibration errors are against agreement with ties counted.

    Args:
        examples: What people said.
        verdicts: What the judge said, one per example in the same order.
        resamples: Bootstrap resamples.
        seed: Their seed.

    Returns:
        ``accuracy_ties_counted`` (a tie is a label like the others), ``accuracy_ties_excluded``,
        ``accuracy_ties_half``, ``kappa``, ``fpr_ours``, ``ece_model``, ``ece_stated`` and
        ``coverage``, each with ``value``, ``low``, ``high`` and ``n``.

    Raises:
        CustosError: If a label is none of the three, or examples and verdicts do not line up.
    """
    outcomes = gather_pairs(examples, verdicts)
    tally = Tally.of(outcomes)
    drawn = tally.resampled(resamples, seed)
    measured = {name: summarise(metric, tally, drawn) for name, metric in PAIR_METRICS.items()}
    measured["ece_stated"] = _stated_calibration(outcomes, verdicts, resamples, seed)
    return measured


def gather_pairs(examples: Sequence[LabelledExample], verdicts: Sequence[Verdict]) -> Outcomes:
    """Line up pairs as arrays over ``PAIR_LABELS``.

    Raises:
        CustosError: If a label is none of the three, an example has one response only, or examples
            and verdicts do not line up.
    """
    records: tuple[LabelledExample | Verdict, ...] = (*examples, *verdicts)
    for record in records:
        if record.label is not None and record.label not in PAIR_LABELS:
            side = "example" if isinstance(record, LabelledExample) else "verdict"
            raise CustosError(
                f"{side} '{record.id}': label '{record.label}' is not one of "
                f"{', '.join(PAIR_LABELS)}: only pairwise verdicts can be measured here"
            )
    for example in examples:
        if len(example.responses) != 2:
            raise CustosError(f"example '{example.id}': has one response, a pair has two")
    return gather(examples, verdicts, PAIR_LABELS)


def self_consistency(
    runs: Sequence[Sequence[str | None]],
    groups: Sequence[Hashable],
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Any]:
    """Mean entropy, in nats, of the labels that k sampled runs give an item.

    0 when every run repeats itself, ``log(min(k, 3))`` at most with three labels. The entropy is of
    the observed shares, so it grows with ``k``: compare figures of the same ``k`` (the paper's is
    5, at temperature .7 and top_p .95; it states no unit). An item that any run left without a
    label (``None``) is left out.

    Args:
        runs: Labels by item, then run. Shape ``[n][k]``.
        groups: Question (or group) of each item; resampled together. Length ``n``.
        resamples: Bootstrap resamples.
        seed: Their seed.

    Returns:
        ``value``, ``low``, ``high``, ``n`` (items with all labels) and ``runs`` (k).

    Raises:
        CustosError: If there are no items, or they do not all have the same two or more runs.
    """
    sizes = sorted({len(labels) for labels in runs})
    if len(sizes) != 1 or sizes[0] < 2:
        raise CustosError(
            f"runs per item: {sizes or 'none'}: give every item the same number, at least two"
        )
    index = {label: i for i, label in enumerate(dict.fromkeys(x for item in runs for x in item))}
    counts = np.zeros((len(runs), len(index)))
    for row, labels in enumerate(runs):
        np.add.at(counts[row], [index[label] for label in labels], 1)
    complete = np.array([None not in labels for labels in runs])
    entropy = special.entr(counts / sizes[0]).sum(axis=1)
    columns = np.stack([np.where(complete, entropy, 0), complete], axis=1)
    draws = Draws.of(columns, number_off(groups), resamples, seed)
    mean = draws.estimate(lambda sums: metrics.ratio(sums[..., 0], sums[..., 1]), complete.sum())
    return {**mean, "runs": sizes[0]}


def _stated_calibration(
    outcomes: Outcomes, verdicts: Sequence[Verdict], resamples: int, seed: int
) -> dict[str, Any]:
    said = [verdict.stated_confidence for verdict in verdicts]
    confidence = np.array([np.nan if value is None else value for value in said])
    stated = replace(outcomes, confidence=np.where(outcomes.scored, confidence, np.nan))
    tally = Tally.of(stated)
    return summarise(METRICS["ece"], tally, tally.resampled(resamples, seed))
