"""Parts of nested cells, such as ``answers.text``, as columns of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from data_prep.tables.fields import map_option


def with_nested_columns(row: Any, columns: Iterable[str]) -> Any:
    """Return a row with the parts of its cells that dotted names stand for.

    Args:
        row: A decoded row; one that is no object is returned as it is.
        columns: Names of columns. One that the row lacks and that has dots, such as
            ``answers.text``, names a key of an object. In a list a number, as in
            ``messages.1.content``, names an element, counted from 0, and a key names the values of
            all elements that have it.
    """
    if not isinstance(row, dict):
        return row
    nested = (name for name in columns if "." in name and name not in row)
    parts = {name: _part(row, name.split(".")) for name in nested}
    return {**row, **{name: part for name, part in parts.items() if part is not None}}


def part_options(field: str, column: str, cell: Any) -> str:
    """Return the options that map the parts of a nested cell; empty if it has none."""
    elements = cell if isinstance(cell, list) else [cell]
    if not all(isinstance(element, dict) for element in elements):
        return ""
    keys = dict.fromkeys(key for element in elements for key in element)
    options = (map_option(field, f"{column}.{key}") for key in keys)
    return f"; name a part of it: {' or '.join(options)}" if keys else ""


def _part(value: Any, keys: list[str]) -> Any:
    """Return the part of a value that keys lead to; ``None`` if there is none."""
    if not keys:
        return value
    key, *others = keys
    if isinstance(value, list) and key.isdecimal():
        return _part(value[int(key)], others) if int(key) < len(value) else None
    if isinstance(value, list):
        parts = [_part(element, keys) for element in value]
        return [part for part in parts if part is not None] or None
    return _part(value[key], others) if isinstance(value, dict) and key in value else None
