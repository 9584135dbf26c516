"""Rows of Arrow tables, such as Parquet files and hub data sets, as the values that they mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_Read = Callable[[Any], Any]
_NO_LABEL = -1
"""What ``datasets`` stores where a row has no class."""


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
    for row in batch.to_pylist():
        for name, read in reads.items():
            row[name] = _present(read, row[name])
        yield {name: value for name, value in row.items() if value is not None}


def named_columns(schema: pa.Schema) -> set[str]:
    """Return the columns in which the schema names numbers, at whatever depth."""
    features = _features(schema)
    return {name for name in schema.names if _has_names(features.get(name))}


def _features(schema: pa.Schema) -> Mapping[str, Any]:
    """Return how ``datasets`` describes the columns; empty if the file is not from there."""
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
    """Return what makes a value of one type that which it means; ``None`` if it is that already.

    Args:
        kind: Type in Arrow.
        feature: The same in the words of ``datasets``; ``None`` if it says nothing.
    """
    import pyarrow as pa

    feature = feature if isinstance(feature, dict | list) else {}
    if pa.types.is_dictionary(kind):
        return _reader(kind.value_type, feature)
    if pa.types.is_integer(kind) and isinstance(feature, dict):
        return _name_reader(feature.get("names")) if feature.get("_type") == "ClassLabel" else None
    if pa.types.is_float32(kind) or pa.types.is_float16(kind):
        return _shortest(kind)
    if pa.types.is_struct(kind):
        parts = {field.name: _reader(field.type, _part(feature, field.name)) for field in kind}
        reads = {name: read for name, read in parts.items() if read is not None}
        return (lambda value: _read_parts(reads, value)) if reads else None
    if isinstance(value_type := getattr(kind, "value_type", None), pa.DataType):  # of any list
        inner = feature[0] if isinstance(feature, list) and feature else _element(feature)
        read = _reader(value_type, inner)
        return None if read is None else lambda values: [_present(read, each) for each in values]
    return None


def _part(feature: Any, name: str) -> Any:
    """Return the feature of a key of an object.

    A sequence of objects is stored as an object of lists, each under the feature of its elements.
    """
    inner = _element(feature)
    return inner.get(name) if isinstance(inner, dict) else None


def _element(feature: Any) -> Any:
    """Return the feature of a sequence's elements; any other feature as it is."""
    is_sequence = isinstance(feature, dict) and isinstance(feature.get("_type"), str)
    return feature.get("feature", feature) if is_sequence else feature


def _present(read: _Read, value: Any) -> Any:
    return None if value is None else read(value)


def _read_parts(reads: Mapping[str, _Read], value: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _present(reads[name], part) if name in reads else part for name, part in value.items()
    }


def _name_reader(names: Any) -> _Read | None:
    if not isinstance(names, list):
        return None
    by_number = {_NO_LABEL: None, **dict(enumerate(map(str, names)))}
    return lambda number: by_number.get(number, number)


def _shortest(kind: pa.DataType) -> _Read:
    import numpy as np

    number = np.dtype(kind.to_pandas_dtype()).type
    return lambda value: float(str(number(value)))
