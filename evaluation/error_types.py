"""Error types beside the score: the layout of HiEval's Table 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from evaluation.intervals import RESAMPLES, Floats
from evaluation.measure import Metric, Tally, summarise
from evaluation.metrics import ratio
from evaluation.outcomes import Outcomes
from judging.types import type_of

PUBLISHED: Mapping[str, Mapping[str, float]] = {
    "Qwen3-VL-4B": {
        "type_accuracy": 0.438,
        "score_accuracy": 0.843,
        "Reasoning Error": 0.6038,
        "Image Misunderstanding": 0.8189,
        "Unanswerable": 0.62,
        "Overthinking": 0.0048,
        "Other": 0.0061,
    },
    "GPT-5": {
        "type_accuracy": 0.578,
        "score_accuracy": 0.904,
        "Reasoning Error": 0.7308,
        "Image Misunderstanding": 0.6755,
        "Unanswerable": 0.74,
        "Overthinking": 0.6429,
        "Other": 0.0,
    },
    "HiEval-EA": {
        "type_accuracy": 0.855,
        "score_accuracy": 0.938,
        "Reasoning Error": 0.7385,
        "Image Misunderstanding": 0.8189,
        "Unanswerable": 0.98,
        "Overthinking": 0.9905,
        "Other": 0.8485,
    },
}
"""HiEval's Table 5, on its own test of 1,000 responses with errors."""


def error_types(labels: Sequence[str]) -> tuple[str, ...]:
    """Error types among full labels, in their order."""
    return tuple(dict.fromkeys(kind for kind in map(type_of, labels) if kind))


def type_accuracies(
    outcomes: Outcomes, resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, dict[str, Any]]:
    """Share of the items of each error type whose type the judge names, whatever score it gives.

    Args:
        outcomes: What people and the judge said.
        resamples: Bootstrap resamples.
        seed: Their seed.

    Returns:
        Error type to ``value``, ``low``, ``high`` and ``n``; empty for labels without types.
    """
    kinds = error_types(outcomes.labels)
    if not kinds:
        return {}
    tally = Tally.of(outcomes)
    drawn = tally.resampled(resamples, seed)
    return {
        kind: summarise(
            Metric(partial(_named, kind), partial(_of_type, kind), is_rate=True), tally, drawn
        )
        for kind in kinds
    }


def _named(kind: str, tally: Tally) -> Floats:
    own = tally.classes(lambda label: type_of(label) == kind)
    agreed = tally.confusion[..., own, :][..., own].sum(axis=(-2, -1))
    return ratio(agreed, _of_type(kind, tally))


def _of_type(kind: str, tally: Tally) -> Floats:
    own = tally.classes(lambda label: type_of(label) == kind)
    return np.asarray(tally.confusion[..., own, :].sum(axis=(-2, -1)))
