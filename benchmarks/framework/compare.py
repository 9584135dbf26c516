"""Two graded files of one benchmark, compared item by item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.framework.base import Benchmark, ItemScore
from benchmarks.framework.files import Row
from benchmarks.framework.tables import MEAN, OVERALL, RATE, intervals, value_columns
from evaluation.intervals import Floats, number_clusters, sign_flip_p
from judging.errors import CustosError


@dataclass(frozen=True)
class ScoredItems:
    """Scored items of a graded file."""

    scores: Mapping[str, ItemScore]
    """By id; those without a score are left out."""
    facets: Mapping[str, Mapping[str, str]]
    """By id: facet to part."""

    @classmethod
    def of(
        cls, benchmark: Benchmark, rows: Sequence[Row], measure: str | None = None
    ) -> ScoredItems:
        """Score graded rows by a measure of the benchmark, by default its headline.

        Raises:
            CustosError: If a row does not fit, or an id is missing or repeated.
        """
        scores: dict[str, ItemScore] = {}
        facets: dict[str, Mapping[str, str]] = {}
        of_rows = benchmark.scores_of(measure, rows)
        for number, (score, row) in enumerate(zip(of_rows, rows, strict=True), 1):
            if not score.id or score.id in facets:
                fault = f"id '{score.id}' occurs twice" if score.id else "has no id"
                raise CustosError(f"item {number}: {fault}: items are matched by id")
            facets[score.id] = benchmark.facets_of(row)
            if score.value is not None:
                scores[score.id] = score
        return cls(scores, facets)


def compare_graded(
    benchmark: Benchmark,
    first: ScoredItems,
    second: ScoredItems,
    *,
    measure: str | None = None,
) -> dict[str, Any]:
    """Compare the scores of two graded files on the items that both score.

    Args:
        benchmark: The benchmark that the items belong to.
        first: Items of A.
        second: Items of B, in any order.
        measure: What was scored; default the headline.

    Returns:
        ``metric``. ``a``, ``b`` and ``difference`` (B minus A, paired, clusters resampled
        together), each with ``value``, ``low``, ``high`` and ``n``. ``by``: the difference in every
        part of every facet of the benchmark, and in every cell of the first two. ``a_higher`` and
        ``b_higher``: the number of items on which either side scores higher. ``p``: that of the
        two-sided test that flips the signs of the differences of whole clusters
        (:func:`evaluation.intervals.sign_flip_p`). ``clusters``: their number. ``only_a`` and
        ``only_b``: the number of scored items that the other side lacks.

    Raises:
        CustosError: If no item is scored on both sides.
    """
    a, b = first.scores, second.scores
    ids = [key for key in a if key in b]
    if not ids:
        raise CustosError("the two files share no scored item")
    clusters = [a[key].cluster for key in ids]
    of_a, of_b = (np.array([side[key].value for key in ids], np.float64) for side in (a, b))
    gains = of_b - of_a
    differences = intervals(
        value_columns(gains.tolist()),
        clusters,
        {"mean": MEAN},
        _divisions(benchmark, [first.facets[key] for key in ids]),
    )
    a_higher, b_higher = int((gains < 0).sum()), int((gains > 0).sum())
    metric = measure or benchmark.headline
    full = benchmark.full_score if metric == benchmark.headline else 1.0
    return {
        "metric": metric,
        "a": _mean_score(full, of_a, clusters),
        "b": _mean_score(full, of_b, clusters),
        "difference": differences[OVERALL]["mean"],
        "by": {
            name: {part: measured["mean"] for part, measured in parts.items()}
            for name, parts in differences.items()
            if name != OVERALL
        },
        "a_higher": a_higher,
        "b_higher": b_higher,
        "p": sign_flip_p(gains, number_clusters(clusters)),
        "clusters": len(set(clusters)),
        "only_a": len(a) - len(ids),
        "only_b": len(b) - len(ids),
    }


def _divisions(
    benchmark: Benchmark, facets: Sequence[Mapping[str, str]]
) -> dict[str, list[str | None]]:
    """Return the parts of the items in every facet and in the cells of the first two."""
    parts = {name: [of_item.get(name) for of_item in facets] for name in benchmark.facets}
    if len(parts) < 2:
        return parts
    rows, columns, *_ = parts
    cells = [
        None if row is None or column is None else f"{row} {column}"
        for row, column in zip(parts[rows], parts[columns], strict=True)
    ]
    return {**parts, f"{rows} and {columns}": cells}


def _mean_score(full: float, scores: Floats, clusters: Sequence[str]) -> dict[str, Any]:
    shares = value_columns((scores / full).tolist())
    measured = intervals(shares, clusters, {"mean": RATE.times(full)}, {})
    estimate: dict[str, Any] = measured[OVERALL]["mean"]
    return estimate
