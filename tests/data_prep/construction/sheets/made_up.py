"""Rows, and sheets as people fill them in."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from data_prep.construction.forms.base import Form
from data_prep.construction.sheets import Sheet, item_name, read_table, write_table
from data_prep.construction.steps.base import Row

Cells = dict[str, dict[str, str]]
"""Row id to what is filled in, by column."""


def response_rows(count: int) -> list[Row]:
    return [
        {
            "id": f"q{n}/secret-model",
            "question": f"How many, {n}?",
            "references": ["two", "three"],
            "response": f"It is {n}.",
            "metadata": {"answerer": "secret-model"},
        }
        for n in range(count)
    ]


def fill(path: Path, form: Form, rows: list[Row], cells: Cells) -> Sheet:
    """Write a sheet, fill it in as a spreadsheet program would, and read it."""
    write_table(path, form, rows)
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.DictReader(file))
    by_item = {item_name(name): filled for name, filled in cells.items()}
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        table: Any = csv.DictWriter(file, list(lines[0]))
        table.writeheader()
        table.writerows({**line, **by_item.get(line["item"], {})} for line in lines)
    return read_table(path, form)
