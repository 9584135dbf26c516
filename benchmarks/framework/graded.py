"""Graded files: how responses are graded, the scores of items, and two files item by item."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.framework.base import BENCHMARKS, Benchmark, ItemScore
from benchmarks.framework.estimates import DIFFERENCE, OVERALL, RATE, intervals, value_columns
from benchmarks.framework.files import Row, check_ids, error_location, join_responses, read_items
from evaluation.intervals import Floats, number_clusters, sign_flip_p
from judging.errors import CustosError, FieldError
from judging.tasks.base import register_rubrics
from judging.types import JudgeRequest, Verdict


@dataclass(frozen=True)
class GradedModel:
    """One model's graded responses to a benchmark, with what is known of the grades."""

    benchmark: Benchmark
    rows: Sequence[Row]
    source: str = ""
    """Path of the file."""
    people: Sequence[Row] = ()
    """Some of the items as people graded them: an id, the fields of the graded shape and, where
    they were drawn with one, their ``sampling_probability``."""
    random_sample: bool = False
    """Whether every item was equally likely to be graded by people."""
    run: Mapping[str, Any] | None = None
    """Time and cost of grading."""
    measured: Path | None = None
    """Report or folder that says how any judge errs; default what is known of the file's own."""


def scores_of(benchmark: Benchmark, rows: Sequence[Row], measure: str) -> list[ItemScore]:
    """Score graded rows by the headline or another measure of their benchmark.

    Raise ``CustosError`` if the benchmark has no such measure, or a row does not fit.
    """
    if measure == benchmark.headline:
        return benchmark.scores(rows)
    others = benchmark.other_scores(rows)
    if measure not in others:
        known = ", ".join((benchmark.headline, *others))
        raise CustosError(f"measure '{measure}' of '{benchmark.name}' is not one of {known}")
    return others[measure]


@dataclass(frozen=True)
class ScoredItems:
    """Scored items of a graded file."""

    benchmark: Benchmark
    measure: str
    full: float
    """Score of an item that is right throughout."""
    scores: Mapping[str, ItemScore]
    """By id; those without a score are left out."""
    facets: Mapping[str, Mapping[str, str]]
    """By id: facet to part."""

    @classmethod
    def of(
        cls, benchmark: Benchmark, rows: Sequence[Row], measure: str | None = None
    ) -> ScoredItems:
        """Score graded rows by a measure of the benchmark, by default its headline.

        Raise ``CustosError`` if a row does not fit, or an id is missing or repeated.
        """
        measure = measure or benchmark.headline
        full = benchmark.full_score if measure == benchmark.headline else 1.0
        scores: dict[str, ItemScore] = {}
        facets: dict[str, Mapping[str, str]] = {}
        of_rows = scores_of(benchmark, rows, measure)
        for number, (score, row) in enumerate(zip(of_rows, rows, strict=True), 1):
            if not score.id or score.id in facets:
                fault = f"id '{score.id}' occurs twice" if score.id else "has no id"
                raise CustosError(f"item {number}: {fault}: items are matched by id")
            facets[score.id] = benchmark.facets_of(row)
            if score.value is not None:
                scores[score.id] = score
        return cls(benchmark, measure, full, scores, facets)


def compare_graded(first: ScoredItems, second: ScoredItems) -> dict[str, Any]:
    """Compare the scores of two graded files, under the same measure, on the items that both score.

    Raise ``CustosError`` if no item is scored on both sides.

    Returns:
        ``metric``. ``a``, ``b`` and ``difference`` (B minus A, paired, clusters resampled
        together), each with ``value``, ``low``, ``high`` and ``n``. ``by``: the difference in every
        part of every facet of the benchmark, and in every cell of the first two. ``a_higher`` and
        ``b_higher``: the number of items on which either side scores higher. ``p``: that of the
        two-sided test that flips the signs of the differences of whole clusters
        (:func:`evaluation.intervals.sign_flip_p`). ``clusters``: their number. ``only_a`` and
        ``only_b``: the number of scored items that the other side lacks.
    """
    a, b, full = first.scores, second.scores, first.full
    ids = [key for key in a if key in b]
    if not ids:
        raise CustosError("the two files share no scored item")
    clusters = [a[key].cluster for key in ids]
    of_a, of_b = (np.array([side[key].value for key in ids], np.float64) for side in (a, b))
    gains = of_b - of_a

    def mean_of(scores: Floats) -> Any:
        shares = value_columns((scores / full).tolist())
        return intervals(shares, clusters, {"mean": RATE.times(full)}, {})[OVERALL]["mean"]

    parts = {name: [first.facets[key].get(name) for key in ids] for name in first.benchmark.facets}
    if len(parts) > 1:
        rows, columns, *_ = parts
        parts[f"{rows} and {columns}"] = [
            None if row is None or column is None else f"{row} {column}"
            for row, column in zip(parts[rows], parts[columns], strict=True)
        ]
    shares = value_columns((gains / full).tolist())
    differences = intervals(shares, clusters, {"mean": DIFFERENCE.times(full)}, parts)
    return {
        "metric": first.measure,
        "a": mean_of(of_a),
        "b": mean_of(of_b),
        "difference": differences.pop(OVERALL)["mean"],
        "by": {
            name: {part: measured["mean"] for part, measured in of_name.items()}
            for name, of_name in differences.items()
        },
        "a_higher": int((gains < 0).sum()),
        "b_higher": int((gains > 0).sum()),
        "p": sign_flip_p(gains, number_clusters(clusters)),
        "clusters": len(set(clusters)),
        "only_a": len(a) - len(ids),
        "only_b": len(b) - len(ids),
    }


@dataclass(frozen=True)
class GradedRows:
    """Rows in the benchmark's graded shape, and the statuses of the verdicts on them."""

    rows: list[Row]
    unscored: dict[int, str]
    """Row number, from 1, to the reason why a verdict on it holds no label."""
    statuses: frozenset[str]
    """Statuses of all verdicts."""


@dataclass(frozen=True)
class ResponsesToGrade:
    """Items with their responses, and the requests that a judge must answer to grade them."""

    benchmark: Benchmark
    rows: Sequence[Row]
    requests: Sequence[tuple[JudgeRequest, ...]]
    """Requests of every row, in the order of ``rows``; none where rules decide."""

    @property
    def num_requests(self) -> int:
        """Count the requests of all rows."""
        return sum(map(len, self.requests))

    def numbered_requests(self) -> Iterator[tuple[int, JudgeRequest]]:
        """Yield each request with the index of its row, from 0."""
        for index, requests in enumerate(self.requests):
            yield from ((index, request) for request in requests)

    def with_changes(self, **changes: object) -> ResponsesToGrade:
        """Change fields of every request, such as how text in thinking tags is treated."""
        changed = [tuple(r.model_copy(update=changes) for r in of_row) for of_row in self.requests]
        return replace(self, requests=changed)

    def grade(self, verdicts: Iterable[tuple[int, Verdict]]) -> GradedRows:
        """Turn verdicts into graded rows.

        Each verdict comes with the index of its row, one for each of ``numbered_requests`` and in
        the same order.
        """
        by_row: list[list[Verdict]] = [[] for _ in self.rows]
        for index, verdict in verdicts:
            by_row[index].append(verdict)
        numbered = [(row, each) for row, of_row in enumerate(by_row, 1) for each in of_row]
        return GradedRows(
            rows=[
                self.benchmark.graded_row(row, of_row)
                for row, of_row in zip(self.rows, by_row, strict=True)
            ],
            unscored={
                number: verdict.message or verdict.status
                for number, verdict in numbered
                if verdict.label is None
            },
            statuses=frozenset(verdict.status for _, verdict in numbered),
        )


def own_rubrics(benchmark: Benchmark, path: Path) -> str:
    """Register a task with a user's rubrics in place of the benchmark's; return its name.

    The YAML file maps rubric names to instructions. Raise ``CustosError`` if the benchmark has not
    exactly one task, or the file does not fit.
    """
    if len(benchmark.tasks) != 1:
        known = " and ".join(each.name for each in BENCHMARKS if len(each.tasks) == 1)
        raise CustosError(f"--rubric-file: only {known} have rubrics to replace")
    return register_rubrics(benchmark.tasks[0], path)


def read_responses(
    benchmark: Benchmark, path: Path, items: str | None, pictures: Path
) -> ResponsesToGrade:
    """Read responses and build the requests that grade them.

    The file at ``path`` has items with their responses, in the benchmark's own shape. Responses
    that hold little more than ids are completed from the official ``items`` (file, folder or hub
    id). Pictures that come as bytes are saved in ``pictures``. Raise ``CustosError`` if a file
    cannot be read or a row does not fit; the error names the row.
    """
    rows = read_items(path)
    official = benchmark.load(items, pictures) if items is not None else None
    with error_location(path):
        if official is not None:
            rows = join_responses(official, rows, benchmark.item_id)
        rows = benchmark.completed(rows)
        rows = [benchmark.with_images(row, path.parent, pictures) for row in rows]
        if benchmark.keyed:
            check_ids(rows)
        requests = [_requests(benchmark, number, row) for number, row in enumerate(rows, 1)]
        return ResponsesToGrade(benchmark, rows, requests)


def _requests(benchmark: Benchmark, number: int, row: Row) -> tuple[JudgeRequest, ...]:
    """Build the requests of a row; errors name its number, as it may lack an id."""
    try:
        return benchmark.requests(row)
    except FieldError as error:
        raise error.at(f"row {number}: {error.location}".removesuffix(": ")) from None
