"""Rows of items, responses and graded items: read from several formats, checked, and written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from data_prep.tables.source import HubOptions, hub_rows, is_hub_id, split_files
from judging.base64_pictures import content_of, is_bare
from judging.errors import CustosError, FieldError
from judging.files.csv_rows import row_location
from judging.files.records import decode_json, read_rows, write_json, write_records
from judging.types import Verdict, field_names, parse_record

Row = dict[str, Any]

CUT_OFF = "cut_off"
"""Field of a row that names its responses that ended at the token limit."""
WITHOUT_IMAGE = "without_image"
"""Field of a row, true if the model was asked without the item's picture."""

M = TypeVar("M", bound=BaseModel)


@contextmanager
def error_location(path: Path) -> Iterator[None]:
    """Put a file's name before the errors that its rows raise in the block.

    ``read_file`` names its file itself and belongs outside of the block.
    """
    try:
        yield
    except FieldError as error:
        raise error.at(f"{path}: {error.location}".removesuffix(": ")) from None
    except CustosError as error:
        raise CustosError(f"{path}: {error}") from None


def read_file(path: Path) -> Iterator[Row]:
    """Yield the rows of a JSON, JSONL, Parquet, CSV or TSV file.

    A JSON file may hold an array, or an object from id to row; the id then goes into the row. A CSV
    or TSV file names its columns in its first line; empty cells are left out. An ``image`` that is
    a picture in base 64 becomes bytes, as in Parquet files. Raise ``CustosError`` if the file
    cannot be read; where a row is no object, the error names it.
    """
    if path.suffix == ".json":
        if not path.is_file():
            raise CustosError(f"{path}: no such file")
        with error_location(path):
            content = decode_json(path.read_bytes())
        if isinstance(content, dict):
            for key, row in content.items():
                yield {"id": key, **_as_row(row, f"{path} row '{key}'")}
            return
    for number, row in read_rows(path):
        location = row_location(path, number)
        yield _with_image_bytes(_as_row(row, location), location)


def _with_image_bytes(row: Row, location: str) -> Row:
    image = row.get("image")
    if not isinstance(image, str) or not is_bare(image):
        return row
    try:
        return {**row, "image": {"bytes": content_of(image)}}
    except ValueError as error:
        raise FieldError("image", str(error), location) from None


def _as_row(row: Any, location: str) -> Row:
    if isinstance(row, CustosError):
        raise row
    if not isinstance(row, dict):
        raise CustosError(f"{location}: expected an object, got {type(row).__name__}")
    return row


def read_items(path: Path) -> list[Row]:
    """Read the rows of a file that must hold some, as ``read_file``."""
    rows = list(read_file(path))
    if not rows:
        raise CustosError(f"{path}: no items")
    return rows


def read_source(source: str, split: str) -> tuple[Path, Iterator[Row]]:
    """Read a benchmark's items; give the folder of relative image paths, and the rows.

    The source is a file; a folder of files or of a hub data set; or a hub id (``owner/name``),
    unless a file or folder of that name exists. In a folder with files that are named after the
    split, only those are read. Raise ``CustosError`` if there is nothing to read.
    """
    path = Path(source)
    if is_hub_id(source):
        rows = hub_rows(source, HubOptions(split=split))
        return Path.cwd(), (_with_image_bytes(row, f"{source} row {n}") for n, row in rows)
    if path.is_dir():
        files = split_files(path, split)
        return path, (row for file in files for row in read_file(file))
    return path.parent, read_file(path)


def item_name(key: object) -> str:
    """Name an item by its id in an error; empty for one without an id."""
    return "" if key in (None, "") else f"item '{key}'"


def missing_fields(names: Sequence[str], location: str) -> FieldError:
    """Compose the error of a row that lacks fields, which names all of them."""
    if len(names) == 1:
        return FieldError(names[0], "is missing", location)
    listed = ", ".join(f"'{name}'" for name in names)
    return FieldError("", f"fields {listed} are missing", location)


def parse_row(model: type[M], row: Row, location: str, needed: Sequence[str] = ()) -> M:
    """Validate an item as its file has it, with what it holds beside it.

    ``location`` names the row in errors; ``needed`` are fields that it must have beside those that
    every item must have. Raise ``FieldError`` naming all fields that are missing, or else the first
    that is wrong.
    """
    missing = [name for name in needed if row.get(name) is None]
    try:
        item = model.model_validate(row)
    except ValidationError as error:
        wrong = [str(mistake["loc"][0]) for mistake in error.errors() if mistake["loc"]]
        required = {name for name, field in model.model_fields.items() if field.is_required()}
        absent = [name for name in wrong if name in required and row.get(name) is None]
        missing = [*absent, *missing]
        if not missing:
            raise FieldError.from_validation(error, location, field_names(model)) from None
    if missing:
        raise missing_fields(list(dict.fromkeys(missing)), location)
    return item


def parse_rows(rows: Iterable[Row], model: type[M]) -> list[M]:
    """Validate rows; raise ``FieldError`` on the first that does not fit, by its id or number."""
    return [
        parse_row(model, row, f"row '{row.get('id', number)}'")
        for number, row in enumerate(rows, 1)
    ]


def check_ids(rows: Iterable[Row]) -> None:
    """Raise ``FieldError`` unless every row has an ``id`` and no two rows have the same."""
    ids = set()
    for number, row in enumerate(rows, 1):
        key = row.get("id")
        if key is None or str(key) in ids:  # JSON's keys are texts
            fault = "is missing" if key is None else f"'{key}' occurs twice"
            raise FieldError("id", fault, f"row {number}")
        ids.add(str(key))


def join_responses(items: Iterable[Row], responses: Iterable[Row], item_id: str) -> list[Row]:
    """Complete response rows, which may hold little more than an id, with their items.

    ``item_id`` is the field that holds the id. Raise ``FieldError`` if a response has no id, or one
    that is unknown, repeated or that of two items.
    """
    by_id: dict[str, Row] = {}
    shared: set[str] = set()
    for item in items:
        key = str(item.get(item_id))
        shared |= {key} & by_id.keys()
        by_id[key] = item
    joined: dict[str, Row] = {}
    for number, response in enumerate(responses, 1):
        key, fault = str(response.get(item_id)), ""
        if item_id not in response:
            fault = "is missing"
        elif key not in by_id:
            fault = f"no item '{key}'"
        elif key in shared:
            fault = f"two items are '{key}'"
        elif key in joined:
            fault = f"'{key}' occurs twice"
        if fault:
            raise FieldError(item_id, fault, f"response {number}")
        joined[key] = {**by_id[key], **response}
    return list(joined.values())


def is_cut_off(row: Mapping[str, Any]) -> bool:
    """Tell whether a response ended at the token limit, so that its end is no final answer."""
    return "response" in (row.get(CUT_OFF) or ())


def stored_verdicts(row: Row) -> dict[str, Verdict]:
    """Read the verdicts that ``store_verdicts`` put into a graded row, by task.

    Raise ``FieldError`` if the field ``verdicts`` holds something else.
    """
    by_task = row.get("verdicts") or {}
    if not isinstance(by_task, dict):
        raise FieldError("verdicts", f"expected an object, got {type(by_task).__name__}")
    return {
        task: parse_record(Verdict, value, f"verdict on '{task}'")
        for task, value in by_task.items()
    }


def store_verdicts(verdicts: Mapping[str, Verdict]) -> Row:
    """Make the field of a graded row that holds the verdicts by task; empty without any."""
    by_task = {
        task: verdict.model_dump(mode="json", exclude_unset=True)
        for task, verdict in verdicts.items()
    }
    return {"verdicts": by_task} if by_task else {}


def check_suffix(out: Path) -> None:
    """Raise ``CustosError`` unless ``write_graded`` can write a file of this name."""
    if out.suffix not in (".json", ".jsonl"):
        raise CustosError(f"--out '{out}': expected a file ending in .json or .jsonl")


def write_graded(path: Path, rows: Iterable[Row], keyed: bool) -> None:
    """Write graded rows, atomically: lines for ``.jsonl``, one document for ``.json``.

    A ``keyed`` document is an object from id to row; otherwise it is an array. Cells of Parquet
    files that JSON has no form for become text: dates in ISO 8601, bytes in base 64.
    """
    rows = (to_jsonable_python(row, bytes_mode="base64") for row in rows)
    if path.suffix == ".jsonl":
        write_records(path, rows)
    elif keyed:
        write_json(path, {row["id"]: {k: v for k, v in row.items() if k != "id"} for row in rows})
    else:
        write_json(path, list(rows))


def run_file(graded: Path) -> Path:
    """Name the file that holds the time and cost of grading a file."""
    return graded.with_name(f"{graded.name}.run.json")


def read_run(graded: Path) -> Row | None:
    """Read the time and cost of grading a file; ``None`` where they are not known."""
    path = run_file(graded)
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
