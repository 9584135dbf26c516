"""Sheets as one HTML page, with its pictures in it, that is filled in with the keyboard alone.

The page needs no server and no other file. It keeps what is filled in within the browser and saves
it as CSV, which is read as the CSV sheet is. Its policy lets no script run but its own, because the
texts come from models.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path

from data_prep.construction.forms.base import Form
from data_prep.construction.sheets import item_name, write_table
from data_prep.construction.steps.base import Row
from judging.errors import errors_at
from judging.files.atomic import write_text
from judging.files.pictures import read_image

TEMPLATES = Path(__file__).parent / "templates"
MOST_PIXELS = 1280
"""Longest side of a picture on the page."""
QUALITY = 85


def write_sheet(path: Path, form: Form, rows: Sequence[Row]) -> None:
    """Write a sheet: ``.html`` is a page, ``.csv`` and ``.tsv`` are tables.

    Raise ``CustosError`` if the file has another ending, or a picture of a page cannot be read; the
    error names the row.
    """
    if path.suffix == ".html":
        write_text(path, _page(form, rows))
    else:
        write_table(path, form, rows)


def _page(form: Form, rows: Sequence[Row]) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    entries = [
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
        for entry in form.entries
    ]
    items = []
    for row in rows:
        with errors_at(f"row '{row['id']}'"):
            pictures = [_picture_url(source) for source in row.get("images", ())]
        items.append(
            {
                "item": item_name(row["id"]),
                "texts": list(form.shown(row).items()),
                "pictures": pictures,
                "startValues": form.start_values(row),
            }
        )
    content = json.dumps(
        {"form": form.name, "entries": entries, "items": items}, ensure_ascii=False
    )
    script = (TEMPLATES / "sheet.js").read_text(encoding="utf-8")
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template("sheet.html").render(
        form=form,
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style=(TEMPLATES / "sheet.css").read_text(encoding="utf-8"),
        content=content.replace("<", "\\u003c"),  # It cannot end the element that it stands in.
    )


def _picture_url(source: str) -> str:
    picture = read_image(source)
    picture.thumbnail((MOST_PIXELS, MOST_PIXELS))
    content = io.BytesIO()
    picture.save(content, "JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(content.getvalue()).decode()}"
