"""Parts of nested cells, such as ``answers.text``, as columns of their own."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

from data_prep.tables.cells import TEXT_FIELDS
from data_prep.tables.fields import map_option


def same_name(name: str) -> str:
    """Return a name in the one spelling that Unicode's ways of writing it share (NFC)."""
    return unicodedata.normalize("NFC", name)


def with_nested_columns(row: Any, columns: Iterable[str]) -> Any:
    """Return a row with the cells, and the parts of cells, that names stand for.

    Args:
        row: A decoded row; one that is no object is returned as it is.
        columns: Names of columns. One that the row lacks may be there in another spelling of
            Unicode, and then takes its place. One that has dots, such as ``answers.text``, names a
            key of an object. In a list a number, as in ``messages.1.content``, names an element,
            counted from 0, and a key names the values of all elements that have it. Names may hold
            dots themselves: ``verdict.responses.0`` is also the first of ``verdict.responses``.
    """
    if not isinstance(row, dict):
        return row
    missing = {same_name(name): name for name in columns if name not in row}
    if not missing:
        return row
    named = {missing.get(same_name(name), name): value for name, value in row.items()}
    nested = (name for name in missing.values() if "." in name and name not in named)
    parts = {name: _part(named, name.split(".")) for name in nested}
    return {**named, **{name: part for name, part in parts.items() if part is not None}}


def part_options(field: str, column: str, cell: Any) -> str:
    """Return the options that map the parts of a nested cell; empty if it has none."""
    elements = cell if isinstance(cell, list) else [cell]
    if (
        cell
        and elements is cell
        and field in TEXT_FIELDS
        and isinstance(elements[0], str | int | float)
    ):
        return f"; name an element of it: {map_option(field, f'{column}.0')}"
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
    if not isinstance(value, dict):
        return None
    named = {same_name(name): part for name, part in value.items()}
    # The longest name that is a key: a column may be called ``verdict.responses``.
    for count in range(len(keys), 0, -1):
        part = _part(named.get(same_name(".".join(keys[:count]))), keys[count:])
        if part is not None:
            return part
    return None
