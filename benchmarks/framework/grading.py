"""Grading of the responses to a benchmark: requests for a judge, and rows with its verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.framework.base import BENCHMARKS, Benchmark
from benchmarks.framework.files import Row, check_ids, error_location, join_responses, read_items
from judging.errors import CustosError, FieldError
from judging.tasks.base import register_rubrics
from judging.types import JudgeRequest, Verdict


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
