"""CSV files that a spreadsheet opens as they are meant, and without running what they hold."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from judging.files.atomic import atomic_write

BYTE_ORDER_MARK = "\ufeff"
"""Tells Excel that the text is UTF-8."""
DELIMITER_BY_SUFFIX = {".csv": ",", ".tsv": "\t"}
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?")


def write_spreadsheet(
    path: Path,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    delimiter: str | None = None,
) -> None:
    """Write a CSV or TSV file in UTF-8 with a byte order mark, atomically.

    A text that a spreadsheet would take for a formula begins with an apostrophe, unless it is a
    number. ``None`` is an empty cell.

    Args:
        path: File to write, ending in ``.csv`` or ``.tsv``.
        columns: Names in the header.
        rows: Cells of each row.
        delimiter: What separates cells; default a comma in CSV files, a tab in TSV files.
    """
    with atomic_write(path) as file:
        file.write(BYTE_ORDER_MARK)
        writer = csv.writer(file, delimiter=delimiter or DELIMITER_BY_SUFFIX[path.suffix])
        writer.writerow(map(_cell, columns))
        writer.writerows(map(_cell, row) for row in rows)


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
    return f"'{text}" if text.startswith(_FORMULA_STARTS) and not _NUMBER.fullmatch(text) else text
