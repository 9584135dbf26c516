"""Table and picture of the samples of a soak."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import linear_regression, median
from typing import Any

from rich.table import Table

MEASURES = {
    "memory_mb": "memory of the service, MB",
    "decoders_mb": "memory of its decoders, MB",
    "descriptors": "open files",
    "threads": "threads",
    "log_bytes_per_call": "log, bytes per call",
    "calls_per_second": "calls per second",
    "p50_ms": "median time of a call, ms",
    "p99_ms": "99th percentile, ms",
    "health_p99_ms": "99th percentile of health, ms",
}
WARM_UP = 0.1
"""Share of the time that is left out of the comparison of thirds: caches and pools fill."""


def summarise(samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return sums of what happened, and each measure in the first and the last third.

    ``per_hour`` is the slope of a straight line through the samples after the warm-up.
    """
    statuses, events = Counter[str](), Counter[str]()
    for sample in samples:
        statuses.update(sample["statuses"])
        events.update(sample["events"])
    faults = [fault for sample in samples for fault in sample["faults"]]
    return {
        "samples": len(samples),
        "statuses": dict(sorted(statuses.items())),
        "events": dict(events),
        "num_faults": len(faults),
        "faults": faults[:20],
        "measures": {name: _measure(samples, name) for name in MEASURES},
    }


def _measure(samples: Sequence[dict[str, Any]], name: str) -> dict[str, float] | None:
    points = [
        (sample["minutes"] / 60, sample[name])
        for sample in samples[round(WARM_UP * len(samples)) :]
        if sample[name] is not None
    ]
    if len(points) < 3:
        return None
    hours, values = zip(*points, strict=True)
    third = len(values) // 3
    return {
        "first_third": median(values[:third]),
        "last_third": median(values[-third:]),
        "highest": max(values),
        "per_hour": linear_regression(hours, values).slope,
    }


def table(summary: dict[str, Any]) -> Table:
    """Return the summary for the screen."""
    title = (
        f"{summary['judge']}, {summary['minutes']:g} minutes, {summary['clients']} clients: "
        f"{sum(summary['statuses'].values()):,} calls {summary['statuses']}, "
        f"{summary['num_faults']} lost or wrong, exit code {summary['exit_code']}"
    )
    shown = Table("measure", "first third", "last third", "highest", "per hour", title=title)
    for name, words in MEASURES.items():
        if measure := summary["measures"][name]:
            shown.add_row(words, *(f"{value:,.1f}" for value in measure.values()))
    return shown


def draw_samples(samples: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw memory, descriptors, threads, log, rates and latencies over time."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    minutes = [sample["minutes"] for sample in samples]
    panels = (
        (("memory_mb", "decoders_mb"), False),
        (("descriptors", "threads"), False),
        (("p50_ms", "p99_ms", "health_p99_ms"), True),
        (("calls_per_second", "log_bytes_per_call"), False),
    )
    figure, axes = pyplot.subplots(2, 2, figsize=(9, 5.5), sharex=True)
    for axis, (names, is_logarithmic) in zip(axes.flat, panels, strict=True):
        for name in names:
            axis.plot(minutes, [sample[name] for sample in samples], label=MEASURES[name], lw=1)
        if is_logarithmic:
            axis.set_yscale("log")
        else:
            axis.set_ylim(bottom=0)
        axis.legend(fontsize=7, frameon=False)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[1]:
        axis.set_xlabel("minutes")
    figure.tight_layout()
    figure.savefig(path, dpi=70)
    pyplot.close(figure)
