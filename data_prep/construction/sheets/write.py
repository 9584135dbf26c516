"""A sheet as a page or as a table, by the ending of its file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from data_prep.construction.forms.base import Form
from data_prep.construction.sheets.page import write_page
from data_prep.construction.sheets.table import write_table
from data_prep.construction.steps.base import Row


def write_sheet(path: Path, form: Form, rows: Sequence[Row]) -> None:
    """Write a sheet: ``.html`` is a page, ``.csv`` and ``.tsv`` are tables.

    Raises:
        CustosError: If the file has another ending, or as ``write_page``.
    """
    if path.suffix == ".html":
        write_page(path, form, rows)
    else:
        write_table(path, form, rows)
