"""Rows of JSONL, JSON, Parquet, CSV, TSV and XLSX files, read lazily and written atomically."""

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_json

from judging.base64_pictures import is_data_url
from judging.errors import CustosError, FieldError, system_errors_at
from judging.files.atomic import atomic_write
from judging.files.csv_rows import SPREADSHEETS, check_names, open_spreadsheet, row_location
from judging.files.opening import (
    NOTHING_STATED,
    TextFormat,
    nearest_file,
    open_text,
    refuse_lfs_pointer,
)
from judging.files.parquet import parquet_rows
from judging.types import R, parse_record

ROW_SUFFIXES = (".jsonl", ".json", ".parquet", *SPREADSHEETS)
WHOLE_ARRAY = "the name of a file that is one JSON array must end in .json"
_PACKED = (".gz", ".bz2", ".xz", ".zip", ".zst")


class _TooLarge:
    """Number of JSON that a float cannot hold, such as ``1e999``."""


def _float(text: str) -> float | _TooLarge:
    number = float(text)
    return number if math.isfinite(number) else _TooLarge()


_DECODER = json.JSONDecoder(parse_float=_float)


def read_rows(path: Path, stated: TextFormat = NOTHING_STATED) -> Iterator[tuple[int, Any]]:
    """Yield ``(row number from 1, decoded row)``, with an error in place of a bad line.

    A row of a CSV or TSV file is an object of its cells that are not empty; its number counts the
    rows below the header. Raises ``CustosError`` if the file is missing, of an unknown format, or
    not decodable as a whole.
    """
    if not path.is_file():
        if path.exists():
            raise CustosError(f"{path}: is no regular file, which can be read several times")
        raise CustosError(f"{path}: no such file{nearest_file(path, ROW_SUFFIXES)}")
    try:
        with system_errors_at(path):
            refuse_lfs_pointer(path)
            yield from _decode_file(path, stated)
    except (ValueError, OverflowError) as error:  # not UTF-8, no Parquet, dates that no one has
        raise CustosError(f"{path}: cannot be decoded: {error}") from None


def _decode_file(path: Path, stated: TextFormat) -> Iterator[tuple[int, Any]]:
    if path.suffix == ".jsonl":
        with open_text(path, stated.encoding, newline="\n") as file:
            for number, text in enumerate(file, 1):
                line = text.encode(errors="surrogateescape")
                if number == 1 and line.strip() == b"[":
                    raise CustosError(f"{path}: {WHOLE_ARRAY}")
                if line.strip():
                    try:
                        row = decode_json(line)
                    except CustosError as error:
                        row = CustosError(f"{path} row {number}: {error}")
                    yield number, row
    elif path.suffix == ".json":
        rows = read_json(path, stated)
        if not isinstance(rows, list):
            rows = rows[key_of_rows(path, rows)]
        yield from enumerate(rows, 1)
    elif path.suffix == ".parquet":
        import pyarrow.parquet

        check_names(path, pyarrow.parquet.read_schema(path).names)
        yield from enumerate(parquet_rows(path), 1)
    elif path.suffix in SPREADSHEETS:
        yield from open_spreadsheet(path, stated).rows()
    else:
        raise CustosError(
            f"{path}: unknown kind of file, expected one of {', '.join(ROW_SUFFIXES)}; "
            f"{_remedy(path)}"
        )


def read_json(path: Path, stated: TextFormat = NOTHING_STATED) -> Any:
    """Read one JSON document; raise ``CustosError`` if it is none."""
    with open_text(path, stated.encoding) as file:
        content = file.read().encode(errors="surrogateescape")
    try:
        return decode_json(content)
    except CustosError as error:
        hint = ""
        if "Extra data" in str(error):
            hint = "; the name of a file with one object a line must end in .jsonl"
        raise CustosError(f"{path}: {error}{hint}") from None


def key_of_rows(path: Path, content: Any) -> str:
    """Find the key of an object under which its rows stand, such as ``{"data": [{...}]}``.

    That is the only key with a list of objects. Raise ``CustosError`` if there is none, or several.
    """
    lists = [
        key
        for key, value in (content.items() if isinstance(content, dict) else ())
        if isinstance(value, list) and value and all(isinstance(each, dict) for each in value)
    ]
    if len(lists) == 1:
        return str(lists[0])
    if lists:
        names = ", ".join(f"'{_printable(key)}'" for key in lists)
        raise CustosError(f"{path}: rows stand under {names}; leave one of them in the file")
    raise CustosError(
        f"{path}: expected a JSON array of rows, or an object with one such array, got "
        f"{type(content).__name__}; pandas writes one with to_json(PATH, orient='records')"
    )


def _remedy(path: Path) -> str:
    """Tell what to do with a file whose ending is none of ours."""
    ending = path.suffix.lower()
    known = ".jsonl" if ending == ".ndjson" else ending
    if known in ROW_SUFFIXES:
        return f"rename it to '{path.with_suffix(known).name}'"
    return "unpack it first" if ending in _PACKED else "save a spreadsheet as .xlsx or CSV"


def decode_json(content: bytes | str) -> Any:
    """Decode a JSON document; bytes must be UTF-8, and may begin with a byte order mark.

    What cannot be decoded, or not be written again, and an object with a key twice raise
    ``CustosError`` with the reason alone.
    """
    try:
        text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        is_line = "\n" not in error.doc.strip()  # then its number is that of the row
        where = f"character {error.pos}" if is_line else f"line {error.lineno} column {error.colno}"
        raise CustosError(f"not valid JSON at {where}: {error.msg}") from None
    except UnicodeDecodeError as error:
        reason = f"byte 0x{error.object[error.start]:02x} at position {error.start}"
        raise CustosError(f"not UTF-8 text: {reason}") from None
    except RecursionError:
        raise CustosError("not valid JSON: nested too deeply") from None
    except ValueError:  # Python limits the digits of whole numbers, as reading them is slow
        raise CustosError("not valid JSON: a number has too many digits") from None
    try:
        written = to_json(value)
    except ValueError as error:  # not all that Python decodes can be written
        raise _fault_of_part(value) or CustosError(_write_fault(error)) from None
    refuse_repeated_keys(text.encode(errors="surrogatepass"), written.count(b'"'))
    return value


def _fault_of_part(value: Any) -> FieldError | None:
    """Say why a value cannot be written, with the field, and with the row in a list of rows."""
    for location, row in _located_rows(value):
        for name, part in row.items() if isinstance(row, dict) else ():
            try:
                to_json({name: part})
            except ValueError as error:
                return FieldError(_printable(name), _write_fault(error), location)
    return None


def _write_fault(error: ValueError) -> str:
    if "surrogates" in str(error):
        return "holds half a character (a lone surrogate, such as \\ud800)"
    if "unknown type" in str(error):
        return "holds a number that is too large"
    return "nested too deeply"


class _Twice:
    """Object of JSON in which a key occurs twice."""

    def __init__(self, key: str) -> None:
        self.key = key


def refuse_repeated_keys(content: bytes, num_quotes: int) -> None:
    """Raise ``CustosError`` if an object of a JSON text has a key twice, with its key and row.

    ``content`` is valid JSON in UTF-8. What was decoded from it has ``num_quotes`` quotation marks
    when it is written as JSON again.
    """
    # Of a key that occurs twice only one is decoded, so fewer quotation marks are written than were
    # read. Otherwise there are as many, unless the text writes one as this escape. Counting them
    # spares most texts a second, slower decoding.
    # The second search is slow, and most texts have no backslash.
    has_escapes = b"\\" in content and rb"\u0022" in content
    if content.count(b'"') == num_quotes and not has_escapes:
        return

    def as_object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Twice:
        fields = dict(pairs)
        if len(fields) == len(pairs):
            return fields
        counts = Counter(key for key, _ in pairs)
        return _Twice(next(key for key, count in counts.items() if count > 1))

    def key_twice(value: Any) -> str | None:
        if isinstance(value, _Twice):
            return value.key
        parts = value.values() if isinstance(value, dict) else value
        keys = map(key_twice, parts if isinstance(value, dict | list) else ())
        return next((key for key in keys if key is not None), None)

    for location, row in _located_rows(json.loads(content, object_pairs_hook=as_object)):
        if (key := key_twice(row)) is not None:
            reason = f"the key '{_printable(key)}' occurs twice in one object"
            raise CustosError(f"{location}: {reason}" if location else reason)


def _located_rows(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a list with their numbers, or the one row that a value is."""
    if isinstance(value, list):
        yield from ((f"row {number}", row) for number, row in enumerate(value, 1))
    else:
        yield "", value


def _printable(name: str) -> str:
    return name.encode(errors="backslashreplace").decode()


def read_records(
    path: Path, model: type[R], bad_rows: list[str] | None = None
) -> Iterator[tuple[int, R]]:
    """Yield ``(row number, validated record)`` from a file; image paths are relative to it.

    The first bad row raises ``CustosError``, unless there is a list ``bad_rows`` for the messages.
    Validators get ``in_cells`` as context: whether a text may be a cell that holds a list.
    """
    context = {"in_cells": path.suffix in SPREADSHEETS}
    for number, row in read_rows(path):
        try:
            if isinstance(row, CustosError):
                raise row
            record = parse_record(model, row, row_location(path, number), context)
        except CustosError as error:
            if bad_rows is None:
                raise
            bad_rows.append(str(error))
            continue
        if names := getattr(record, "images", ()):
            images = tuple(absolute_name(name, path.parent) for name in names)
            record = record.model_copy(update={"images": images})
        yield number, record


def absolute_name(name: str, folder: Path) -> str:
    """Make a relative path absolute; URLs and what no file can be called stay as they are."""
    is_url = is_data_url(name) or "://" in name
    return name if is_url or "\0" in name else os.path.realpath(folder / name)


def write_records(path: Path, records: Iterable[BaseModel | Mapping[str, Any]]) -> int:
    """Write records as JSONL, atomically; return how many. Unset fields of models are left out."""
    count = 0
    with atomic_write(path) as file:
        for record in records:
            if isinstance(record, BaseModel):
                line = record.model_dump_json(exclude_unset=True)
            else:
                line = json.dumps(record, ensure_ascii=False)
            file.write(f"{line}\n")
            count += 1
    return count


def known_object(path: Path) -> dict[str, Any]:
    """Read a JSON object; empty where the file is missing or holds something else."""
    try:
        content = decode_json(path.read_bytes())
    except (OSError, CustosError):
        return {}
    return content if isinstance(content, dict) else {}


def write_json(path: Path, value: Any) -> None:
    """Write one JSON document, indented, atomically."""
    with atomic_write(path) as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.write("\n")
