"""Does the judge look at the answers, or at where they stand and how long they are?

Measured on verdicts that keep one pass per order. A pass speaks of the responses as it saw them:
in a swapped pass ``A`` is the response shown first, which is the pair's second. ``mapped_back``
turns that into the pair's own letters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from evaluation.estimate import Draws, Mask, share
from evaluation.intervals import RESAMPLES, Floats, Ints, mcnemar_p
from evaluation.metrics import UNSCORED, ratio
from evaluation.outcomes import Outcomes
from evaluation.pairs.agreement import PAIR_LABELS, TIE, A, B, gather_pairs
from judging.types import LabelledExample, Pass, Verdict

Order = Literal["given", "swapped"]

_FIRST_CREDIT = np.array([1.0, 0.0, 0.5])
"""What a label is worth to response A: a win, a loss, half a win."""


def mapped_back(judged: Pass) -> dict[str, float]:
    """The posterior of a pass in the pair's own letters."""
    if judged.order == "given":
        return judged.posterior
    other = {"A": "B", "B": "A"}
    return {other.get(label, label): value for label, value in judged.posterior.items()}


def preferred(posterior: Mapping[str, float]) -> int:
    """Index of the likeliest pair label; a tie where ``A`` and ``B`` come out equal on top."""
    a, b, tie = (posterior.get(label, 0.0) for label in ("A", "B", "None"))
    if a == b or tie >= max(a, b):
        return TIE
    return A if a > b else B


def order_posteriors(verdicts: Sequence[Verdict], order: Order) -> list[dict[str, float] | None]:
    """Posterior of each verdict's one pass in ``order``, in the pair's own letters.

    ``None`` where there is none, more than one, or one without a posterior. Length ``n``.
    """
    found = []
    for verdict in verdicts:
        passes = [judged for judged in verdict.passes if judged.order == order]
        has_one = len(passes) == 1 and passes[0].posterior
        found.append(mapped_back(passes[0]) if has_one else None)
    return found


def order_effects(
    examples: Sequence[LabelledExample],
    verdicts: Sequence[Verdict],
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Any]:
    """What the order of presentation does to the verdicts, and what judging both orders buys.

    A bias is the share of pairs the judge gives to the response shown first, ties half, minus the
    share people give to the same response: 0 without bias, 1 when it takes the first throughout
    where people take the second. It is over the pairs with a pass in that order. Everything else is
    over the pairs with a pass in each order. A merged label is that of the two orders' mean
    posterior, uncalibrated as they are: what merging buys, not what calibration does.

    Args:
        examples: What people said.
        verdicts: What the judge said, one per example in the same order.
        resamples: Bootstrap resamples.
        seed: Their seed.

    Returns:
        ``bias`` (``given``, ``swapped``, and ``both``, their mean over pairs that have both, where
        what people prefer cancels), ``flip_rate`` (share of pairs on which the two orders disagree,
        a change to or from a tie included), ``accuracy`` with ties counted (``given``, ``swapped``,
        ``merged``), ``merged_minus_given``, each with ``value``, ``low``, ``high`` and ``n``; and
        ``mcnemar`` between the given order alone and both merged (``only_given_right``,
        ``only_merged_right``, ``p``).

    Raises:
        CustosError: If a label is not a pair's, or examples and verdicts do not line up.
    """
    outcomes = gather_pairs(examples, verdicts)
    in_given = order_posteriors(verdicts, "given")
    in_swapped = order_posteriors(verdicts, "swapped")
    given, swapped = _labels(in_given), _labels(in_swapped)
    in_both = zip(in_given, in_swapped, strict=True)
    merged = _labels([a and b and _mean_of(a, b) for a, b in in_both])
    both = merged != UNSCORED
    clusters, draw = outcomes.clusters, (resamples, seed)
    right = {
        "given": given == outcomes.human,
        "swapped": swapped == outcomes.human,
        "merged": merged == outcomes.human,
    }
    gain = right["merged"].astype(np.float64) - right["given"]
    # The pair's second response is first on the swapped screen, so its surplus is minus A's.
    given_bias, swapped_bias = _surplus_of_a(given, outcomes), -_surplus_of_a(swapped, outcomes)
    only_given = int((right["given"] & ~right["merged"] & both).sum())
    only_merged = int((right["merged"] & ~right["given"] & both).sum())
    return {
        "bias": {
            "given": _mean(given_bias, given != UNSCORED, clusters, *draw),
            "swapped": _mean(swapped_bias, swapped != UNSCORED, clusters, *draw),
            "both": _mean((given_bias + swapped_bias) / 2, both, clusters, *draw),
        },
        "flip_rate": share(given != swapped, both, clusters, *draw),
        "accuracy": {name: share(hit, both, clusters, *draw) for name, hit in right.items()},
        "merged_minus_given": _mean(gain, both, clusters, *draw),
        "mcnemar": {
            "only_given_right": only_given,
            "only_merged_right": only_merged,
            "p": mcnemar_p(only_given, only_merged),
        },
    }


def verbosity_effect(
    examples: Sequence[LabelledExample],
    verdicts: Sequence[Verdict],
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Any]:
    """Whether the judge likes length beyond what people like about longer answers.

    Over scored pairs whose responses differ in length (characters, surrounding space apart).

    Args:
        examples: What people said.
        verdicts: What the judge said, one per example in the same order.
        resamples: Bootstrap resamples.
        seed: Their seed.

    Returns:
        ``preference``: share of pairs given to the longer response, ties half, by the judge minus
        by people. ``longer_against_people``: among pairs where people chose the shorter, the share
        where the judge chose the longer; ``shorter_against_people``: the reverse;
        ``difference``: the former minus the latter, above 0 when errors lean towards length. Each
        with ``value``, ``low``, ``high`` and ``n``.

    Raises:
        CustosError: If a label is not a pair's, or examples and verdicts do not line up.
    """
    outcomes = gather_pairs(examples, verdicts)
    lengths = np.array([[len(text.strip()) for text in example.responses] for example in examples])
    uneven = outcomes.scored & (lengths[:, 0] != lengths[:, 1])
    a_is_longer = lengths[:, 0] > lengths[:, 1]
    longer, shorter = np.where(a_is_longer, A, B), np.where(a_is_longer, B, A)
    for_longer = np.where(a_is_longer, 1, -1) * _surplus_of_a(outcomes.predicted, outcomes)
    people_shorter, people_longer = (uneven & (outcomes.human == x) for x in (shorter, longer))
    chose_longer, chose_shorter = (outcomes.predicted == x for x in (longer, shorter))
    columns = np.stack(
        [people_shorter & chose_longer, people_shorter, people_longer & chose_shorter,
         people_longer], axis=1
    ).astype(np.float64)  # fmt: skip
    draws = Draws.of(columns, outcomes.clusters, resamples, seed)
    decided = float((people_shorter | people_longer).sum())
    return {
        "preference": _mean(for_longer, uneven, outcomes.clusters, resamples, seed),
        "longer_against_people": draws.estimate(_first_share, float(people_shorter.sum()), True),
        "shorter_against_people": draws.estimate(_second_share, float(people_longer.sum()), True),
        "difference": draws.estimate(lambda s: _first_share(s) - _second_share(s), decided),
    }


def _labels(posteriors: Sequence[Mapping[str, float] | None]) -> Ints:
    """Label index by ``preferred``, ``UNSCORED`` without a posterior. Shape ``[n]``."""
    return np.array([UNSCORED if one is None else preferred(one) for one in posteriors])


def _mean_of(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {label: (one.get(label, 0.0) + other.get(label, 0.0)) / 2 for label in PAIR_LABELS}


def _surplus_of_a(labels: Ints, outcomes: Outcomes) -> Floats:
    """Credit the labels give response A minus the credit people give it. Shape ``[n]``."""
    return np.asarray(_FIRST_CREDIT[labels] - _FIRST_CREDIT[outcomes.human])


def _mean(values: Floats, among: Mask, clusters: Ints, resamples: int, seed: int) -> dict[str, Any]:
    columns = np.stack([np.where(among, values, 0), among], axis=1)
    draws = Draws.of(columns, clusters, resamples, seed)
    return draws.estimate(_first_share, float(among.sum()))


def _first_share(sums: Floats) -> Floats:
    return ratio(sums[..., 0], sums[..., 1])


def _second_share(sums: Floats) -> Floats:
    return ratio(sums[..., 2], sums[..., 3])
