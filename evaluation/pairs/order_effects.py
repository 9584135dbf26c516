"""The effect of the order of two responses on a judge's verdicts.

Measured on verdicts that hold one pass per order. A pass names the responses as it saw them: in a
swapped pass ``A`` is the response shown first, which is the pair's second. ``mapped_back`` turns
that into the pair's own letters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from evaluation.estimate import mean, share
from evaluation.intervals import Floats, Ints, sign_flip_p
from evaluation.metrics import UNSCORED
from evaluation.pairs.agreement import PAIR_LABELS, TIE, A, B, gather_pairs
from judging.types import LabelledExample, Pass, Verdict

Order = Literal["given", "swapped"]

_CREDIT_OF_A = np.array([1.0, 0.0, 0.5])
"""Worth of each pair label to response A: a win, a loss, half a win."""


def mapped_back(judge_pass: Pass) -> dict[str, float]:
    """Return the posterior of a pass in the pair's own letters."""
    if judge_pass.order == "given":
        return judge_pass.posterior
    swapped = {"A": "B", "B": "A"}
    return {swapped.get(label, label): value for label, value in judge_pass.posterior.items()}


def preferred(posterior: Mapping[str, float]) -> int:
    """Return the index of the likeliest pair label; a tie where ``A`` and ``B`` are equal."""
    a, b, tie = (posterior.get(label, 0.0) for label in ("A", "B", "None"))
    if a == b or tie >= max(a, b):
        return TIE
    return A if a > b else B


def order_posteriors(verdicts: Sequence[Verdict], order: Order) -> list[dict[str, float] | None]:
    """Return the posterior of each verdict's pass in one order, in the pair's own letters.

    Returns:
        Length ``n``; ``None`` where there is no such pass, more than one, or one without a
        posterior.
    """
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
    the share that people give to the same response. It is 0 without bias, and 1 when the judge
    always takes the first and people the second. It is over the pairs with a pass in that order;
    everything else is over the pairs with a pass in each order. A merged label is that of the mean
    posterior of the two orders. Posteriors are as they were before calibration, so that the gain is
    that of merging alone.

    Args:
        examples: Pairs with people's labels.
        verdicts: The judge's verdicts, one per example in the same order.
        seed: Seed of the resamples.

    Returns:
        Each of these with ``value``, ``low``, ``high`` and ``n``: ``bias`` (``given``, ``swapped``,
        and ``both``, their mean over the pairs that have both, in which people's preferences
        cancel); ``flip_rate``, the share of pairs on which the two orders disagree, a change to or
        from a tie included; ``accuracy`` with ties counted (``given``, ``swapped``, ``merged``);
        and ``merged_minus_given``. Also ``test`` between the given order alone and both merged
        (``only_given_right``, ``only_merged_right``, ``p`` by ``intervals.sign_flip_p``).

    Raises:
        CustosError: If a label is not a pair's, or examples and verdicts do not line up.
    """
    outcomes = gather_pairs(examples, verdicts)
    human = outcomes.human
    in_given = order_posteriors(verdicts, "given")
    in_swapped = order_posteriors(verdicts, "swapped")
    given, swapped = _labels(in_given), _labels(in_swapped)
    merged = _labels([a and b and _merge(a, b) for a, b in zip(in_given, in_swapped, strict=True)])
    both = merged != UNSCORED
    draw = (outcomes.clusters, seed)
    # The pair's second response is shown first when swapped, so its surplus is minus A's.
    given_bias, swapped_bias = surplus_of_a(given, human), -surplus_of_a(swapped, human)
    right = {"given": given == human, "swapped": swapped == human, "merged": merged == human}
    gain = right["merged"].astype(np.float64) - right["given"]
    only_given = int((right["given"] & ~right["merged"] & both).sum())
    only_merged = int((right["merged"] & ~right["given"] & both).sum())
    return {
        "bias": {
            "given": mean(given_bias, given != UNSCORED, *draw),
            "swapped": mean(swapped_bias, swapped != UNSCORED, *draw),
            "both": mean((given_bias + swapped_bias) / 2, both, *draw),
        },
        "flip_rate": share(given != swapped, both, *draw),
        "accuracy": {name: share(hits, both, *draw) for name, hits in right.items()},
        "merged_minus_given": mean(gain, both, *draw, is_difference=True),
        "test": {
            "only_given_right": only_given,
            "only_merged_right": only_merged,
            "p": sign_flip_p(gain[both], outcomes.clusters[both]),
        },
    }


def surplus_of_a(labels: Ints, human: Ints) -> Floats:
    """Return the credit that labels give response A minus the credit that people give it.

    Args:
        labels: Indices of pair labels. Shape ``[n]``.
        human: Indices of people's. Shape ``[n]``.

    Returns:
        Between -1 and 1, a tie being half a win. Shape ``[n]``.
    """
    return np.asarray(_CREDIT_OF_A[labels] - _CREDIT_OF_A[human])


def _labels(posteriors: Sequence[Mapping[str, float] | None]) -> Ints:
    """Return label indices by ``preferred``, ``UNSCORED`` without a posterior. Shape ``[n]``."""
    return np.array([UNSCORED if p is None else preferred(p) for p in posteriors])


def _merge(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    return {label: (first.get(label, 0.0) + second.get(label, 0.0)) / 2 for label in PAIR_LABELS}
