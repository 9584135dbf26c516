"""Rows that could not be used: shown, listed in a file, and counted as a failure."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import typer

from data_prep.tables.reader import BadRow
from judging.errors import CustosError
from judging.files.records import write_records
from judging.log_lines import one_line
from judging.types import FAILURES

MAX_BAD_ROWS_SHOWN = 10
MAX_ROWS_NAMED = 5


def show_problems(source: Path, problems: Mapping[int, str]) -> None:
    """Print bad rows to standard error, one line for all rows with the same message."""
    rows_by_message: dict[str, list[int]] = {}
    for row, message in problems.items():
        rows_by_message.setdefault(message, []).append(row)
    for message, rows in itertools.islice(rows_by_message.items(), MAX_BAD_ROWS_SHOWN):
        typer.echo(one_line(f"{source} {_name_rows(rows)}: {message}"), err=True)
    others = list(rows_by_message.values())[MAX_BAD_ROWS_SHOWN:]
    if others:
        typer.echo(f"and {sum(map(len, others))} more bad rows", err=True)


def _name_rows(rows: Sequence[int]) -> str:
    """Return ``row 3``, ``rows 1-12 (12 rows)`` or ``rows 2, 5, ... (7 rows)``."""
    if len(rows) == 1:
        return f"row {rows[0]}"
    if list(rows) == list(range(rows[0], rows[0] + len(rows))):
        return f"rows {rows[0]}-{rows[-1]} ({len(rows)} rows)"
    shown = ", ".join(map(str, rows[:MAX_ROWS_NAMED]))
    return f"rows {shown}{', ...' if len(rows) > MAX_ROWS_NAMED else ''} ({len(rows)} rows)"


def show_skipped(messages: Sequence[str]) -> None:
    """Print why the first of the skipped rows were skipped, and how many more there are."""
    for message in messages[:MAX_BAD_ROWS_SHOWN]:
        typer.echo(one_line(f"skipped: {message}"), err=True)
    if len(messages) > MAX_BAD_ROWS_SHOWN:
        typer.echo(f"skipped: {len(messages) - MAX_BAD_ROWS_SHOWN} more bad rows", err=True)


def check_skipped(source: Path | str, messages: Sequence[str], *, allow_dropped: bool) -> None:
    """Print why rows were skipped.

    Raises:
        CustosError: If there are such rows and this is not allowed.
    """
    if messages and not allow_dropped:
        raise CustosError(
            f"{source}: {len(messages)} rows cannot be used (the first: {messages[0]}); "
            "--allow-dropped leaves them out"
        )
    show_skipped(messages)


def show_dropped(bad_rows: Mapping[int, BadRow]) -> None:
    """Print why the first of the rows that are left out are, and how many more there are."""
    show_skipped([str(row.error) for row in bad_rows.values()])


def write_problems(path: Path, problems: Mapping[int, str]) -> None:
    """Write ``{"row", "message"}`` lines; without problems, remove an earlier run's file."""
    if not problems:
        path.unlink(missing_ok=True)
        return
    write_records(
        path, ({"row": row, "message": message} for row, message in sorted(problems.items()))
    )


def fail_without_verdict(source: Path, statuses: Collection[str]) -> None:
    """Exit with status 1 if none of these statuses of rows stands for a verdict."""
    if set(statuses) <= FAILURES:
        typer.echo(f"error: {source}: no row got a verdict", err=True)
        raise typer.Exit(1)
