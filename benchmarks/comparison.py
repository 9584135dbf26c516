"""Two graded files of one benchmark, item by item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.base import Benchmark, ItemScore
from benchmarks.files import Row
from benchmarks.tables import MEAN, intervals, value_columns
from judging.errors import CustosError


def compare_graded(
    benchmark: Benchmark, first: Sequence[Row], second: Sequence[Row]
) -> dict[str, Any]:
    """Headline scores of two graded files on the items that both score.

    Args:
        benchmark: Whose items they are.
        first: Graded rows of A.
        second: Graded rows of B, in any order.

    Returns:
        ``metric``; ``a``, ``b`` and ``difference`` (B minus A, paired, clusters resampled
        together), each with ``value``, ``low``, ``high`` and ``n``; ``only_a`` and ``only_b``, the
        scored items that the other side lacks.

    Raises:
        CustosError: If an id is missing or repeated, or no item is scored on both sides.
    """
    a, b = _by_id(benchmark.scores(first), "A"), _by_id(benchmark.scores(second), "B")
    shared = [key for key in a if key in b]
    if not shared:
        raise CustosError("the two files share no scored item")
    clusters = [a[key].cluster for key in shared]
    before = np.array([a[key].value for key in shared], dtype=np.float64)
    after = np.array([b[key].value for key in shared], dtype=np.float64)

    def mean(values: Sequence[float]) -> dict[str, Any]:
        found: dict[str, Any] = intervals(value_columns(values), clusters, {"mean": MEAN}, {})
        estimate: dict[str, Any] = found["overall"]["mean"]
        return estimate

    return {
        "metric": benchmark.headline,
        "a": mean(before.tolist()),
        "b": mean(after.tolist()),
        "difference": mean((after - before).tolist()),
        "only_a": len(a) - len(shared),
        "only_b": len(b) - len(shared),
    }


def _by_id(scores: Sequence[ItemScore], side: str) -> dict[str, ItemScore]:
    found: dict[str, ItemScore] = {}
    for number, score in enumerate(scores, 1):
        if not score.id or score.id in found:
            fault = f"id '{score.id}' occurs twice" if score.id else "has no id"
            raise CustosError(f"file {side} item {number}: {fault}: items are matched by id")
        found[score.id] = score
    return {key: score for key, score in found.items() if score.value is not None}
