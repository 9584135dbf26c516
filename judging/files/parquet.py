"""Rows of Parquet files and other Arrow tables, such as hub data sets, as the values they mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judging.errors import CustosError

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

    Memory is needed for a page of each column and for a batch, of which large rows have few. Raises
    ``CustosError`` if a column unpacks to far more than is likely of a table, and ``ValueError`` if
    it is no Parquet file, or one that Arrow cannot read.
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
        (chunk.total_uncompressed_size if DIFFERENCES.intersection(chunk.encodings) else 0,) * 2
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
