"""Pairwise verdicts against people's labels: TruthfulJudge's measures (section 5.4), order, length.

A label is ``A``, ``B`` or, for a tie, the string ``None``. Python's ``None`` means no label. A pass
of a verdict names the responses as it saw them: in a swapped pass ``A`` is the response shown
first, which is the pair's second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy import special

from evaluation.calibration_error import calibration_error, equal_mass_bins, equal_width_bins
from evaluation.estimate import Draws, mean, share, share_of_columns
from evaluation.intervals import Floats, Ints, number_clusters, ratio, sign_flip_p
from evaluation.measure import METRICS, Metric, TallyDraws
from evaluation.metrics import UNSCORED
from evaluation.outcomes import gather
from judging.types import LabelledExample, Pass, Verdict

Order = Literal["given", "swapped"]
PAIR_LABELS = ("A", "B", "None")
A, B, TIE = range(3)
WINNERS = np.array([A, B])
_HALF_CREDIT = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.5, 0.5, 1.0]])
_CREDIT_OF_A = np.array([1.0, 0.0, 0.5])
"""Worth of each pair label to response A: a win, a loss, half a win."""
_mean_difference = partial(mean, bounds=(-1.0, 1.0), is_difference=True)


def _pairs_with_winner(confusion: Floats) -> Floats:
    """Count the pairs on which people name a winner. Shape ``[...]``."""
    return np.asarray(confusion[..., WINNERS, :].sum(axis=(-2, -1)))


def accuracy_ties_excluded(confusion: Floats) -> Floats:
    """Compute, of the pairs with a human winner, the share on which the judge names it.

    A tie by the judge is wrong. Shapes ``[..., 3, 3]`` (``PAIR_LABELS``, rows people) to ``[...]``.
    """
    named = confusion[..., A, A] + confusion[..., B, B]
    return ratio(named, _pairs_with_winner(confusion))


def accuracy_ties_half(confusion: Floats) -> Floats:
    """Average the credit of pairs: 1 for agreement, 0 for a reversal, a half if one side ties."""
    credit = (confusion * _HALF_CREDIT).sum(axis=(-2, -1))
    return ratio(credit, confusion.sum(axis=(-2, -1)))


def loser_rate(confusion: Floats) -> Floats:
    """Compute the share of pairs with a human winner on which the judge names the loser.

    It is our false-positive rate, and cannot be compared with the paper's, which is of incorrect
    contender answers that the judge accepts and lies near one minus accuracy.
    """
    reversals = confusion[..., A, B] + confusion[..., B, A]
    return ratio(reversals, _pairs_with_winner(confusion))


def _of_winners(rate: Callable[[Floats], Floats]) -> Metric:
    return Metric(
        lambda tally: rate(tally.confusion),
        lambda tally: _pairs_with_winner(tally.confusion),
        is_rate=True,
    )


PAIR_METRICS: Mapping[str, Metric] = {
    "accuracy_ties_counted": METRICS["accuracy"],
    "accuracy_ties_excluded": _of_winners(accuracy_ties_excluded),
    "accuracy_ties_half": Metric(lambda tally: accuracy_ties_half(tally.confusion), is_rate=True),
    "kappa": METRICS["kappa"],
    "fpr_ours": _of_winners(loser_rate),
}


def measure_pairs(
    examples: Sequence[LabelledExample], verdicts: Sequence[Verdict], seed: int = 0
) -> dict[str, dict[str, Any]]:
    """Compare pairwise verdicts with people's labels; questions (or groups) are resampled.

    There are the figures of :data:`PAIR_METRICS` and ``coverage``, and calibration errors against
    agreement with ties counted (``accuracy_ties_counted``): ``ece_model``, ``ece_stated`` and
    ``ece_stated_equal_width``. That of a published judge is of the confidence that it states, so
    the bins of the last are those of Guo et al. (2017), which the paper cites.
    """
    outcomes = gather(examples, verdicts, PAIR_LABELS)
    draws = TallyDraws.of(outcomes, seed)
    in_words = [verdict.stated_confidence for verdict in verdicts]
    stated = np.array([np.nan if value is None else value for value in in_words])
    stated = np.where(outcomes.scored, stated, np.nan)
    return {
        **{name: draws.estimate(metric) for name, metric in PAIR_METRICS.items()},
        **{
            name: calibration_error(
                confidence, outcomes.right, outcomes.clusters, binning=binning, seed=seed
            )
            for name, confidence, binning in (
                ("ece_model", outcomes.confidence, equal_mass_bins),
                ("ece_stated", stated, equal_mass_bins),
                ("ece_stated_equal_width", stated, equal_width_bins),
            )
        },
        "coverage": draws.estimate(METRICS["coverage"]),
    }


def self_consistency(
    runs: Sequence[Sequence[str | None]], groups: Sequence[Hashable]
) -> dict[str, Any]:
    """Average the entropy, in nats, of the labels that k sampled runs give an item.

    The entropy is that of the observed shares, so that it grows with ``k``: compare figures of the
    same ``k`` only. The paper's is 5, at temperature .7 and top_p .95; it states no unit. An item
    that any run left without a label (``None``) is left out. Labels are by item, then run:
    ``[n][k]``; items of one group are resampled together. All have the same two or more runs.
    """
    k = len(runs[0])
    index = {label: i for i, label in enumerate(dict.fromkeys(x for item in runs for x in item))}
    counts = np.zeros((len(runs), len(index)))
    for row, labels in enumerate(runs):
        np.add.at(counts[row], [index[label] for label in labels], 1)
    complete = np.array([None not in labels for labels in runs])
    entropy = special.entr(counts / k).sum(axis=1)
    clusters = number_clusters(groups)
    bounds = (0.0, math.log(k))  # all runs differ
    return {**mean(entropy, complete, clusters, bounds=bounds), "runs": k}


def mapped_back(judge_pass: Pass) -> dict[str, float]:
    """Map the posterior of a pass back to the pair's own letters."""
    if judge_pass.order == "given":
        return judge_pass.posterior
    swapped = {"A": "B", "B": "A"}
    return {swapped.get(label, label): value for label, value in judge_pass.posterior.items()}


def preferred(posterior: Mapping[str, float]) -> int:
    """Find the index of the likeliest pair label; a tie where ``A`` and ``B`` are equal."""
    a, b, tie = (posterior.get(label, 0.0) for label in ("A", "B", "None"))
    if a == b or tie >= max(a, b):
        return TIE
    return A if a > b else B


def order_posteriors(verdicts: Sequence[Verdict], order: Order) -> list[dict[str, float] | None]:
    """Read the posterior of each verdict's only pass in one order, in the pair's own letters."""
    posteriors = []
    for verdict in verdicts:
        passes = [judge_pass for judge_pass in verdict.passes if judge_pass.order == order]
        is_readable = len(passes) == 1 and passes[0].posterior
        posteriors.append(mapped_back(passes[0]) if is_readable else None)
    return posteriors


def order_effects(
    examples: Sequence[LabelledExample], verdicts: Sequence[Verdict], seed: int = 0
) -> dict[str, Any]:
    """Measure what the order of presentation does, and what judging both orders gains.

    A bias is the share of pairs that the judge gives to the response shown first, ties half, minus
    the share that people give to the same response. It is over the pairs with a pass in that order;
    everything else is over the pairs with a pass in each order. A merged label is that of the mean
    posterior of the two orders. Posteriors are as they were before calibration, so that the gain is
    that of merging alone.

    These have ``value``, ``low``, ``high`` and ``n``: ``bias`` (``given``, ``swapped``, and
    ``both``, their mean over the pairs that have both, in which people's preferences cancel);
    ``flip_rate``, the share of pairs on which the two orders disagree, a change to or from a tie
    included; ``accuracy`` with ties counted (``given``, ``swapped``, ``merged``); and
    ``merged_minus_given``. ``test`` is between the given order alone and both merged
    (``only_given_right``, ``only_merged_right``, ``p`` by ``intervals.sign_flip_p``).
    """
    outcomes = gather(examples, verdicts, PAIR_LABELS)
    human = outcomes.human
    in_given = order_posteriors(verdicts, "given")
    in_swapped = order_posteriors(verdicts, "swapped")
    given, swapped = _labels(in_given), _labels(in_swapped)
    merged = _labels([a and b and _merge(a, b) for a, b in zip(in_given, in_swapped, strict=True)])
    both = merged != UNSCORED
    clusters, draw = outcomes.clusters, (outcomes.clusters, seed)
    # The pair's second response is shown first when swapped, so its surplus is minus A's.
    given_bias, swapped_bias = surplus_of_a(given, human), -surplus_of_a(swapped, human)
    right = {"given": given == human, "swapped": swapped == human, "merged": merged == human}
    gain = right["merged"].astype(np.float64) - right["given"]
    only_given = int((right["given"] & ~right["merged"] & both).sum())
    only_merged = int((right["merged"] & ~right["given"] & both).sum())
    return {
        "bias": {
            "given": _mean_difference(given_bias, given != UNSCORED, *draw),
            "swapped": _mean_difference(swapped_bias, swapped != UNSCORED, *draw),
            "both": _mean_difference((given_bias + swapped_bias) / 2, both, *draw),
        },
        "flip_rate": share(given != swapped, both, clusters),
        "accuracy": {name: share(hits, both, clusters) for name, hits in right.items()},
        "merged_minus_given": _mean_difference(gain, both, *draw),
        "test": {
            "only_given_right": only_given,
            "only_merged_right": only_merged,
            "p": sign_flip_p(gain[both], clusters[both]),
        },
    }


def surplus_of_a(labels: Ints, human: Ints) -> Floats:
    """Subtract people's credit for response A from the labels' credit for it. Shape ``[n]``."""
    return np.asarray(_CREDIT_OF_A[labels] - _CREDIT_OF_A[human])


def _labels(posteriors: Sequence[Mapping[str, float] | None]) -> Ints:
    """Choose label indices by ``preferred``, ``UNSCORED`` without a posterior. Shape ``[n]``."""
    return np.array([UNSCORED if p is None else preferred(p) for p in posteriors])


def _merge(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    return {label: (first.get(label, 0.0) + second.get(label, 0.0)) / 2 for label in PAIR_LABELS}


def verbosity_effect(
    examples: Sequence[LabelledExample], verdicts: Sequence[Verdict], seed: int = 0
) -> dict[str, Any]:
    """Measure how far the judge leans to longer responses beyond people.

    Only scored pairs count whose responses differ in length (characters, without surrounding
    space).

    ``preference`` is the share of pairs given to the longer response, ties half, by the judge minus
    by people. ``longer_against_people`` is, among pairs where people chose the shorter, the share
    where the judge chose the longer; ``shorter_against_people`` the reverse, and ``difference`` the
    former minus the latter.
    """
    outcomes = gather(examples, verdicts, PAIR_LABELS)
    lengths = np.array([[len(text.strip()) for text in example.answers] for example in examples])
    uneven = outcomes.scored & (lengths[:, 0] != lengths[:, 1])
    a_is_longer = lengths[:, 0] > lengths[:, 1]
    longer, shorter = np.where(a_is_longer, A, B), np.where(a_is_longer, B, A)
    for_longer = np.where(a_is_longer, 1, -1) * surplus_of_a(outcomes.predicted, outcomes.human)
    people_shorter = uneven & (outcomes.human == shorter)
    people_longer = uneven & (outcomes.human == longer)
    judge_longer = people_shorter & (outcomes.predicted == longer)
    judge_shorter = people_longer & (outcomes.predicted == shorter)
    columns = np.stack([judge_longer, people_shorter, judge_shorter, people_longer], axis=1)
    draws = Draws.of(columns.astype(np.float64), outcomes.clusters, seed)
    too_long, too_short = share_of_columns(0, 1), share_of_columns(2, 3)
    return {
        "preference": _mean_difference(for_longer, uneven, outcomes.clusters, seed),
        "longer_against_people": draws.rate(too_long, lambda sums: sums[..., 1]),
        "shorter_against_people": draws.rate(too_short, lambda sums: sums[..., 3]),
        "difference": draws.estimate(
            lambda sums: too_long(sums) - too_short(sums),
            float((people_shorter | people_longer).sum()),
            (-1.0, 1.0),
            is_difference=True,
        ),
    }
