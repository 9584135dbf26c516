"""Rows of JSONL, JSON, Parquet, CSV and TSV files, read lazily and written atomically.

Rows of Arrow tables, such as Parquet files and hub data sets, are read as the values they mean.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from pydantic_core import to_json

from judging.base64_pictures import is_data_url
from judging.errors import CustosError, FieldError, system_errors_at
from judging.files.atomic import atomic_write
from judging.files.csv_rows import DELIMITERS, CsvFile, check_names, row_location
from judging.files.opening import (
    NOTHING_STATED,
    TextFormat,
    nearest_file,
    open_text,
    refuse_lfs_pointer,
)
from judging.types import R, parse_record

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_Read = Callable[[Any], Any]
_NO_LABEL = -1
"""What ``datasets`` stores where a row has no class."""
DIFFERENCES = frozenset(("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"))
BATCH_BYTES = 1 << 26
"""About the most bytes that a batch of rows takes, if each row takes what the average row does."""
MOST_BATCH_ROWS = 8192
LIKELY_RATIO = 1000
"""Bytes of a large column that one stored byte may stand for. That of tables of people stands for
far fewer."""
LIKELY_VALUES = 100
"""The same for values of large lists."""


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file as :func:`arrow_rows` does, whatever its compression.

    Memory is needed for a page of each column and for a batch, of which large rows have few.

    Raises:
        CustosError: If a column unpacks to far more than is likely of a table.
        ValueError: If it is no Parquet file, or one that Arrow cannot read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        columns = [file.schema.column(number) for number in range(len(file.schema))]
        names = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
        stored = pq.ParquetFile(path, read_dictionary=names)
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            _batch_rows(path, group, columns, [(0, 0)] * len(columns))
            if any(map(any, differences := _sizes_of_differences(group))):
                _batch_rows(path, group, columns, differences)
                num_rows = 1
            else:
                # Of one row, but with all texts that the group stores once for many rows.
                first = next(stored.iter_batches(1, row_groups=[number]), None)
                if first is None:
                    continue
                texts = [sizes for column in first.columns for sizes in _sizes_of_texts(column)]
                num_rows = _batch_rows(path, group, columns, texts)
            for batch in file.iter_batches(num_rows, row_groups=[number]):
                yield from arrow_rows(batch)
    except pa.ArrowException as error:
        if isinstance(error, MemoryError | OSError | ValueError):
            raise
        raise ValueError(str(error)) from None


def _batch_rows(
    path: Path,
    group: pq.RowGroupMetaData,
    columns: Sequence[pq.ColumnSchema],
    texts: Sequence[tuple[int, int]],
) -> int:
    """Choose how many rows of a group to read at once; refuse a column that is a bomb.

    ``texts`` has, by column, the bytes of the longest and of all texts that are stored once for
    many rows.
    """
    num_rows, num_bytes = int(group.num_rows), 1
    for number, (column, (longest, of_all)) in enumerate(zip(columns, texts, strict=True)):
        chunk = group.column(number)
        unpacked, value_bytes = chunk.total_uncompressed_size, max(8, column.length, longest)
        list_bytes = (chunk.num_values - num_rows) * value_bytes
        if unpacked > max(BATCH_BYTES, LIKELY_RATIO * chunk.total_compressed_size) or (
            list_bytes > 8 * BATCH_BYTES and chunk.num_values > LIKELY_VALUES * (unpacked - of_all)
        ):
            raise CustosError(
                f"{path}: column '{column.path}' holds far more than the file has room for; leave "
                "it out, or write the rows as JSONL"
            )
        num_bytes += unpacked + chunk.num_values * value_bytes
    return min(max(1, BATCH_BYTES * num_rows // num_bytes), MOST_BATCH_ROWS)


def _sizes_of_differences(group: pq.RowGroupMetaData) -> list[tuple[int, int]]:
    """Bound the texts that are stored as differences, by column: each may be as long as all."""
    chunks = map(group.column, range(group.num_columns))
    return [
        (chunk.total_uncompressed_size,) * 2
        if DIFFERENCES.intersection(chunk.encodings)
        else (0, 0)
        for chunk in chunks
    ]


def _sizes_of_texts(column: pa.Array) -> Iterator[tuple[int, int]]:
    """Yield bytes of the longest and of all texts in the dictionary of each innermost column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        lengths = pc.binary_length(column.dictionary)
        yield pc.max(lengths).as_py() or 0, pc.sum(lengths).as_py() or 0
    elif pa.types.is_struct(column.type):
        for number in range(column.type.num_fields):
            yield from _sizes_of_texts(column.field(number))
    elif pa.types.is_map(column.type):
        yield from _sizes_of_texts(column.keys)
        yield from _sizes_of_texts(column.items)
    elif isinstance(values := getattr(column, "values", None), pa.Array):  # of any list
        yield from _sizes_of_texts(values)
    else:
        yield 0, 0


def arrow_rows(batch: pa.RecordBatch | pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the rows of a batch without their nulls.

    A number that the schema names (``ClassLabel`` of the library ``datasets``) comes as its name. A
    number of 32 or 16 bits comes as the shortest one that it stands for, so 4.7 is no
    4.699999809265137.
    """
    features = _features(batch.schema)
    reads = {
        field.name: read
        for field in batch.schema
        if (read := _reader(field.type, features.get(field.name))) is not None
    }
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for number in range(batch.num_rows):  # one by one: each may be large
        row = {name: column[number].as_py() for name, column in columns.items()}
        for name, read in reads.items():
            row[name] = _present(read, row[name])
        yield {name: value for name, value in row.items() if value is not None}


def named_columns(schema: pa.Schema) -> set[str]:
    """Return the columns in which the schema names numbers, at whatever depth."""
    features = _features(schema)
    return {name for name in schema.names if _has_names(features.get(name))}


def _features(schema: pa.Schema) -> Mapping[str, Any]:
    """Tell how ``datasets`` describes the columns; empty if the file is not from there."""
    try:
        described = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = described["info"]["features"]
    except (ValueError, TypeError, KeyError):
        return {}
    return features if isinstance(features, dict) else {}


def _has_names(feature: Any) -> bool:
    if isinstance(feature, list):
        return any(map(_has_names, feature))
    if not isinstance(feature, dict):
        return False
    return feature.get("_type") == "ClassLabel" or any(map(_has_names, feature.values()))


def _reader(kind: pa.DataType, feature: Any) -> _Read | None:
    """Make the function that turns a value into what it means; ``None`` if it is that already.

    ``kind`` is its type in Arrow, ``feature`` the same in the words of ``datasets``.
    """
    import numpy as np
    import pyarrow as pa

    feature = feature if isinstance(feature, dict | list) else {}
    if pa.types.is_dictionary(kind):
        return _reader(kind.value_type, feature)
    if pa.types.is_integer(kind) and isinstance(feature, dict):
        names = feature.get("names") if feature.get("_type") == "ClassLabel" else None
        if not isinstance(names, list):
            return None
        by_number = {_NO_LABEL: None, **dict(enumerate(map(str, names)))}
        return lambda number: by_number.get(number, number)
    if pa.types.is_float32(kind) or pa.types.is_float16(kind):
        short = np.dtype(kind.to_pandas_dtype()).type
        return lambda value: float(str(short(value)))
    if pa.types.is_struct(kind):
        inner = _element(feature)  # a sequence of objects is stored as an object of lists
        inner = inner if isinstance(inner, dict) else {}
        parts = {field.name: _reader(field.type, inner.get(field.name)) for field in kind}
        reads = {name: read for name, read in parts.items() if read is not None}
        if not reads:
            return None
        return lambda value: {
            name: _present(reads[name], part) if name in reads else part
            for name, part in value.items()
        }
    if isinstance(value_type := getattr(kind, "value_type", None), pa.DataType):  # of any list
        inner = feature[0] if isinstance(feature, list) and feature else _element(feature)
        read = _reader(value_type, inner)
        return None if read is None else lambda values: [_present(read, each) for each in values]
    return None


def _element(feature: Any) -> Any:
    """Return the feature of a sequence's elements; any other feature as it is."""
    is_sequence = isinstance(feature, dict) and isinstance(feature.get("_type"), str)
    return feature.get("feature", feature) if is_sequence else feature


def _present(read: _Read, value: Any) -> Any:
    return None if value is None else read(value)


ROW_SUFFIXES = (".jsonl", ".json", ".parquet", *DELIMITERS)
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
    rows below the header.

    Args:
        path: File of one of ``ROW_SUFFIXES``.
        stated: What the user states about a file of text.

    Raises:
        CustosError: If the file is missing, of an unknown format, or not decodable as a whole.
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
        with open_text(path, stated.encoding) as file:
            content = file.read().encode(errors="surrogateescape")
        try:
            rows = decode_json(content)
        except CustosError as error:
            hint = ""
            if "Extra data" in str(error):
                hint = "; the name of a file with one object a line must end in .jsonl"
            raise CustosError(f"{path}: {error}{hint}") from None
        if not isinstance(rows, list):
            raise CustosError(
                f"{path}: expected a JSON array of rows, got {type(rows).__name__}; pandas writes "
                "one with to_json(PATH, orient='records')"
            )
        yield from enumerate(rows, 1)
    elif path.suffix == ".parquet":
        import pyarrow.parquet

        check_names(path, pyarrow.parquet.read_schema(path).names)
        yield from enumerate(parquet_rows(path), 1)
    elif path.suffix in DELIMITERS:
        yield from CsvFile(path, stated).rows()
    else:
        raise CustosError(
            f"{path}: unknown kind of file, expected one of {', '.join(ROW_SUFFIXES)}; "
            f"{_remedy(path)}"
        )


def _remedy(path: Path) -> str:
    """Tell what to do with a file whose ending is none of ours."""
    ending = path.suffix.lower()
    known = ".jsonl" if ending == ".ndjson" else ending
    if known in ROW_SUFFIXES:
        return f"rename it to '{path.with_suffix(known).name}'"
    return "unpack it first" if ending in _PACKED else "save a spreadsheet as CSV"


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
    refuse_repeated_keys(text.encode(errors="surrogatepass"), written)
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


def refuse_repeated_keys(content: bytes, written: bytes) -> None:
    """Raise ``CustosError`` if an object of a JSON text has a key twice, with its key and row.

    ``content`` is valid JSON in UTF-8, ``written`` what was decoded from it, written by
    ``to_json``.
    """
    # Of a key that occurs twice only one is decoded, so fewer quotation marks are written than were
    # read. Otherwise there are as many, unless the text writes one as this escape. Counting them
    # spares most texts a second, slower decoding.
    if content.count(b'"') == written.count(b'"') and rb"\u0022" not in content:
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
    """
    for number, row in read_rows(path):
        try:
            if isinstance(row, CustosError):
                raise row
            record = parse_record(model, row, row_location(path, number))
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
