"""Reports on runs that differ in their seed alone: mean, standard deviation and interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from evaluation.measure import ERROR_TYPE_METRICS, METRICS


def seed_statistics(reports: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return statistics of every metric over the reports of runs.

    The interval says how far chance in training moves the mean of so many runs: Student's t over
    the runs, cut off at the smallest and largest value of the metric. It does not hold the chance
    that lies in the test rows, which all runs share.

    Args:
        reports: Contents of ``report.json``, one a run. A metric counts where every report has it.

    Returns:
        By metric: ``values`` (in the order of the reports), ``mean``, ``std`` (with ``n - 1``), and
        ``low`` and ``high`` of the 95 % interval. The last three are ``None`` for a single run.
    """
    names = [
        name
        for name in (reports[0]["metrics"] if reports else {})
        if all(_value(report, name) is not None for report in reports)
    ]
    table = {**METRICS, **ERROR_TYPE_METRICS}
    return {
        name: _statistics([_value(report, name) for report in reports], *table[name].bounds)
        for name in names
    }


def _value(report: Mapping[str, Any], name: str) -> Any:
    return (report["metrics"].get(name) or {}).get("value")


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
