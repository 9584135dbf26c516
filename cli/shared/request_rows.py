"""Rows of a file as requests for a judge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from judging import CustosError, JudgeRequest, LabelledExample
from judging.records import read_rows, with_absolute_images
from judging.tasks import get_task
from judging.types import parse_record


def check_rows(source: Path, strict: bool) -> tuple[int, dict[int, str]]:
    """Read the whole file once, before a model is loaded.

    Returns:
        Number of rows that are requests, and what is wrong with each other row.

    Raises:
        CustosError: With ``strict``, on the first row that is no request or that its task refuses.
    """
    num_requests = 0
    problems = {}
    for row, parsed in _parsed_rows(source):
        if isinstance(parsed, CustosError):
            if strict:
                raise parsed
            problems[row] = str(parsed).removeprefix(f"{source} row {row}: ")
            continue
        num_requests += 1
        if strict:
            try:
                get_task(parsed.task).check(parsed)
            except CustosError as error:
                raise CustosError(f"{source} row {row}: {error}") from None
    return num_requests, problems


def read_requests(source: Path) -> Iterator[tuple[int, JudgeRequest]]:
    """Yield ``(row number, request)`` for the good rows; a row without an id gets its number."""
    for row, parsed in _parsed_rows(source):
        if isinstance(parsed, JudgeRequest):
            yield row, parsed if parsed.id else parsed.model_copy(update={"id": str(row)})


def _parsed_rows(source: Path) -> Iterator[tuple[int, JudgeRequest | CustosError]]:
    for row, decoded in read_rows(source):
        try:
            if isinstance(decoded, CustosError):
                raise decoded
            is_labelled = isinstance(decoded, dict) and "label" in decoded
            model = LabelledExample if is_labelled else JudgeRequest
            record = parse_record(model, decoded, f"{source} row {row}")
            parsed = with_absolute_images(record, source.parent)
            yield row, parsed.request() if isinstance(parsed, LabelledExample) else parsed
        except CustosError as error:
            yield row, error
