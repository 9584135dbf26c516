"""Pairwise verdicts against people's labels: TruthfulJudge's five measures (section 5.4).

A label is ``A``, ``B`` or, for a tie, the string ``None``. Python's ``None`` means no label.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special

from evaluation import metrics
from evaluation.calibration_error import calibration_error
from evaluation.estimate import mean
from evaluation.intervals import Floats, number_clusters
from evaluation.measure import METRICS, Metric, TallyDraws
from evaluation.outcomes import Outcomes, gather
from judging.errors import CustosError, FieldError
from judging.types import LabelledExample, Verdict

PAIR_LABELS = ("A", "B", "None")
A, B, TIE = range(3)
WINNERS = np.array([A, B])

_HALF_CREDIT = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.5, 0.5, 1.0]])


def _pairs_with_winner(confusion: Floats) -> Floats:
    """Return the number of pairs on which people name a winner. Shape ``[...]``."""
    return np.asarray(confusion[..., WINNERS, :].sum(axis=(-2, -1)))


def accuracy_ties_excluded(confusion: Floats) -> Floats:
    """Return, of the pairs with a human winner, the share on which the judge names it.

    Pairs that people tied are left out; a tie by the judge is wrong.

    Args:
        confusion: Over ``PAIR_LABELS``, rows people. Shape ``[..., 3, 3]``.

    Returns:
        Shape ``[...]``.
    """
    named = confusion[..., A, A] + confusion[..., B, B]
    return metrics.ratio(named, _pairs_with_winner(confusion))


def accuracy_ties_half(confusion: Floats) -> Floats:
    """Return the mean credit of all pairs; shapes as ``accuracy_ties_excluded``.

    A pair's credit is 1 for agreement, a half where one side ties, and 0 for a reversal.
    """
    credit = (confusion * _HALF_CREDIT).sum(axis=(-2, -1))
    return metrics.ratio(credit, confusion.sum(axis=(-2, -1)))


def loser_rate(confusion: Floats) -> Floats:
    """Return our false-positive rate; shapes as ``accuracy_ties_excluded``.

    It is the share of pairs with a human winner on which the judge names the loser. The paper
    defines its own rate as the share of incorrect contender answers that the judge accepts, and its
    figures lie near one minus accuracy: the two rates cannot be compared. Our rate, the accuracy
    with ties excluded and the judge's tie rate on the same pairs add up to 1.
    """
    reversals = confusion[..., A, B] + confusion[..., B, A]
    return metrics.ratio(reversals, _pairs_with_winner(confusion))


PAIR_METRICS: Mapping[str, Metric] = {
    "accuracy_ties_counted": METRICS["accuracy"],
    "accuracy_ties_excluded": Metric(
        lambda tally: accuracy_ties_excluded(tally.confusion),
        lambda tally: _pairs_with_winner(tally.confusion),
        is_rate=True,
    ),
    "accuracy_ties_half": Metric(
        lambda tally: accuracy_ties_half(tally.confusion), lambda tally: tally.scored, is_rate=True
    ),
    "kappa": METRICS["kappa"],
    "fpr_ours": Metric(
        lambda tally: loser_rate(tally.confusion),
        lambda tally: _pairs_with_winner(tally.confusion),
        is_rate=True,
    ),
}


def measure_pairs(
    examples: Sequence[LabelledExample], verdicts: Sequence[Verdict], seed: int = 0
) -> dict[str, dict[str, Any]]:
    """Compare pairwise verdicts with people's labels; questions (or groups) are resampled.

    All but ``coverage`` are over the pairs that the judge gave a label. Cohen's kappa is over the
    three labels. Calibration errors are against agreement with ties counted. That of a published
    judge is of the confidence that it states, so the bins of ``ece_stated_equal_width`` are those
    of Guo et al. (2017), which the paper cites.

    Args:
        examples: Pairs with people's labels.
        verdicts: The judge's verdicts, one per example in the same order.
        seed: Seed of the resamples.

    Returns:
        ``accuracy_ties_counted`` (a tie is a label like the others), ``accuracy_ties_excluded``,
        ``accuracy_ties_half``, ``kappa``, ``fpr_ours``, ``ece_model``, ``ece_stated``,
        ``ece_stated_equal_width`` and ``coverage``, each with ``value``, ``low``, ``high`` and
        ``n``; calibration errors with ``chance`` in place of an interval.

    Raises:
        CustosError: If a label is none of the three, or examples and verdicts do not line up.
    """
    outcomes = gather_pairs(examples, verdicts)
    draws = TallyDraws.of(outcomes, seed)
    stated = _with_stated_confidence(outcomes, verdicts)
    return {
        **{name: draws.estimate(metric) for name, metric in PAIR_METRICS.items()},
        **{
            name: calibration_error(
                of.confidence, of.right, of.clusters, binning=binning, seed=seed
            )
            for name, of, binning in (
                ("ece_model", outcomes, metrics.equal_mass_bins),
                ("ece_stated", stated, metrics.equal_mass_bins),
                ("ece_stated_equal_width", stated, metrics.equal_width_bins),
            )
        },
        "coverage": draws.estimate(METRICS["coverage"]),
    }


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
            raise FieldError(
                "label",
                f"'{record.label}' is not one of {', '.join(PAIR_LABELS)}: only pairwise verdicts "
                "can be measured here",
                f"{side} '{record.id}'",
            )
    for example in examples:
        if len(example.responses) != 2:
            fault = f"a pair has two, this has {len(example.responses)}"
            raise FieldError("responses", fault, f"example '{example.id}'")
    return gather(examples, verdicts, PAIR_LABELS)


def self_consistency(
    runs: Sequence[Sequence[str | None]], groups: Sequence[Hashable]
) -> dict[str, Any]:
    """Return the mean entropy, in nats, of the labels that k sampled runs give an item.

    It is 0 when every run gives the same label, and ``log(min(k, 3))`` at most with three labels.
    The entropy is that of the observed shares, so that it grows with ``k``: compare figures of the
    same ``k`` only. The paper's is 5, at temperature .7 and top_p .95; it states no unit. An item
    that any run left without a label (``None``) is left out.

    Args:
        runs: Labels by item, then run. Shape ``[n][k]``.
        groups: Question (or group) of each item; resampled together. Length ``n``.

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
    clusters = number_clusters(groups)
    return {**mean(entropy, complete, clusters), "runs": sizes[0]}


def _with_stated_confidence(outcomes: Outcomes, verdicts: Sequence[Verdict]) -> Outcomes:
    """Replace the model's confidences by those that the judge stated in words."""
    stated = [verdict.stated_confidence for verdict in verdicts]
    confidence = np.array([np.nan if value is None else value for value in stated])
    return replace(outcomes, confidence=np.where(outcomes.scored, confidence, np.nan))
