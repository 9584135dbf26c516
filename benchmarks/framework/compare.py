"""Two graded files of one benchmark, item by item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.framework.base import Benchmark, ItemScore
from benchmarks.framework.files import Row
from benchmarks.framework.tables import MEAN, RATE, intervals, value_columns
from evaluation.intervals import Floats, mcnemar_p
from judging.errors import CustosError


@dataclass(frozen=True)
class ScoredItems:
    """The scored items of a graded file."""

    scores: Mapping[str, ItemScore]
    """By id; those without a score are left out."""
    facets: Mapping[str, Mapping[str, str]]
    """By id: facet to part."""

    @classmethod
    def of(cls, benchmark: Benchmark, rows: Sequence[Row]) -> ScoredItems:
        """Score graded rows.

        Raises:
            CustosError: If a row is wrong, or an id is missing or repeated.
        """
        scores: dict[str, ItemScore] = {}
        facets: dict[str, Mapping[str, str]] = {}
        for number, (score, row) in enumerate(zip(benchmark.scores(rows), rows, strict=True), 1):
            if not score.id or score.id in facets:
                fault = f"id '{score.id}' occurs twice" if score.id else "has no id"
                raise CustosError(f"item {number}: {fault}: items are matched by id")
            facets[score.id] = benchmark.facets_of(row)
            if score.value is not None:
                scores[score.id] = score
        return cls(scores, facets)


def compare_graded(benchmark: Benchmark, first: ScoredItems, second: ScoredItems) -> dict[str, Any]:
    """Headline scores of two graded files on the items that both score.

    Args:
        benchmark: Whose items they are.
        first: Items of A.
        second: Items of B, in any order.

    Returns:
        ``metric``; ``a``, ``b`` and ``difference`` (B minus A, paired, clusters resampled
        together), each with ``value``, ``low``, ``high`` and ``n``; ``by``, the difference in every
        part of every facet of the benchmark; ``a_better`` and ``b_better``, the items on which
        either side scores higher, and ``mcnemar_p``, the exact two-sided sign test of the two;
        ``only_a`` and ``only_b``, the scored items that the other side lacks.

    Raises:
        CustosError: If no item is scored on both sides.
    """
    a, b = first.scores, second.scores
    shared = [key for key in a if key in b]
    if not shared:
        raise CustosError("the two files share no scored item")
    clusters = [a[key].cluster for key in shared]
    before = np.array([a[key].value for key in shared], dtype=np.float64)
    after = np.array([b[key].value for key in shared], dtype=np.float64)

    full = benchmark.full_score

    def mean(values: Floats) -> dict[str, Any]:
        columns = value_columns((values / full).tolist())
        found: dict[str, Any] = intervals(columns, clusters, {"mean": RATE.times(full)}, {})
        estimate: dict[str, Any] = found["overall"]["mean"]
        return estimate

    gains = after - before
    parts = intervals(
        value_columns(gains.tolist()),
        clusters,
        {"mean": MEAN},
        {name: [first.facets[key].get(name) for key in shared] for name in benchmark.facets},
    )
    a_better, b_better = int((gains < 0).sum()), int((gains > 0).sum())
    return {
        "metric": benchmark.headline,
        "a": mean(before),
        "b": mean(after),
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
