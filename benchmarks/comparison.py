"""Two graded files of one benchmark, item by item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.base import Benchmark, ItemScore
from benchmarks.files import Row
from benchmarks.tables import MEAN, intervals, value_columns
from evaluation.statistics import mcnemar_p
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
        together), each with ``value``, ``low``, ``high`` and ``n``; ``by``, the difference in every
        part of every facet of the benchmark; ``a_better`` and ``b_better``, the items on which
        either side scores higher, and ``mcnemar_p``, the exact two-sided sign test of the two;
        ``only_a`` and ``only_b``, the scored items that the other side lacks.

    Raises:
        CustosError: If an id is missing or repeated, or no item is scored on both sides.
    """
    a, b = (scored_by_id(benchmark.scores(rows)) for rows in (first, second))
    facets = {str(row.get(benchmark.item_id, "")): benchmark.facets_of(row) for row in first}
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

    gains = after - before
    parts = intervals(
        value_columns(gains.tolist()),
        clusters,
        {"mean": MEAN},
        {name: [facets[key].get(name) for key in shared] for name in benchmark.facets},
    )
    a_better, b_better = int((gains < 0).sum()), int((gains > 0).sum())
    return {
        "metric": benchmark.headline,
        "a": mean(before.tolist()),
        "b": mean(after.tolist()),
        "difference": parts["overall"]["mean"],
        "by": {
            name: {part: found["mean"] for part, found in parts[name].items()}
            for name in benchmark.facets
        },
        "a_better": a_better,
        "b_better": b_better,
        "mcnemar_p": mcnemar_p(a_better, b_better),
        "only_a": len(a) - len(shared),
        "only_b": len(b) - len(shared),
    }


def scored_by_id(scores: Sequence[ItemScore]) -> dict[str, ItemScore]:
    """The items with a score, by id.

    Raises:
        CustosError: If an id is missing or repeated.
    """
    found: dict[str, ItemScore] = {}
    for number, score in enumerate(scores, 1):
        if not score.id or score.id in found:
            fault = f"id '{score.id}' occurs twice" if score.id else "has no id"
            raise CustosError(f"item {number}: {fault}: items are matched by id")
        found[score.id] = score
    return {key: score for key, score in found.items() if score.value is not None}
