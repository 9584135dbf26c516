"""From per-item columns to a table: raw rates with clustered 95 % intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.framework.files import CUT_OFF, Row
from evaluation.estimate import Draws, without_nan
from evaluation.intervals import Floats, Mask, number_clusters
from evaluation.metrics import ratio
from judging.errors import FieldError
from judging.types import Verdict, parse_record

OVERALL = "overall"
Estimate = Mapping[str, Any]
"""A figure as ``value``, ``low``, ``high`` and ``n``, ``None`` where it does not exist."""


@dataclass(frozen=True)
class Ratio:
    """A metric that divides one weighted sum of an item's columns by another."""

    numerator: tuple[float, ...]
    """Weight of every column. Shape ``[S]``."""
    denominator: tuple[float, ...]
    is_rate: bool = True
    """True if it is a share of the items that the denominator counts."""
    scale: float = 1.0

    def of(self, sums: Floats) -> Floats:
        """Divide sums of columns, shapes ``[..., S]`` to ``[...]``; nan for a denominator of 0."""
        return ratio(sums @ np.array(self.numerator), sums @ np.array(self.denominator))

    def times(self, scale: float) -> Ratio:
        """Return the same metric in another unit."""
        return replace(self, scale=scale)

    def scaled(self, estimate: Mapping[str, Any]) -> dict[str, Any]:
        """Turn an estimate of the bare ratio into this metric's unit, ``None`` for nan."""
        scaled = {key: self.scale * estimate[key] for key in ("value", "low", "high")}
        return {**without_nan(scaled), "n": estimate["n"]}


MEAN = Ratio((1, 0), (0, 1), is_rate=False)
RATE = Ratio((1, 0), (0, 1))
"""For the two columns of ``value_columns``."""


def value_columns(values: Sequence[float | None]) -> Floats:
    """Return a column of values, 0 for ``None``, and one of 1 for each value. Shape ``[n, 2]``."""
    return np.array([(0.0, 0.0) if v is None else (v, 1.0) for v in values]).reshape(-1, 2)


def intervals(
    columns: Floats,
    clusters: Sequence[str],
    metrics: Mapping[str, Ratio],
    divisions: Mapping[str, Sequence[str | None]],
    order: Sequence[str] = (),
) -> dict[str, Any]:
    """Estimate every metric over all items and over every part of every division.

    Args:
        columns: Per-item columns. Shape ``[n, S]``.
        clusters: Cluster of each item; clusters are resampled whole.
        metrics: Metrics by name.
        divisions: Section of the table to the part that each item falls into, ``None`` for no part.
        order: Parts that come first, in this order; the others follow alphabetically.

    Returns:
        ``overall``: metric to ``value``, ``low``, ``high`` and ``n``. Each division: part to the
        same. ``None`` stands for a figure that does not exist.
    """
    cluster_numbers = number_clusters(clusters)

    def measure(rows: Mask) -> dict[str, Any]:
        draws = Draws.of(columns[rows], cluster_numbers[rows])
        measured = {}
        for name, metric in metrics.items():
            # Items that the denominator counts, whatever their weight.
            counted = (np.array(metric.denominator) != 0).astype(np.float64)
            estimate = (
                draws.rate(metric.of, partial(_weighted, counted))
                if metric.is_rate
                else draws.estimate(metric.of, float(draws.total @ counted))
            )
            measured[name] = metric.scaled(estimate)
        return measured

    tree: dict[str, Any] = {OVERALL: measure(np.ones(len(columns), dtype=np.bool_))}
    for name, parts in divisions.items():
        names = in_order({part for part in parts if part is not None}, order)
        tree[name] = {part: measure(np.array([p == part for p in parts])) for part in names}
    return tree


def _weighted(weights: Floats, sums: Floats) -> Floats:
    return np.asarray(sums @ weights)


def in_order(names: Set[str], first: Sequence[str]) -> list[str]:
    """Sort names: those of ``first`` in its order, then the others alphabetically."""
    return [*(name for name in first if name in names), *sorted(names - set(first))]


def values(measured: Mapping[str, Any]) -> Any:
    """Return the same tree with the value of every estimate in its place."""
    if is_estimate(measured):
        return measured["value"]
    return {name: values(branch) for name, branch in measured.items()}


def scaled(estimate: Estimate, scale: float) -> Estimate:
    """Return an estimate in another unit."""
    ends = {name: estimate[name] for name in ("value", "low", "high")}
    return {**estimate, **{name: None if x is None else scale * x for name, x in ends.items()}}


def percent(estimate: Estimate | None) -> Estimate | None:
    """Return the estimate of a share in per cent; ``None`` for none."""
    return None if estimate is None else scaled(estimate, 100)


def is_estimate(node: Any) -> bool:
    """Tell an estimate from a branch of the tree that ``intervals`` returns."""
    return isinstance(node, Mapping) and {"value", "low", "high"} <= node.keys()


def estimates(
    tree: Mapping[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Yield every estimate of a tree with the names that lead to it."""
    for name, branch in tree.items():
        if is_estimate(branch):
            yield (*path, name), branch
        else:
            yield from estimates(branch, (*path, name))


def coverage(rows: Sequence[Row], num_scored: int, num_items: int) -> dict[str, Any]:
    """Return how much of a table rests on verdicts, and on whose.

    Args:
        rows: Graded rows; ours hold ``verdicts``, a benchmark's own files may not.
        num_scored: Items that have a score.
        num_items: Items that should have one.

    Returns:
        ``n, coverage, statuses`` (of the verdicts), ``judges`` (their fingerprints) and
        ``cut_off``: rows with a response that ended at the token limit.
    """
    verdicts = [verdict for row in rows for verdict in stored_verdicts(row).values()]
    return {
        "n": num_items,
        "coverage": num_scored / num_items if num_items else None,
        "statuses": dict(Counter(verdict.status for verdict in verdicts)),
        "judges": sorted({verdict.judge for verdict in verdicts if verdict.judge}),
        "cut_off": sum(bool(row.get(CUT_OFF)) for row in rows),
    }


def stored_verdicts(row: Row) -> dict[str, Verdict]:
    """Return the verdicts that ``store_verdicts`` put into a graded row, by task.

    Raises:
        FieldError: If the field ``verdicts`` holds something else.
    """
    by_task = row.get("verdicts") or {}
    if not isinstance(by_task, dict):
        raise FieldError("verdicts", f"expected an object, got {type(by_task).__name__}")
    return {
        task: parse_record(Verdict, value, f"verdict on '{task}'")
        for task, value in by_task.items()
    }


def store_verdicts(verdicts: Mapping[str, Verdict]) -> Row:
    """Return the field of a graded row that holds the verdicts by task; empty without any."""
    by_task = {
        task: verdict.model_dump(mode="json", exclude_unset=True)
        for task, verdict in verdicts.items()
    }
    return {"verdicts": by_task} if by_task else {}
