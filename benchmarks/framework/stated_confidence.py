"""Calibration of the confidence that answers state.

SimpleVQA's Figure 3 and TruthfulVQA's Figure 4a are about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.framework.tables import MEAN, OVERALL, RATE, intervals, value_columns
from evaluation.calibration_error import calibration_error
from evaluation.estimate import without_nan
from evaluation.intervals import number_clusters
from evaluation.metrics import Binning, equal_mass_bins, equal_width_bins

BANDS = 10
"""Bands of confidence, of equal width."""


def measure_stated_confidence(
    confidence: Sequence[float | None], right: Sequence[bool | None], clusters: Sequence[str]
) -> dict[str, Any]:
    """Measure how well stated confidence fits accuracy.

    Args:
        confidence: In [0, 1]; ``None`` where none was stated.
        right: ``None`` where there is no conclusion. Items with either ``None`` are left out.
        clusters: Cluster of each item.

    Returns:
        Estimates: ``ece`` (equal-mass bins), ``ece_equal_width`` (15 bins of equal width, as
        published figures have them), mean ``confidence``, ``accuracy`` of the same items, and
        ``by_confidence``: band (``0.8-0.9``) to ``accuracy``.
    """
    complete = [
        (stated, float(is_right), cluster)
        for stated, is_right, cluster in zip(confidence, right, clusters, strict=True)
        if stated is not None and is_right is not None
    ]
    stated = [value for value, _, _ in complete]
    accuracy = [value for _, value, _ in complete]
    of_item = [cluster for _, _, cluster in complete]
    mean = intervals(value_columns(stated), of_item, {"confidence": MEAN}, {})
    rates = intervals(
        value_columns(accuracy),
        of_item,
        {"accuracy": RATE},
        {"by_confidence": [_band(value) for value in stated]},
    )
    errors = {
        name: _calibration_error(stated, accuracy, of_item, binning)
        for name, binning in (("ece", equal_mass_bins), ("ece_equal_width", equal_width_bins))
    }
    return {
        **errors,
        **mean[OVERALL],
        **rates[OVERALL],
        "by_confidence": rates["by_confidence"],
    }


def _calibration_error(
    stated: Sequence[float], accuracy: Sequence[float], clusters: Sequence[str], binning: Binning
) -> dict[str, Any]:
    estimate: dict[str, Any] = without_nan(
        calibration_error(
            np.array(stated), np.array(accuracy), number_clusters(clusters), binning=binning
        )
    )
    return estimate


def _band(confidence: float) -> str:
    """Return the band of a confidence; a band holds its lower end, and the last also 1."""
    # A binary fraction may fall just below the lower end of its band.
    band = min(int(confidence * BANDS + 1e-9), BANDS - 1)
    return f"{band / BANDS:.1f}-{(band + 1) / BANDS:.1f}"
