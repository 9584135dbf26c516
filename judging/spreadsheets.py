"""CSV files that a spreadsheet opens as they are meant, and without running what they hold."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from judging.records import atomic_write

BYTE_ORDER_MARK = "\ufeff"
"""Tells Excel that the text is UTF-8."""
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def write_spreadsheet(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
    """Write a CSV file in UTF-8 with a byte order mark, atomically; return the number of rows.

    A cell that a spreadsheet would take for a formula begins with an apostrophe. ``None`` is an
    empty cell.
    """
    count = 0
    with atomic_write(path) as file:
        file.write(BYTE_ORDER_MARK)
        writer = csv.writer(file)
        writer.writerow(map(_cell, columns))
        for row in rows:
            writer.writerow(map(_cell, row))
            count += 1
    return count


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
