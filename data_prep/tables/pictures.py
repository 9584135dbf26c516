"""Pictures that the rows of a table name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from judging.errors import errors_at
from judging.files.csv_rows import row_location
from judging.files.pictures import check_pictures
from judging.types import JudgeRequest


def check_row_pictures(table: Path | str, rows: Iterable[tuple[int, JudgeRequest]]) -> None:
    """Check that the pictures of numbered rows can be read, each picture once.

    Raises:
        FieldError: If one cannot be read; the message names table and row.
    """
    checked: set[str] = set()
    for number, row in rows:
        new = set(row.images) - checked
        if new:
            with errors_at(row_location(Path(table), number)):
                check_pictures(sorted(new))
            checked |= new
