"""Sheets for people: rows in random order, as a CSV table, and several sheets brought together.

A row's id may name the model that wrote a response, so people see a digest of it. Gold items, whose
right filling is known, are mixed in to check people with.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

from pydantic import Field

from clients.chat import Reject
from data_prep.construction.forms.base import LEFT_OUT, Filled, Form, Value
from data_prep.construction.model_writer import load_rows
from data_prep.construction.sheet_page import PageItem, picture_url, write_page
from data_prep.construction.steps.base import Level, Row, StepRow, Texts
from data_prep.errors import UnusableText
from data_prep.tables.cells import DEFAULT_SEPARATOR, as_list
from data_prep.tables.mapping import LIST_FIELDS
from judging.errors import CustosError, FieldError, errors_at
from judging.files.csv_rows import (
    DELIMITER_BY_SUFFIX,
    SPREADSHEETS,
    CsvFile,
    row_location,
    write_spreadsheet,
)
from judging.files.values import is_empty

GOLD = "gold"
"""Field of a gold item: what is to be filled in, by entry."""
ITEM, PICTURES = "item", "pictures"
ANNOTATIONS, DIFFERS = "annotations", "differs"
"""Fields of a row that people disagree on: everybody's values, and the entries that differ."""
OF_A_LABEL = ("error_type", "second_label", "annotator_labels", "tags", "critique", "confidence")
"""Fields of a row that go with an earlier label."""


class SheetRow(StepRow):
    """A row that people see. Every form says which fields it needs."""

    responses: Texts | None = None
    options: Texts | None = None
    level: Level | None = None
    human_answers: tuple[Any, ...] | None = None
    metadata: dict[str, Any] | None = None


class GoldRow(SheetRow):
    """A row whose right filling is known."""

    gold: dict[str, Any] = Field(min_length=1)


def item_name(row_id: str) -> str:
    """Digest a row's id into the name under which people see the row."""
    return hashlib.sha256(row_id.encode()).hexdigest()[:12]


def read_sheet_rows(path: Path, form: Form, row_type: type[SheetRow] = SheetRow) -> list[Row]:
    """Read the rows that a sheet is made of, with absolute pictures.

    Errors are those of ``load_rows``; ``FieldError`` is also raised if a row lacks what the form
    needs.
    """
    rows = [row.with_fields() for row in load_rows(path, row_type)]
    for row in rows:
        for name in LIST_FIELDS if path.suffix in SPREADSHEETS else ():
            if isinstance(cell := row.get(name), str):
                row[name] = as_list(cell, DEFAULT_SEPARATOR)
        if missing := [name for name in form.needs if is_empty(row.get(name))]:
            raise FieldError(missing[0], "Field required", f"{path}: row '{row['id']}'")
    return rows


def read_gold_rows(path: Path, form: Form) -> list[Row]:
    """Read gold items; also raise ``CustosError`` for gold values that do not fit the form."""
    entries = {entry.name: entry for entry in form.entries}
    rows = read_sheet_rows(path, form, GoldRow)
    for row in rows:
        with errors_at(f"{path}: row '{row['id']}'"):
            for name, value in row[GOLD].items():
                if name not in entries:
                    raise CustosError(f"form '{form.name}' has no '{name}'")
                entries[name].read(_gold_cell(value))
    return rows


def _gold_cell(value: Any) -> str:
    """Write a gold value as a person would fill it in."""
    return "; ".join(map(str, value)) if isinstance(value, list) else str(value)


def mix_in_gold(rows: Sequence[Row], gold: Sequence[Row], share: float, seed: int) -> list[Row]:
    """Put rows in random order, with gold items as the given share of the whole, in [0, 1).

    If there are too few gold items, all are taken. Another seed draws others and another order.
    """
    rng = Random(seed)
    num_gold = min(len(gold), round(len(rows) * share / (1 - share)))
    chosen = [*rows, *rng.sample(list(gold), num_gold)]
    rng.shuffle(chosen)
    return chosen


@dataclass(frozen=True)
class Sheet:
    """A sheet as one person filled it in."""

    annotator: str
    """Name of the file, without its ending."""
    filled: Mapping[str, Filled]
    """Name of an item to its values; items that are not filled in are missing."""


def write_table(path: Path, form: Form, rows: Sequence[Row]) -> None:
    """Write a CSV or TSV sheet; only files of pictures are named in it, the HTML page shows them.

    Raise ``CustosError`` if the file has another ending.
    """
    if path.suffix not in DELIMITER_BY_SUFFIX:
        raise CustosError(f"{path}: expected a file ending in .csv, .tsv or .html")
    shown = [form.shown(row) for row in rows]
    headings = list(dict.fromkeys(heading for texts in shown for heading in texts))
    entries = [entry.name for entry in form.entries]
    lines = []
    for row, texts in zip(rows, shown, strict=True):
        pictures = [name for name in form.pictures(row) if not name.startswith("data:")]
        values = form.start_values(row)
        lines.append([item_name(row["id"]), "; ".join(pictures), *map(texts.get, headings),
                      *map(values.get, entries)])  # fmt: skip
    write_spreadsheet(path, [ITEM, PICTURES, *headings, *entries], lines)


def read_table(path: Path, form: Form) -> Sheet:
    """Read a filled-in sheet, from a spreadsheet program or from the page.

    Raise ``CustosError`` if it cannot be read, is no sheet of this form, names an item twice, or a
    row is filled in only in part.
    """
    if path.suffix not in DELIMITER_BY_SUFFIX or not path.is_file():
        raise CustosError(f"{path}: expected a filled-in sheet, a .csv or .tsv file")
    file = CsvFile(path)
    if missing := {ITEM, *form.needed} - set(file.columns):
        raise CustosError(
            f"{path}: no sheet of form '{form.name}': column '{min(missing)}' is missing"
        )
    read: dict[str, Filled | None] = {}
    for number, cells in file.rows():
        location = row_location(path, number)
        if isinstance(cells, CustosError):
            raise cells
        name = cells.get(ITEM, "")
        if name in read:
            raise CustosError(f"{location}: item '{name}' occurs twice")
        with errors_at(location):
            read[name] = form.read(cells)
    return Sheet(path.stem, {name: filled for name, filled in read.items() if filled is not None})


@dataclass(frozen=True)
class Comparison:
    """Values that two people filled in for one entry of a row."""

    row: str
    people: tuple[str, str]
    values: tuple[Value | None, Value | None]
    question: str
    """What rows that resemble each other share: their group or question, or else the row's id."""


@dataclass
class Collected:
    """The outcome of several sheets."""

    rows: list[Row] = field(default_factory=list)
    """Settled rows, with what people said."""
    discarded: list[Reject] = field(default_factory=list)
    disagreements: list[Row] = field(default_factory=list)
    """Rows for a third person: each as it was, with ``annotations`` and ``differs``."""
    unfinished: list[str] = field(default_factory=list)
    """Ids of rows that too few people have filled in."""
    left_out: list[str] = field(default_factory=list)
    """Ids of rows that people say need no annotation."""
    pairs: dict[str, list[Comparison]] = field(default_factory=lambda: defaultdict(list))
    """Entry to what every two people filled in on each row, to measure agreement."""
    gold: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Annotator to the number of gold items filled in right, and filled in at all."""

    @property
    def counts(self) -> dict[str, int]:
        """Count the rows by the end that they came to."""
        return {
            "settled": len(self.rows),
            "discarded": len(self.discarded),
            "left_out": len(self.left_out),
            "disagreements": len(self.disagreements),
            "unfinished": len(self.unfinished),
        }


def collect(
    form: Form,
    rows: Sequence[Row],
    sheets: Sequence[Sheet],
    third: Sheet | None = None,
    gold: Sequence[Row] = (),
    per_row: int | None = None,
) -> Collected:
    """Bring sheets together by the rules of a form.

    A row is settled if enough people filled it in (``per_row``, by default the form's own number)
    and agree, of three or more people most; if one person's values decide alone; or if the
    ``third`` sheet, which settles disagreements, has it. People work alone, and each sheet may hold
    a part of the rows. Agreement is measured between every two people of a row, before the third.
    Gold items are scored and left out of the rows. Raise ``CustosError`` if two sheets have the
    same name, or one holds an item that is no row.
    """
    everybody = [*sheets, *([third] if third else [])]
    if len({sheet.annotator for sheet in everybody}) < len(everybody):
        raise CustosError("two sheets have the same name; people are told apart by it")
    items = {item_name(row["id"]) for row in (*rows, *gold)}
    for sheet in everybody:
        if strange := sheet.filled.keys() - items:
            raise CustosError(
                f"sheet '{sheet.annotator}': item '{min(strange)}' is no row of these"
            )
    collected = Collected(
        gold={sheet.annotator: _gold_score(form, sheet, gold) for sheet in sheets}
    )
    for row in rows:
        name = item_name(row["id"])
        fillings: Mapping[str, Filled] = {
            sheet.annotator: sheet.filled[name] for sheet in sheets if name in sheet.filled
        }
        question = str(row.get("group") or row.get("question") or row["id"])
        for (one, first), (other, second) in combinations(fillings.items(), 2):
            is_annotated = not (LEFT_OUT in first or LEFT_OUT in second)
            for entry in form.entries:
                if entry.compared and (is_annotated or entry.leaves_out):
                    values = first.get(entry.name), second.get(entry.name)
                    compared = Comparison(row["id"], (one, other), values, question)
                    collected.pairs[entry.name].append(compared)
        alone = {person: each for person, each in fillings.items() if form.decides_alone(each)}
        if third and name in third.filled:
            fillings = {third.annotator: third.filled[name]}
        elif alone:
            fillings = alone
        elif len(fillings) < (per_row or form.per_row):
            collected.unfinished.append(row["id"])
            continue
        elif (agreeing := form.majority(fillings)) is None:
            annotations = {person: dict(filled) for person, filled in fillings.items()}
            differing = form.differences(list(fillings.values()))
            collected.disagreements.append({**row, ANNOTATIONS: annotations, DIFFERS: differing})
            continue
        else:
            fillings = agreeing
        if any(LEFT_OUT in filled for filled in fillings.values()):
            collected.left_out.append(row["id"])
            continue
        if form.task is not None:
            row = {name: value for name, value in row.items() if name not in OF_A_LABEL}
        try:
            collected.rows.append(form.settled(row, fillings))
        except UnusableText as error:
            collected.discarded.append(Reject(id=row["id"], reason=error.reason, detail=str(error)))
    return collected


def _gold_score(form: Form, sheet: Sheet, gold: Sequence[Row]) -> tuple[int, int]:
    """Count the gold items that a person filled in right, and those filled in at all."""
    scored = [
        not any(
            entry.differs(entry.read(_gold_cell(row[GOLD][entry.name])), filled.get(entry.name))
            for entry in form.entries
            if entry.name in row[GOLD]
        )
        for row in gold
        if (filled := sheet.filled.get(item_name(row["id"]))) is not None
    ]
    return sum(scored), len(scored)


def write_sheet(path: Path, form: Form, rows: Sequence[Row]) -> None:
    """Write a sheet: ``.html`` is a page, ``.csv`` and ``.tsv`` are tables.

    Raise ``CustosError`` if the file has another ending, or a picture of a page cannot be read; the
    error names the row.
    """
    if path.suffix != ".html":
        write_table(path, form, rows)
        return
    columns = [ITEM, *(entry.name for entry in form.entries)]
    items = []
    for row in rows:
        name = item_name(row["id"])
        cells = [name, *[None] * len(form.entries)]
        with errors_at(f"row '{row['id']}'"):
            pictures = [picture_url(source) for source in form.pictures(row)]
        start_values = form.start_values(row)
        items.append(PageItem(name, cells, form.shown(row), pictures, start_values=start_values))
    write_page(path, form.name, form.guide, form.entries, columns, items)
