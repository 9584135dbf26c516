"""Rows of a file as requests for a judge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import BadRow, parse_table
from judging import CustosError, JudgeRequest
from judging.csv_rows import row_location
from judging.tasks import get_task


def check_rows(source: Path, mapping: TableMapping, strict: bool) -> tuple[int, dict[int, str]]:
    """Read the whole file once, before a model is loaded.

    Returns:
        Number of rows that are requests, and what is wrong with each other row.

    Raises:
        CustosError: With ``strict``, on the first row that is no request or that its task refuses.
    """
    num_requests = 0
    problems = {}
    for row, parsed in parse_table(source, JudgeRequest, mapping):
        if isinstance(parsed, BadRow):
            if strict:
                raise parsed.error
            problems[row] = str(parsed.error).removeprefix(f"{row_location(source, row)}: ")
            continue
        num_requests += 1
        if strict:
            try:
                get_task(parsed.task).check(parsed)
            except CustosError as error:
                raise CustosError(f"{source} row {row}: {error}") from None
    return num_requests, problems


def read_requests(
    source: Path, mapping: TableMapping | None = None
) -> Iterator[tuple[int, JudgeRequest]]:
    """Yield ``(row number, request)`` for the good rows; a row without an id gets its number."""
    for row, parsed in parse_table(source, JudgeRequest, mapping):
        if isinstance(parsed, JudgeRequest):
            yield row, parsed if parsed.id else parsed.model_copy(update={"id": str(row)})
