"""Items, responses and graded files: read from whatever shape they come in, written back in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from data_prep.hieval import HubOptions, hub_rows, is_hub_id
from judging.errors import CustosError
from judging.rows import ROW_SUFFIXES, atomic_write, read_rows, write_json
from judging.types import parse_record

Row = dict[str, Any]

GRADED_SUFFIXES = (".json", ".jsonl")

M = TypeVar("M", bound=BaseModel)


def read_file(path: Path) -> Iterator[Row]:
    """Yield the rows of a JSON, JSONL or Parquet file.

    A JSON file may hold an array, or an object from id to row; the id then goes into the row.

    Raises:
        CustosError: If the file cannot be read, or a row is no object; the message names the row.
    """
    keyed = _keyed_rows(path) if path.suffix == ".json" else None
    if keyed is not None:
        for key, row in keyed.items():
            yield {"id": key, **_as_row(row, f"{path} row '{key}'")}
        return
    for number, row in read_rows(path):
        yield _as_row(row, f"{path} row {number}")


def _keyed_rows(path: Path) -> dict[str, Any] | None:
    """The object of a JSON file that holds one."""
    if not path.is_file():
        raise CustosError(f"{path}: no such file")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CustosError(f"{path}: not valid JSON: {error}") from None
    return content if isinstance(content, dict) else None


def _as_row(row: Any, where: str) -> Row:
    if isinstance(row, CustosError):
        raise row
    if not isinstance(row, dict):
        raise CustosError(f"{where}: expected an object, got {type(row).__name__}")
    return row


def read_source(source: str, split: str) -> tuple[Path, Iterator[Row]]:
    """Read a benchmark's items from a file, a folder or the hub.

    Args:
        source: A JSON, JSONL or Parquet file; a folder of such files, read in the order of their
            names; or a hub id (``owner/name``). What exists locally wins.
        split: Split of a hub data set.

    Returns:
        What relative image paths are relative to, and the rows.

    Raises:
        CustosError: If there is nothing to read.
    """
    path = Path(source)
    if is_hub_id(source):
        return Path.cwd(), (row for _, row in hub_rows(source, HubOptions(split=split)))
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in ROW_SUFFIXES)
        if not files:
            raise CustosError(f"{source}: no {', '.join(ROW_SUFFIXES)} file in this folder")
        return path, (row for file in files for row in read_file(file))
    return path.parent, read_file(path)


def parse_rows(rows: Iterable[Row], model: type[M]) -> list[M]:
    """Validate rows; a row that fails is named by its id, else by its number.

    Raises:
        CustosError: On the first row that does not fit.
    """
    return [
        parse_record(model, row, f"row '{row.get('id', number)}'")
        for number, row in enumerate(rows, 1)
    ]


def check_ids(rows: Iterable[Row]) -> None:
    """Raise ``CustosError`` unless every row has an ``id`` of its own."""
    seen = set()
    for number, row in enumerate(rows, 1):
        key = row.get("id")
        if key is None or key in seen:
            fault = "is missing" if key is None else f"'{key}' occurs twice"
            raise CustosError(f"row {number}: field 'id' {fault}")
        seen.add(key)


def check_output(out: Path, source: Path) -> None:
    """Raise ``CustosError`` unless a file can be written with ``write_graded``, over no input."""
    if out.suffix not in GRADED_SUFFIXES:
        raise CustosError(
            f"--out '{out}': expected a file ending in {' or '.join(GRADED_SUFFIXES)}"
        )
    if out.resolve() == source.resolve():
        raise CustosError(f"--out '{out}': that is the input file")


def run_file(graded: Path) -> Path:
    """Where the time and cost of grading a file are kept."""
    return graded.with_name(f"{graded.name}.run.json")


def write_graded(path: Path, rows: Iterable[Row], keyed: bool) -> None:
    """Write graded rows, atomically: lines for ``.jsonl``, one document for ``.json``.

    Args:
        path: File to write.
        rows: What ``Benchmark.graded`` made.
        keyed: A JSON document is an object from id to row, else an array.
    """
    if path.suffix == ".jsonl":
        with atomic_write(path) as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    elif keyed:
        write_json(path, {row["id"]: {k: v for k, v in row.items() if k != "id"} for row in rows})
    else:
        write_json(path, list(rows))
