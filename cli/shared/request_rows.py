"""Rows of a table as requests for a judge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from clients.kept_verdicts import NumberedRequest
from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import BadRow, parse_table
from data_prep.tables.source import open_table
from judging import CustosError, JudgeRequest, Verdict
from judging.errors import FieldError
from judging.files.csv_rows import row_location
from judging.files.pictures import check_pictures
from judging.fingerprint import file_sha256
from judging.log_lines import one_line
from judging.tasks import get_task
from judging.types import shortened


def read_requests(
    source: Path, mapping: TableMapping | None = None, risk: float | None = None
) -> Iterator[NumberedRequest]:
    """Yield ``(row number, request)`` for every row; a row without an id gets its number as one.

    A row that is no valid request comes as the verdict on it, with status ``invalid``.

    Args:
        source: Table.
        mapping: What its columns are called.
        risk: Risk of every request; ``None``: that of its row, if it states one.

    Raises:
        CustosError: If the table cannot be read or lacks a column.
    """
    for row, parsed in parse_table(source, JudgeRequest, mapping):
        if isinstance(parsed, BadRow):
            message = str(parsed.error).removeprefix(f"{row_location(source, row)}: ")
            row_id = shortened(parsed.id) or str(row)
            yield row, Verdict(id=row_id, status="invalid", message=shortened(message))
            continue
        changes: dict[str, Any] = {} if parsed.id else {"id": str(row)}
        changes |= {} if risk is None else {"risk": risk}
        request = parsed.model_copy(update=changes)
        try:
            get_task(request.task).check(request)
            check_pictures(request.images)
        except FieldError as error:
            yield row, Verdict.from_error(_with_column(error, request, mapping), request)
        except CustosError as error:
            yield row, Verdict.from_error(error, request)
        else:
            yield row, request


def _with_column(
    error: FieldError, request: JudgeRequest, mapping: TableMapping | None
) -> FieldError:
    """Return an error that names the column of the mapping if its cell is empty."""
    column = None if mapping is None else mapping.columns.get(error.field)
    if column is None or getattr(request, error.field, None):
        return error
    return FieldError(error.field, f"column '{column}' is empty; {error.message}")


def leaves_mode_open(request: JudgeRequest) -> bool:
    """Return whether a request has several references and does not say how they are meant."""
    is_open = len(request.references) > 1 and "reference_mode" not in request.model_fields_set
    return is_open and get_task(request.task).has_reference_modes


def warn_of_open_modes(source: Path, num_rows: int) -> None:
    """Say that rows with several references were read as one answer in parts.

    Args:
        source: Table of the rows.
        num_rows: Rows that leave it open; 0 prints nothing.
    """
    if num_rows:
        rows = "1 row has" if num_rows == 1 else f"{num_rows} rows have"
        typer.echo(
            f"warning: {source}: {rows} several references and no reference_mode; 'all' was taken "
            "(together they are the answer). If each one is enough, add --reference-mode any",
            err=True,
        )


def note_doubts(source: Path | str, mapping: TableMapping) -> None:
    """Print what was decided about the text of a table and can be stated by an option."""
    table = open_table(source, mapping.text_format)
    column = mapping.columns.get("references", "references")
    for doubt in table.doubts(column, mapping.separator):
        typer.echo(one_line(f"note: {source}: {doubt}"), err=True)


def source_digest(source: Path) -> str:
    """Return the SHA-256 of a file; empty for a hub data set, whose revision does not change."""
    return file_sha256(source) if source.is_file() else ""
