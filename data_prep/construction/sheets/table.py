"""Sheets as CSV: one line per row, with what is shown and cells to fill in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from data_prep.construction.forms.base import Filled, Form
from data_prep.construction.sheets.rows import item_name
from data_prep.construction.steps.base import Row
from judging.errors import CustosError, errors_at
from judging.files.csv_rows import DELIMITER_BY_SUFFIX, CsvFile, row_location, write_spreadsheet

ITEM, PICTURES = "item", "pictures"


@dataclass(frozen=True)
class Sheet:
    """A sheet as one person filled it in."""

    annotator: str
    """Name of the file, without its ending."""
    filled: Mapping[str, Filled]
    """Name of an item to its values; items that are not filled in are missing."""


def write_table(path: Path, form: Form, rows: Sequence[Row]) -> None:
    """Write a CSV or TSV sheet; only files of pictures are named in it, the HTML page shows them.

    Raises:
        CustosError: If the file has another ending.
    """
    if path.suffix not in DELIMITER_BY_SUFFIX:
        raise CustosError(f"{path}: expected a file ending in .csv, .tsv or .html")
    shown = [form.shown(row) for row in rows]
    headings = list(dict.fromkeys(heading for texts in shown for heading in texts))
    columns = [ITEM, PICTURES, *headings, *(entry.name for entry in form.entries)]
    start_values = [form.start_values(row) for row in rows]
    lines = (
        [
            item_name(row["id"]),
            "; ".join(name for name in row.get("images", ()) if not name.startswith("data:")),
            *(texts.get(heading) for heading in headings),
            *(values.get(entry.name) for entry in form.entries),
        ]
        for row, texts, values in zip(rows, shown, start_values, strict=True)
    )
    write_spreadsheet(path, columns, lines)


def read_table(path: Path, form: Form) -> Sheet:
    """Read a filled-in sheet, from a spreadsheet program or from the page.

    Raises:
        CustosError: If it cannot be read, is no sheet of this form, names an item twice, or a row
            is filled in only in part.
    """
    if path.suffix not in DELIMITER_BY_SUFFIX or not path.is_file():
        raise CustosError(f"{path}: expected a filled-in sheet, a .csv or .tsv file")
    file = CsvFile(path)
    if missing := {ITEM, *form.needed} - set(file.columns):
        raise CustosError(
            f"{path}: no sheet of form '{form.name}': column '{min(missing)}' is missing"
        )
    filled: dict[str, Filled] = {}
    seen: set[str] = set()
    for number, cells in file.rows():
        location = row_location(path, number)
        if isinstance(cells, CustosError):
            raise cells
        name = cells.get(ITEM, "")
        if name in seen:
            raise CustosError(f"{location}: item '{name}' occurs twice")
        seen.add(name)
        with errors_at(location):
            values = form.read(cells)
        if values is not None:
            filled[name] = values
    return Sheet(path.stem, filled)
