"""Calibration of the confidence that answers state (SimpleVQA, Figure 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.framework.tables import MEAN, RATE, intervals, value_columns
from evaluation.estimate import Draws, without_nan
from evaluation.intervals import number_clusters
from evaluation.metrics import calibration_columns, expected_calibration_error

STEPS = 10
"""Bands of confidence, of equal width."""


def measure_stated_confidence(
    confidence: Sequence[float | None], right: Sequence[bool | None], clusters: Sequence[str]
) -> dict[str, Any]:
    """How well stated confidence fits accuracy.

    Args:
        confidence: In [0, 1]; ``None`` where none was stated.
        right: ``None`` where nothing was concluded; such items are left out, too.
        clusters: Cluster of each item.

    Returns:
        Estimates: ``ece`` (equal-mass bins), mean ``confidence``, ``accuracy`` of the same items,
        and ``by_confidence``: band (``0.8-0.9``) to ``accuracy``.
    """
    kept = [
        (said, float(known), cluster)
        for said, known, cluster in zip(confidence, right, clusters, strict=True)
        if said is not None and known is not None
    ]
    stated = [value for value, _, _ in kept]
    is_right = [value for _, value, _ in kept]
    own = [cluster for _, _, cluster in kept]
    mean = intervals(value_columns(stated), own, {"confidence": MEAN}, {})
    rates = intervals(
        value_columns(is_right),
        own,
        {"accuracy": RATE},
        {"by_confidence": [_band(value) for value in stated]},
    )
    columns = calibration_columns(np.array(stated), np.array(is_right))
    draws = Draws.of(columns, number_clusters(own))
    ece = draws.estimate(expected_calibration_error, len(kept))
    return {
        "ece": without_nan(ece),
        **mean["overall"],
        **rates["overall"],
        "by_confidence": rates["by_confidence"],
    }


def _band(value: float) -> str:
    """The band a confidence falls into; its lower end belongs to it, 1 to the last."""
    step = min(int(value * STEPS + 1e-9), STEPS - 1)
    return f"{step / STEPS:.1f}-{(step + 1) / STEPS:.1f}"
