"""CSV files that a spreadsheet opens as they are meant, and without running what they hold."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from judging.files.atomic import atomic_write

BYTE_ORDER_MARK = "\ufeff"
"""Tells Excel that the text is UTF-8."""
DELIMITER_BY_SUFFIX = {".csv": ",", ".tsv": "\t"}
GUARD = "~'"
"""Stands where a spreadsheet would begin to read a formula. No text of people has it there."""
_EDGE = r"(?:\A|(?<=[,;\t\r\n]))"
"""Where a cell may begin, whatever the spreadsheet takes for the delimiter."""
NULL = r"\N"
"""What databases write for a missing value."""
_START = r"[=+\-@\t\r\n＝＋－＠]"
_WHOLE_NULL = r"\\N\Z"
_NUMBER = r"\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?"
_PLAIN_NUMBER = rf'{_NUMBER}"?(?:\Z|[\]}},;\t\r\n])'
_BULLET = r" [^=(|!\r\n]*(?:\Z|[\r\n])"
"""The rest of an item of a list that calls nothing."""
_WHOLE_NUMBER = re.compile(rf"[+-]?{_NUMBER}")
# A quotation mark behind an edge opens a cell, which the next one ends: "" before = is nothing.
_TO_GUARD = re.compile(
    rf"\A(?={_START}|(?:{GUARD})*{_WHOLE_NULL})"
    rf'|{_EDGE}(?=(?:{GUARD})+"*{_START}|"*[=@＝＋－＠])'
    rf'|(?<=[,;\t])(?="*[+-](?!{_PLAIN_NUMBER}))'
    rf'|(?<=[\r\n])(?="*[+-](?!{_PLAIN_NUMBER}|{_BULLET}))'
)
_GUARDED = re.compile(
    rf'{_EDGE}{GUARD}(?=(?:{GUARD})*"*{_START})|\A{GUARD}(?=(?:{GUARD})*{_WHOLE_NULL})'
)


def write_spreadsheet(
    path: Path,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    delimiter: str | None = None,
) -> None:
    """Write a CSV or TSV file in UTF-8 with a byte order mark, atomically.

    Texts are guarded (see :func:`guarded`); :class:`judging.files.csv_rows.CsvFile` reads them as
    they were. ``None`` is an empty cell.

    Args:
        path: File to write, ending in ``.csv`` or ``.tsv``.
        columns: Names in the header.
        rows: Cells of each row.
        delimiter: What separates cells; default a comma in CSV files, a tab in TSV files.
    """
    delimiter = delimiter or DELIMITER_BY_SUFFIX[path.suffix]
    with atomic_write(path) as file:
        file.write(BYTE_ORDER_MARK)
        # Text that tabs separate has quotation marks or none; those of the header say which.
        quoting: Literal[0, 1] = csv.QUOTE_ALL if delimiter == "\t" else csv.QUOTE_MINIMAL
        csv.writer(file, delimiter=delimiter, quoting=quoting).writerow(map(_cell, columns))
        csv.writer(file, delimiter=delimiter).writerows(map(_cell, row) for row in rows)


def guarded(text: str) -> str:
    """Return a text with a guard wherever a spreadsheet would begin to read a formula.

    That is at its start, and behind what may separate cells: a spreadsheet of another country cuts
    ``x;=1+1`` in a file whose cells commas separate. Numbers stay, and so do items of a list that
    call nothing. :func:`unguarded` gives the text back, letter for letter.
    """
    return text if _WHOLE_NUMBER.fullmatch(text) else _TO_GUARD.sub(GUARD, text)


def unguarded(cell: str) -> str:
    """Return the text that :func:`guarded` made a cell of; a cell without guards is that text."""
    return _GUARDED.sub("", cell) if GUARD in cell else cell


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
    return guarded(text)
