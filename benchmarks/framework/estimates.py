"""From per-item columns to raw rates and means with clustered 95 % intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.framework.files import CUT_OFF, Row, stored_verdicts
from evaluation.calibration_error import calibration_error, equal_mass_bins, equal_width_bins
from evaluation.estimate import Draws, without_nan
from evaluation.intervals import Floats, Mask, number_clusters, ratio

OVERALL = "overall"
Estimate = Mapping[str, Any]
"""A figure as ``value``, ``low``, ``high`` and ``n``, ``None`` where it does not exist."""
ENDS = ("value", "low", "high")
BANDS = 10
"""Bands of stated confidence, of equal width."""


@dataclass(frozen=True)
class Ratio:
    """A metric that divides one weighted sum of an item's columns by another."""

    numerator: tuple[float, ...]
    """Weight of every column. Shape ``[S]``."""
    denominator: tuple[float, ...]
    is_rate: bool = True
    """True if it is a share of the items that the denominator counts."""
    is_difference: bool = False
    """True if the numerator holds differences, from -1 to 1; else the metric is from 0 to 1."""
    scale: float = 1.0

    def of(self, sums: Floats) -> Floats:
        """Divide sums of columns, shapes ``[..., S]`` to ``[...]``; nan for a denominator of 0."""
        return ratio(sums @ np.array(self.numerator), sums @ np.array(self.denominator))

    def times(self, scale: float) -> Ratio:
        """Give the same metric in another unit."""
        return replace(self, scale=scale)

    def estimate(self, draws: Draws) -> dict[str, Any]:
        """Estimate the metric in its unit, ``None`` for what does not exist."""
        # Items that the denominator counts, whatever their weight.
        counted = (np.array(self.denominator) != 0).astype(np.float64)
        if self.is_rate:
            found = draws.rate(self.of, lambda sums: np.asarray(sums @ counted))
        else:
            bounds = (-1.0 if self.is_difference else 0.0, 1.0)
            found = draws.estimate(
                self.of, float(draws.total @ counted), bounds, is_difference=self.is_difference
            )
        return {**without_nan({key: self.scale * found[key] for key in ENDS}), "n": found["n"]}


MEAN = Ratio((1, 0), (0, 1), is_rate=False)
DIFFERENCE = replace(MEAN, is_difference=True)
RATE = Ratio((1, 0), (0, 1))
"""For the two columns of ``value_columns``."""


def value_columns(values: Sequence[float | None]) -> Floats:
    """Lay out values as two columns: each, 0 for ``None``, and 1 where there is one: ``[n, 2]``."""
    return np.array([(0.0, 0.0) if v is None else (v, 1.0) for v in values]).reshape(-1, 2)


def intervals(
    columns: Floats,
    clusters: Sequence[str],
    metrics: Mapping[str, Ratio],
    divisions: Mapping[str, Sequence[str | None]],
    order: Sequence[str] = (),
) -> dict[str, Any]:
    """Estimate every metric over all items and over every part of every division.

    ``columns`` are per item, shape ``[n, S]``; clusters are resampled whole. A division is a
    section of the table, with the part that each item falls into, ``None`` for no part. Parts of
    ``order`` come first, in this order; the others follow alphabetically.

    ``overall`` leads from metrics to ``value``, ``low``, ``high`` and ``n``; each division leads
    from parts to the same. ``None`` stands for a figure that does not exist.
    """
    cluster_numbers = number_clusters(clusters)

    def measure(rows: Mask) -> dict[str, Any]:
        draws = Draws.of(columns[rows], cluster_numbers[rows])
        return {name: metric.estimate(draws) for name, metric in metrics.items()}

    tree: dict[str, Any] = {OVERALL: measure(np.ones(len(columns), dtype=np.bool_))}
    for name, parts in divisions.items():
        names = in_order({part for part in parts if part is not None}, order)
        tree[name] = {part: measure(np.array([p == part for p in parts])) for part in names}
    return tree


def measure_stated_confidence(
    confidence: Sequence[float | None], right: Sequence[bool | None], clusters: Sequence[str]
) -> dict[str, Any]:
    """Measure how well stated confidence fits accuracy (SimpleVQA Figure 3, TruthfulVQA Figure 4a).

    Confidence is in [0, 1], ``None`` where none was stated; ``right`` is ``None`` where there is no
    conclusion. Items with either ``None`` are left out.

    Estimates are ``ece`` (equal-mass bins), ``ece_equal_width`` (15 bins of equal width, as
    published figures have them), mean ``confidence``, ``accuracy`` of the same items, and
    ``by_confidence``: band (``0.8-0.9``) to ``accuracy``.
    """
    complete = [
        (stated, float(is_right), cluster)
        for stated, is_right, cluster in zip(confidence, right, clusters, strict=True)
        if stated is not None and is_right is not None
    ]
    stated, accuracy = [each[0] for each in complete], [each[1] for each in complete]
    of_item = [cluster for _, _, cluster in complete]
    bands = {"by_confidence": [_band(value) for value in stated]}
    mean = intervals(value_columns(stated), of_item, {"confidence": MEAN}, {})
    rates = intervals(value_columns(accuracy), of_item, {"accuracy": RATE}, bands)
    arrays = np.array(stated), np.array(accuracy), number_clusters(of_item)
    return {
        "ece": without_nan(calibration_error(*arrays, binning=equal_mass_bins)),
        "ece_equal_width": without_nan(calibration_error(*arrays, binning=equal_width_bins)),
        **mean[OVERALL],
        **rates[OVERALL],
        "by_confidence": rates["by_confidence"],
    }


def _band(confidence: float) -> str:
    """Name the band of a confidence; a band holds its lower end, and the last also 1."""
    # A binary fraction may fall just below the lower end of its band.
    band = min(int(confidence * BANDS + 1e-9), BANDS - 1)
    return f"{band / BANDS:.1f}-{(band + 1) / BANDS:.1f}"


def in_order(names: Set[str], first: Sequence[str]) -> list[str]:
    """Sort names: those of ``first`` in its order, then the others alphabetically."""
    return [*(name for name in first if name in names), *sorted(names - set(first))]


def is_estimate(node: Any) -> bool:
    """Tell an estimate from a branch of the tree that ``intervals`` returns."""
    return isinstance(node, Mapping) and set(ENDS) <= node.keys()


def values(measured: Mapping[str, Any]) -> Any:
    """Replace every estimate of a tree by its value."""
    if is_estimate(measured):
        return measured["value"]
    return {name: values(branch) for name, branch in measured.items()}


def estimates(
    tree: Mapping[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Yield every estimate of a tree with the names that lead to it."""
    for name, branch in tree.items():
        if is_estimate(branch):
            yield (*path, name), branch
        else:
            yield from estimates(branch, (*path, name))


def scaled(estimate: Estimate, scale: float) -> Estimate:
    """Convert an estimate to another unit."""
    ends = {name: estimate[name] for name in ENDS}
    return {**estimate, **{name: None if x is None else scale * x for name, x in ends.items()}}


def percent(estimate: Estimate | None) -> Estimate | None:
    """Convert the estimate of a share to per cent; ``None`` for none."""
    return None if estimate is None else scaled(estimate, 100)


def coverage(rows: Sequence[Row], num_scored: int, num_items: int) -> dict[str, Any]:
    """Count how much of a table rests on verdicts, and name whose.

    ``num_scored`` of ``num_items`` items have a score. Our graded rows hold ``verdicts``, a
    benchmark's own files may not. The result has ``n, coverage, statuses`` (of the verdicts),
    ``judges`` (their fingerprints) and ``cut_off``: the number of rows with a response that ended
    at the token limit.
    """
    verdicts = [verdict for row in rows for verdict in stored_verdicts(row).values()]
    return {
        "n": num_items,
        "coverage": num_scored / num_items if num_items else None,
        "statuses": dict(Counter(verdict.status for verdict in verdicts)),
        "judges": sorted({verdict.judge for verdict in verdicts if verdict.judge}),
        "cut_off": sum(bool(row.get(CUT_OFF)) for row in rows),
    }
