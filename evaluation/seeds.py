"""Reports on runs that differ in their seed alone: mean, standard deviation and interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from evaluation.measure import ACCURACIES, ERROR_TYPE_METRICS, METRICS

BEFORE = "_before_calibration"
"""Ending of the names of accuracies before calibration, which are those of the papers."""


def seed_statistics(reports: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return statistics of every metric over the reports of runs.

    The interval says how far chance in training moves the mean of so many runs: Student's t over
    the runs, cut off at the smallest and largest value of the metric. It does not hold the chance
    that lies in the test rows, which all runs share.

    Args:
        reports: Contents of ``report.json``, one a run. A metric counts where every report has it.

    Returns:
        By metric, and by accuracy before calibration: ``values`` (in the order of the reports),
        ``mean``, ``std`` (with ``n - 1``), and ``low`` and ``high`` of the 95 % interval. The last
        three are ``None`` for a single run.
    """
    runs = [_figures(report) for report in reports]
    table = {**METRICS, **ERROR_TYPE_METRICS}
    values = {
        name: [value for run in runs if (value := run.get(name)) is not None]
        for name in (runs[0] if runs else ())
    }
    return {
        name: _statistics(of_runs, *table[name.removesuffix(BEFORE)].bounds)
        for name, of_runs in values.items()
        if len(of_runs) == len(runs)
    }


def _figures(report: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the metrics of a report, and its accuracies before calibration."""
    before = (report.get("calibration") or {}).get("before", {})
    measured = {
        **report["metrics"],
        **{f"{name}{BEFORE}": before[name] for name in ACCURACIES if name in before},
    }
    return {name: (estimate or {}).get("value") for name, estimate in measured.items()}


def _statistics(values: Sequence[float], smallest: float, largest: float) -> dict[str, Any]:
    mean, count = float(np.mean(values)), len(values)
    if count == 1:
        return {"values": list(values), "mean": mean, "std": None, "low": None, "high": None}
    std = float(np.std(values, ddof=1))
    half = float(stats.t.ppf(0.975, count - 1)) * std / math.sqrt(count)
    return {
        "values": list(values),
        "mean": mean,
        "std": std,
        "low": max(smallest, mean - half),
        "high": min(largest, mean + half),
    }
