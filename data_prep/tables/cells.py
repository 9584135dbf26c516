"""The content of one cell, or of a part of it, as one of our fields takes it."""

from __future__ import annotations

import ast
import base64
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, time, timedelta
from decimal import Decimal
from html.entities import html5
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from data_prep.tables.mapping import LIST_FIELDS, map_option
from judging.base64_pictures import content_of, is_bare, is_data_url
from judging.errors import CustosError
from judging.files.atomic import atomic_path
from judging.files.pictures import EXIF_FAULT, has_too_many_exif_parts, mime_type
from judging.files.records import absolute_name, decode_json
from judging.files.values import as_text, is_empty

if TYPE_CHECKING:
    from PIL.Image import Image as OpenedImage


DEFAULT_SEPARATOR = ";"
"""Stands between the elements of a list in a cell of a CSV or TSV file."""

_PYTHON_TEXT = r"""'(?:[^'\\]|\\[\\'"nrtxuU])*'|"(?:[^"\\]|\\[\\'"nrtxuU])*\""""
_PYTHON_MISSING = ("None", "nan")
_PYTHON_PART = "|".join((_PYTHON_TEXT, *_PYTHON_MISSING))
_PYTHON_LIST = re.compile(rf"\[\s*(?:(?:{_PYTHON_PART})(?:\s*,\s*|\s+))*(?:{_PYTHON_PART})\s*\]")
"""A list of texts as Python writes it, or as numpy does, without commas."""
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z][A-Za-z\d]{1,31});")


_DEPTH = 4
"""Levels below a cell that options name."""
_MOST_OPTIONS = 6


def as_list(
    value: Any, separator: str | None, *, keeps_empty: bool = False, is_whole: bool = False
) -> Any:
    """List the elements of a list, or of a text that stands for one, as texts.

    An element of another kind is a list of one; an object is left as it is. Between the elements of
    a text stands the separator; then a list in JSON or Python of texts may also stand for a list.
    Without one (``None``) a text is one element. Empty elements count if ``keeps_empty``;
    ``is_whole`` is as in :func:`as_text`.
    """
    if isinstance(value, bytes):
        value = as_text(value)
    if not isinstance(value, str | list | tuple | Mapping) and value is not None:
        value = [value]
    if isinstance(value, list | tuple):
        elements = (None if is_empty(each) else as_text(each, is_whole=is_whole) for each in value)
        if keeps_empty:
            return [element or "" for element in elements]
        return [element for element in elements if element is not None]
    if not isinstance(value, str):
        return value
    if separator is None or is_data_url(value):
        return [value]
    if (texts := _decoded_list(value)) is not None:
        return as_list(texts, None, keeps_empty=keeps_empty)
    parts = (part.strip() for part in _split(value, separator))
    return [part for part in parts if part or keeps_empty]


def as_metadata(value: Any) -> dict[str, Any]:
    """Read the object that a cell holds, decoded if it is a text; refuse anything else."""
    reason = ""
    try:
        decoded = decode_json(value) if isinstance(value, str) else value
    except CustosError as error:
        decoded, reason = None, f" ({error})"
    if not isinstance(decoded, dict):
        raise CustosError(f"expected a JSON object{reason}; map single columns to metadata.NAME")
    return decoded


def as_annotator_labels(
    value: Any, separator: str | None, annotators: Sequence[str] = ()
) -> dict[str, str]:
    """Read the labels that single people gave, by name.

    A cell holds an object of names and labels; a list of objects with ``annotator`` and ``label``;
    a list of labels; or a text that is one of these in JSON, or labels with the separator between
    them. A list of labels takes as many ``annotators``, or else is by ``person 1`` and so on. Raise
    ``CustosError`` if objects lack either key, or a person gave two labels.
    """
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            value = decode_json(value)
        except CustosError:
            pass  # a list as Python writes it
    if isinstance(value, Mapping):
        named = list(value.items())
    elif isinstance(value, list | tuple) and any(isinstance(each, Mapping) for each in value):
        if not all(
            isinstance(each, Mapping) and {"annotator", "label"} <= set(each) for each in value
        ):
            raise CustosError("expected objects with 'annotator' and 'label'")
        named = [(as_text(each["annotator"]), each["label"]) for each in value]
    else:
        listed = as_list(value, separator, keeps_empty=True)
        numbered = [f"person {number}" for number in range(1, len(listed) + 1)]
        named = list(
            zip(annotators if len(annotators) == len(listed) else numbered, listed, strict=True)
        )
    labels: dict[str, str] = {}
    for name, label in named:
        if is_empty(label):
            continue
        if labels.setdefault(str(name), text := as_text(label)) != text:
            raise CustosError(f"'{name}' gave '{labels[str(name)]}' and '{text}'")
    return labels


def json_value(value: Any) -> Any:
    """Turn a value of a column that is not ours into what JSON can hold; pictures are left out."""
    if isinstance(value, Mapping):
        return {name: json_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(part) for part in value]
    if isinstance(value, bytes | date | time | timedelta | Decimal | UUID):
        text = as_text(value)
        return text if isinstance(text, str) else None
    return value


def is_split(cell: str) -> bool:
    """Tell whether the default separator divides a cell, which is no list by itself."""
    return _decoded_list(cell) is None and len(as_list(cell, DEFAULT_SEPARATOR)) > 1


def _split(text: str, separator: str) -> list[str]:
    """Split a text at separators; none that ends an entity of HTML (``&amp;``) counts."""
    found = [
        match for match in _ENTITY.finditer(text) if match[0][1] == "#" or match[0][1:] in html5
    ]
    entities = {match.end() - 1 for match in found}
    parts, start = [], 0
    for match in re.finditer(re.escape(separator), text):
        if entities.isdisjoint(range(*match.span())):
            parts.append(text[start : match.start()])
            start = match.end()
    return [*parts, text[start:]]


def _decoded_list(text: str) -> list[Any] | None:
    """Decode a list of texts in JSON, or as pandas writes it; ``None`` for others.

    Elements may be missing. ``[1, 2]`` is none: it may be an interval.
    """
    try:
        found = decode_json(text) if text.lstrip().startswith("[") else None
    except CustosError:
        found = None
    if not _is_list_of_texts(found) and _PYTHON_LIST.fullmatch(text.strip()):
        try:
            parts = re.findall(_PYTHON_PART, text)
            found = [None if p in _PYTHON_MISSING else ast.literal_eval(p) for p in parts]
        except (SyntaxError, ValueError):  # an escape that is none, such as \x without digits
            found = None
    return found if _is_list_of_texts(found) else None


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and (
        not value or {str} <= set(map(type, value)) <= {str, type(None)}
    )


def image_names(
    value: Any, folder: Path, save_to: Path | None, *, in_cell: bool = False
) -> tuple[str, ...]:
    """Turn the content of an image column into absolute file names or URLs.

    It is a path or URL, bytes, a ``{"bytes", "path"}`` record as Hugging Face data sets store one,
    or a list of these; ``None`` is no image. Relative paths start from ``folder``, and images that
    come as bytes are saved in ``save_to``. ``in_cell``, texts may be images in base64, as in the
    TSV files of benchmarks, and bytes without a folder to save them in become data URLs. Raise
    ``CustosError`` if the value is none of these, or bytes are no image or cannot be saved.
    """
    if value is None or value == "":
        return ()
    if isinstance(value, list):
        parts = (image_names(item, folder, save_to, in_cell=in_cell) for item in value)
        return tuple(name for names in parts for name in names)
    if in_cell and isinstance(value, str) and is_bare(value):
        try:
            value = content_of(value)
        except ValueError as error:
            raise CustosError(str(error)) from None
    if isinstance(value, str):
        return (absolute_name(value, folder),)
    content = value.get("bytes") if isinstance(value, Mapping) else value
    if isinstance(content, bytes):
        if save_to is not None:
            return (str(save_image(content, save_to)),)
        if not in_cell:
            raise CustosError("images come as bytes; name a folder to save them in")
        with opened_image(content) as image:
            kind = mime_type(image)
        return (f"data:{kind};base64,{base64.b64encode(content).decode()}",)
    if isinstance(value, dict) and isinstance(value.get("path"), str):
        return (absolute_name(value["path"], folder),)
    raise CustosError(f"expected a path, image bytes or a list of these, got {value!r:.80}")


def content_name(content: bytes, suffix: str) -> str:
    """Name a file after the SHA-256 of its content, so that equal images have one name."""
    return f"{hashlib.sha256(content).hexdigest()[:16]}.{suffix}"


@contextmanager
def opened_image(content: bytes) -> Iterator[OpenedImage]:
    """Open an image.

    Raise ``CustosError`` if the bytes are no image, or one of too many pixels or parts to be
    opened.
    """
    from PIL import Image

    if has_too_many_exif_parts(BytesIO(content)):
        raise CustosError(EXIF_FAULT)
    try:
        with Image.open(BytesIO(content)) as image:
            yield image
    # A broken AVIF raises RuntimeError.
    except (OSError, ValueError, RuntimeError, Image.DecompressionBombError):
        raise CustosError(f"{len(content)} bytes that are not an image") from None


def save_image(content: bytes, folder: Path) -> Path:
    """Save an image under its ``content_name``, unless it is there, and give its absolute path.

    Raise ``CustosError`` if the bytes are no image.
    """
    with opened_image(content) as image:
        suffix = (image.format or "img").lower()
    path = folder.resolve() / content_name(content, suffix)
    if not path.exists():
        with atomic_path(path) as partial:
            partial.write_bytes(content)
    return path


def same_name(name: str) -> str:
    """Write a name in the one spelling that Unicode's ways of writing it share (NFC)."""
    return unicodedata.normalize("NFC", name)


def with_nested_columns(row: Any, columns: Iterable[str]) -> Any:
    """Add to a row the cells, and the parts of cells, that the names of columns stand for.

    A name that the row lacks may be there in another spelling of Unicode, and then takes its place.
    One that has dots, such as ``answers.text``, names a key of an object. In a list a number, as in
    ``messages.1.content``, names an element, counted from 0, and a key names the values of all
    elements that have it. Names may hold dots themselves: ``verdict.responses.0`` is also the first
    of ``verdict.responses``. What is no object is returned as it is.
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
    """Write the options that map those parts of a nested cell that suit a field, if any do."""
    names = dict.fromkeys(_names_of_parts(cell, field in LIST_FIELDS, _DEPTH))
    options = [map_option(field, f"{column}.{name}") for name in names if name]
    return f"; name a part of it: {' or '.join(options[:_MOST_OPTIONS])}" if options else ""


def _names_of_parts(value: Any, is_list_wanted: bool, depth: int) -> Iterator[str]:
    """Yield the dotted names, below a value, of the parts that suit; an empty one for itself."""
    elements = value if is_list_wanted and isinstance(value, list) else [value]
    if elements and all(isinstance(element, str | int | float) for element in elements):
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


def _part(value: Any, keys: list[str]) -> Any:
    """Follow keys to a part of a value; ``None`` if there is none."""
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
