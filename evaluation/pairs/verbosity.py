"""A judge's preference for longer responses, beyond that of people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evaluation.estimate import Draws, mean
from evaluation.intervals import Floats
from evaluation.metrics import ratio
from evaluation.pairs.agreement import A, B, gather_pairs
from evaluation.pairs.order_effects import surplus_of_a
from judging.types import LabelledExample, Verdict


def verbosity_effect(
    examples: Sequence[LabelledExample], verdicts: Sequence[Verdict], seed: int = 0
) -> dict[str, Any]:
    """Measure how far the judge leans to longer responses beyond people.

    Only scored pairs count whose responses differ in length (characters, without surrounding
    space).

    Args:
        examples: Pairs with people's labels.
        verdicts: The judge's verdicts, one per example in the same order.
        seed: Seed of the resamples.

    Returns:
        Each with ``value``, ``low``, ``high`` and ``n``. ``preference``: share of pairs given to
        the longer response, ties half, by the judge minus by people. ``longer_against_people``:
        among pairs where people chose the shorter, the share where the judge chose the longer;
        ``shorter_against_people``: the reverse. ``difference``: the former minus the latter, above
        0 when errors lean towards length.

    Raises:
        CustosError: If a label is not a pair's, or examples and verdicts do not line up.
    """
    outcomes = gather_pairs(examples, verdicts)
    lengths = np.array([[len(text.strip()) for text in example.answers] for example in examples])
    uneven = outcomes.scored & (lengths[:, 0] != lengths[:, 1])
    a_is_longer = lengths[:, 0] > lengths[:, 1]
    longer, shorter = np.where(a_is_longer, A, B), np.where(a_is_longer, B, A)
    for_longer = np.where(a_is_longer, 1, -1) * surplus_of_a(outcomes.predicted, outcomes.human)
    people_shorter = uneven & (outcomes.human == shorter)
    people_longer = uneven & (outcomes.human == longer)
    columns = np.stack(
        [
            people_shorter & (outcomes.predicted == longer),
            people_shorter,
            people_longer & (outcomes.predicted == shorter),
            people_longer,
        ],
        axis=1,
    ).astype(np.float64)
    draws = Draws.of(columns, outcomes.clusters, seed)
    return {
        "preference": mean(for_longer, uneven, outcomes.clusters, seed),
        "longer_against_people": draws.rate(_longer_share, lambda sums: sums[..., 1]),
        "shorter_against_people": draws.rate(_shorter_share, lambda sums: sums[..., 3]),
        "difference": draws.estimate(
            lambda sums: _longer_share(sums) - _shorter_share(sums),
            float((people_shorter | people_longer).sum()),
            (-1.0, 1.0),
        ),
    }


def _longer_share(sums: Floats) -> Floats:
    return ratio(sums[..., 0], sums[..., 1])


def _shorter_share(sums: Floats) -> Floats:
    return ratio(sums[..., 2], sums[..., 3])
