"""Rows of CSV and TSV files, as spreadsheets and Python write them."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from judging.errors import CustosError, system_errors_at
from judging.types import MAX_IMAGE_CHARS

DELIMITERS = {".csv": (",", ";", "\t"), ".tsv": ("\t",)}
"""What may stand between the cells, by the ending of the file; the likeliest first."""

_REMEDY = "save the table as UTF-8 text (Excel: 'CSV UTF-8')"


def row_location(path: Path, number: int) -> str:
    """Return how errors name a row: by its number, from 1, below the header or in the file."""
    below = " below the header" if path.suffix in DELIMITERS else ""
    return f"{path} row {number}{below}"


def csv_columns(path: Path) -> tuple[str, ...]:
    """Return the names in the header of a CSV or TSV file.

    A column without a name, such as the index that pandas writes, is called ``column 1`` after its
    place.

    Raises:
        CustosError: If the file is empty or not UTF-8, or a name occurs twice.
    """
    return _read_header(path)[1]


def csv_delimiter(path: Path) -> str:
    """Return what separates the cells of a CSV or TSV file.

    Raises:
        CustosError: As :func:`csv_columns`.
    """
    return _read_header(path)[0]


def csv_rows(path: Path) -> Iterator[tuple[int, dict[str, str] | CustosError]]:
    """Yield ``(number from 1 below the header, cells that are not empty)`` for every row.

    Rows without any text are counted, so that a row of a spreadsheet has its number plus one, but
    are not yielded. A row that cannot be used stands as an error, and the next one follows.

    Raises:
        CustosError: If the header is bad, or quotation marks leave open where a row ends.
    """
    delimiter, names = _read_header(path)
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        next(reader)
        number = 0
        while True:
            number += 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise CustosError(f"{row_location(path, number)}: {_fault(error)}") from None
            if any(cell.strip() for cell in cells):
                yield number, _as_row(cells, names, row_location(path, number))


def _read_header(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the delimiter and the names of the columns.

    The delimiter is the one that cuts the header into most names.
    """
    csv.field_size_limit(max(csv.field_size_limit(), MAX_IMAGE_CHARS))
    headers: dict[str, list[str]] = {}
    fault: str | None = None
    for delimiter in DELIMITERS[path.suffix]:
        with (
            system_errors_at(path),
            path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file,
        ):
            try:
                headers[delimiter] = next(csv.reader(file, delimiter=delimiter, strict=True), [])
            except csv.Error as error:
                fault = f"the header cannot be read: {_fault(error)}"
    delimiter = max(headers, key=lambda candidate: len(headers[candidate]), default="")
    if fault is not None and len(headers.get(delimiter, ())) < 2:
        raise CustosError(f"{path}: {fault}")
    if not headers[delimiter]:
        raise CustosError(
            f"{path}: the file is empty, expected a first row with the names of the columns"
        )
    if headers[delimiter][0].lower().startswith("sep="):
        raise CustosError(f"{path}: the first row tells Excel what separates cells; delete it")
    names = tuple(
        name.strip() or f"column {number}" for number, name in enumerate(headers[delimiter], 1)
    )
    for name in names:
        if (fault := _text_fault(name)) is not None:
            raise CustosError(f"{path}: the header {fault}")
    check_names(path, names)
    return delimiter, names


def check_names(path: Path, names: Sequence[str]) -> None:
    """Check that all columns of a table have a name of their own.

    Raises:
        CustosError: If a name is missing or occurs twice.
    """
    for column, name in enumerate(names, 1):
        if not name:
            raise CustosError(f"{path}: column {column} has no name in the header")
    for name, count in Counter(names).items():
        if count > 1:
            raise CustosError(f"{path}: {count} columns have the name '{name}' in the header")


def _as_row(
    cells: list[str], names: tuple[str, ...], location: str
) -> dict[str, str] | CustosError:
    if len(cells) != len(names):
        return CustosError(
            f"{location}: expected {len(names)} cells, as the header has, got {len(cells)}; "
            "a cell that holds the delimiter or a line break must stand in quotation marks"
        )
    row = {name: cell for name, cell in zip(names, cells, strict=True) if cell.strip()}
    for name, cell in row.items():
        if (fault := _text_fault(cell)) is not None:
            return CustosError(f"{location}: column '{name}' {fault}")
    return row


def _text_fault(text: str) -> str | None:
    if "\0" in text:
        return f"holds a NUL character, as UTF-16 text does; {_REMEDY}"
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"is not UTF-8 text; {_REMEDY}"
    return None


def _fault(error: csv.Error) -> str:
    text = str(error)
    if "field larger than field limit" in text:
        return (
            f"a cell of more than {MAX_IMAGE_CHARS:,} characters; is a quotation mark not closed?"
        )
    if "unexpected end of data" in text:
        return "a quotation mark is not closed before the file ends"
    return f"{text}; a quotation mark inside a quoted cell must be written twice"
