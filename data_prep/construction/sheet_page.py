"""The page on which a person fills in a sheet, or labels the rows of a table.

It is one HTML file with its pictures in it. It needs no server and no other file, and works with
the keyboard alone and on a phone. It keeps what is filled in within the browser, row by row, and
saves a table. Its policy lets no script run but its own, because the texts come from models.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from data_prep.construction.forms.base import Entry
from judging.errors import errors_at
from judging.files.atomic import write_text
from judging.files.csv_rows import spreadsheet_cell
from judging.files.pictures import read_image
from judging.tasks import labels_of
from judging.types import JudgeRequest

TEMPLATES = Path(__file__).parent / "templates"
MOST_PIXELS = 1280
"""Longest side of a picture on the page."""
QUALITY = 85
LABEL_GUIDE = (
    "Read the question, then the response, and give it a label. What the judge says of it, and the "
    "other columns, are folded: open them when you have made up your mind."
)


@dataclass(frozen=True)
class PageItem:
    """A row of the page."""

    name: str
    """Name that no other item of the page has."""
    cells: Sequence[object]
    """Its cells in the file that the page saves; ``None`` where an answer or a stamp goes."""
    texts: Mapping[str, str]
    """Texts that people see, by their headings."""
    pictures: Sequence[str] = ()
    """Data URLs."""
    asides: Mapping[str, str] = field(default_factory=dict)
    """Texts that are folded until somebody opens them."""
    start_values: Mapping[str, str] = field(default_factory=dict)
    """Entry to the value that it begins with."""
    options: Sequence[str] | None = None
    """Options that it may have, of those of the entries; ``None``: all."""


def write_page(
    path: Path,
    title: str,
    guide: str,
    entries: Sequence[Entry],
    columns: Sequence[str],
    items: Sequence[PageItem],
    *,
    stamps: tuple[str, str] | None = None,
    keeps_open: bool = False,
    delimiter: str = ",",
) -> None:
    """Write a page that asks the entries of every item, and saves a table of the columns.

    The columns of answers are called as their entries. ``stamps`` are the columns that say who gave
    the answers of an item, and when. With ``keeps_open`` the table has a line for
    items without an answer, too. What is filled in is kept in the browser under a digest of the
    page's content, so that another page never reads it.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    asked = [
        {
            "name": entry.name,
            "prompt": entry.prompt,
            "kind": entry.kind,
            "options": list(entry.options.items()),
            "askedIf": entry.asked_if,
            "required": entry.required,
            "prefilled": entry.prefilled,
            "minWords": entry.min_words,
            "leavesOut": entry.leaves_out,
        }
        for entry in entries
    ]
    shown = [
        {
            "item": item.name,
            "cells": [None if cell is None else str(spreadsheet_cell(cell)) for cell in item.cells],
            "texts": list(item.texts.items()),
            "asides": list(item.asides.items()),
            "pictures": list(item.pictures),
            "startValues": item.start_values,
            "options": item.options,
        }
        for item in items
    ]
    parts = {
        "form": title,
        "entries": asked,
        "columns": [str(spreadsheet_cell(name)) for name in columns],
        "items": shown,
        "stamps": stamps or (),
        "keepsOpen": keeps_open,
        "delimiter": delimiter,
    }
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
    content = json.dumps({**parts, "digest": digest})
    script = (TEMPLATES / "sheet.js").read_text(encoding="utf-8")
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined
    )
    page = environment.get_template("sheet.html").render(
        title=title,
        guide=guide,
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style=(TEMPLATES / "sheet.css").read_text(encoding="utf-8"),
        content=content.replace("<", "\\u003c"),  # It cannot end the element that it stands in.
    )
    write_text(path, page)


def write_label_page(
    path: Path,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    requests: Sequence[JudgeRequest | None],
    label_column: str,
    shown: Collection[str],
    *,
    in_words: Callable[[str], str] = str,
    stamps: tuple[str, str] | None = None,
    delimiter: str = ",",
) -> None:
    """Write a page on which a person labels the rows of a table, and which saves that table.

    The person reads the columns ``shown``, may unfold the others, and fills in ``label_column``. A
    request says which labels its row may have, and its pictures; ``None``: the row is no valid
    request, and may have any label of the others. ``in_words`` spells a label as the table does,
    and ``stamps`` are the columns that say who labelled a row, and when. Raise ``CustosError``,
    which names the row, if a picture cannot be read.
    """
    given = {columns.index(name) for name in (label_column, *(stamps or ()))}
    options = dict[str, str]()
    items = []
    for number, (row, request) in enumerate(zip(rows, requests, strict=True), 1):
        texts = {
            name: str(cell)
            for name, cell in zip(columns, row, strict=True)
            if cell not in (None, "")
        }
        cells = [None if n in given else "" if c is None else c for n, c in enumerate(row)]
        pictures, labels = list[str](), None
        if request is not None:
            with errors_at(f"row {number}"):
                pictures = [picture_url(source) for source in request.images]
            labels = [in_words(label) for label in labels_of(request)]
            options |= dict.fromkeys(labels, "")
        read = {name: text for name, text in texts.items() if name in shown}
        folded = {name: text for name, text in texts.items() if name not in shown}
        items.append(PageItem(str(number), cells, read, pictures, folded, options=labels))
    entry = Entry(label_column, "Label", options=options)
    write_page(
        path,
        "review",
        LABEL_GUIDE,
        [entry],
        columns,
        items,
        stamps=stamps,
        keeps_open=True,
        delimiter=delimiter,
    )


def picture_url(source: str) -> str:
    """Return a picture as a JPEG data URL, scaled down; errors as ``read_image``."""
    picture = read_image(source)
    picture.thumbnail((MOST_PIXELS, MOST_PIXELS))
    content = io.BytesIO()
    picture.save(content, "JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(content.getvalue()).decode()}"
