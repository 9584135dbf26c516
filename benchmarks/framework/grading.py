"""Grading of the responses to a benchmark: requests for a judge, and rows with its verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.framework.base import Benchmark, join_responses
from benchmarks.framework.files import Row, check_ids, error_location, read_file
from judging.errors import CustosError, FieldError
from judging.types import JudgeRequest, Reasoning, Verdict

if TYPE_CHECKING:
    from clients.chat import Prices, Usage


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
        """Return the number of requests of all rows."""
        return sum(map(len, self.requests))

    def numbered_requests(self) -> Iterator[tuple[int, JudgeRequest]]:
        """Yield each request with the index of its row, from 0."""
        for index, requests in enumerate(self.requests):
            yield from ((index, request) for request in requests)

    def with_reasoning(self, reasoning: Reasoning) -> ResponsesToGrade:
        """Return the same responses, to be graded with what they hold in thinking tags or not."""
        changes = {"reasoning": reasoning}
        requests = [
            tuple(request.model_copy(update=changes) for request in of_row)
            for of_row in self.requests
        ]
        return replace(self, requests=requests)

    def with_rubrics(self, path: Path) -> ResponsesToGrade:
        """Return the same responses, to be graded under a user's rubrics.

        Args:
            path: YAML file of rubric names and instructions.

        Raises:
            CustosError: If the benchmark has no rubrics to replace or the file does not fit.
        """
        task = self.benchmark.register_rubrics(path)
        requests = [
            tuple(request.model_copy(update={"task": task}) for request in of_row)
            for of_row in self.requests
        ]
        return replace(self, requests=requests)

    def grade(self, verdicts: Iterable[tuple[int, Verdict]]) -> GradedRows:
        """Turn verdicts into graded rows.

        Args:
            verdicts: Index of a row and a verdict, one for each of ``numbered_requests`` and in the
                same order.
        """
        by_row: list[list[Verdict]] = [[] for _ in self.rows]
        for index, verdict in verdicts:
            by_row[index].append(verdict)
        return GradedRows(
            rows=[
                self.benchmark.graded_row(row, of_row)
                for row, of_row in zip(self.rows, by_row, strict=True)
            ],
            unscored={
                number: verdict.message or verdict.status
                for number, of_row in enumerate(by_row, 1)
                for verdict in of_row
                if verdict.label is None
            },
            statuses=frozenset(verdict.status for of_row in by_row for verdict in of_row),
        )


def read_responses(
    benchmark: Benchmark, path: Path, items: str | None, pictures: Path
) -> ResponsesToGrade:
    """Read responses and build the requests that grade them.

    Args:
        benchmark: The benchmark that the items belong to.
        path: Items with their responses, in the benchmark's own shape.
        items: Official items (file, folder or hub id), for responses that hold little more than
            ids.
        pictures: Folder for pictures that come as bytes.

    Raises:
        CustosError: If a file cannot be read or a row does not fit; the message names the row.
    """
    rows = list(read_file(path))
    if not rows:
        raise CustosError(f"{path}: no items")
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
    """Return the requests of a row; errors name its number, as it may lack an id."""
    try:
        return benchmark.requests(row)
    except FieldError as error:
        raise error.at(f"row {number}: {error.location}".removesuffix(": ")) from None


def time_and_cost(
    judge: str,
    num_requests: int,
    seconds: float | None,
    usage: Usage | None,
    prices: Prices | None,
) -> dict[str, Any]:
    """Return the time and cost of grading a file, as ``build_table`` takes them.

    Args:
        judge: Name of the judge.
        num_requests: Requests that the judge answered.
        seconds: Running time; ``None`` if several runs shared the work. Time and cost are then not
            known.
        usage: Tokens that a server counted; ``None`` for a judge on this machine.
        prices: Prices of the tokens, where they are known.

    Returns:
        ``judge, requests, seconds, usage`` and ``cost``: an amount, ``free`` for a judge on this
        machine, or ``None`` where it is not known.
    """
    cost: float | str | None = "free"
    if usage is not None:
        cost = None if prices is None or seconds is None else float(prices.cost(usage))
    return {
        "judge": judge,
        "requests": num_requests,
        "seconds": seconds,
        "usage": usage.model_dump() if usage is not None else None,
        "cost": cost,
    }
