"""Parts of nested cells, such as ``answers.text``, as columns of their own."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

from data_prep.tables.cells import LIST_FIELDS
from data_prep.tables.fields import map_option

_DEPTH = 4
"""Levels below a cell that options name."""
_MOST_OPTIONS = 6


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


def leading_parts(column: str) -> list[str]:
    """Return a dotted name and the cells that it leads through: ``a.b``, and ``a``."""
    keys = column.split(".")
    return [".".join(keys[:length]) for length in range(1, len(keys) + 1)]


def part_options(field: str, column: str, cell: Any) -> str:
    """Return the options that map the parts of a nested cell; empty if it has none.

    Each part that is named suits the field: a text or a number, or a list of them where the field
    is a list.
    """
    names = dict.fromkeys(_names_of_parts(cell, field in LIST_FIELDS, _DEPTH))
    options = [map_option(field, f"{column}.{name}") for name in names if name]
    return f"; name a part of it: {' or '.join(options[:_MOST_OPTIONS])}" if options else ""


def _names_of_parts(value: Any, is_list_wanted: bool, depth: int) -> Iterator[str]:
    """Yield the dotted names, below a value, of the parts that suit; an empty one for itself."""
    if isinstance(value, str | int | float) or (is_list_wanted and _is_list_of_texts(value)):
        yield ""
    elif depth and isinstance(value, dict):
        for key, part in value.items():
            if key and "." not in key and not (key.isdecimal() and depth < _DEPTH):
                for name in _names_of_parts(part, is_list_wanted, depth - 1):
                    yield f"{key}.{name}".rstrip(".")
    elif depth and isinstance(value, list) and is_list_wanted:
        # A key names the values of all elements.
        for element in value if all(isinstance(element, dict) for element in value) else ():
            yield from _names_of_parts(element, is_list_wanted, depth)
    elif depth and isinstance(value, list):
        for number, element in enumerate(value[:_MOST_OPTIONS]):
            for name in _names_of_parts(element, is_list_wanted, depth - 1):
                yield f"{number}.{name}".rstrip(".")


def _is_list_of_texts(value: Any) -> bool:
    is_list = isinstance(value, list) and bool(value)
    return is_list and all(isinstance(element, str | int | float) for element in value)


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
