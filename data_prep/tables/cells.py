"""The content of one cell, as one of our fields takes it."""

from __future__ import annotations

import ast
import base64
import re
from collections.abc import Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from html.entities import html5
from pathlib import Path
from typing import Any
from uuid import UUID

from data_prep.sources.images import image_names, opened_image
from judging.base64_pictures import content_of, is_bare, is_data_url
from judging.errors import CustosError
from judging.files.pictures import mime_type
from judging.files.records import decode_json
from judging.files.values import as_text, is_empty
from judging.types import LabelledExample

DEFAULT_SEPARATOR = ";"
"""Stands between the elements of a list in a cell of a CSV or TSV file."""

LIST_FIELDS = ("references", "choices", "images", "criteria", "tags", "annotators", "responses")
_OTHER_FIELDS = (
    "metadata",
    "annotator_labels",
    "critique_tokens",
    "seed",
    "risk",
    "confidence",
    "score",
    "weight",
)
TEXT_FIELDS = (
    *("response", "response_a", "response_b"),
    *(name for name in LabelledExample.model_fields if name not in (*LIST_FIELDS, *_OTHER_FIELDS)),
)
_PYTHON_TEXT = r"""'(?:[^'\\]|\\[\\'"nrtxuU])*'|"(?:[^"\\]|\\[\\'"nrtxuU])*\""""
_PYTHON_MISSING = ("None", "nan")
_PYTHON_PART = "|".join((_PYTHON_TEXT, *_PYTHON_MISSING))
_PYTHON_LIST = re.compile(rf"\[\s*(?:(?:{_PYTHON_PART})(?:\s*,\s*|\s+))*(?:{_PYTHON_PART})\s*\]")
"""A list of texts as Python writes it, or as numpy does, without commas."""
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z][A-Za-z\d]{1,31});")


def as_list(
    value: Any, separator: str | None, *, keeps_empty: bool = False, is_whole: bool = False
) -> Any:
    """Return the elements of a list, or of a text that stands for one, as texts.

    Args:
        value: A list, a text, one element of another kind, or an object, which is left as it is.
        separator: Text between the elements; then a list in JSON or Python of texts may also stand
            for a list. ``None``: a text is one element.
        keeps_empty: Whether empty elements of a list count.
        is_whole: As in :func:`as_text`.
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
    for decode in (_json_array, _python_list):
        if (texts := decode(value)) is not None:
            return as_list(texts, None, keeps_empty=keeps_empty)
    parts = (part.strip() for part in _split(value, separator))
    return [part for part in parts if part or keeps_empty]


def as_metadata(value: Any) -> dict[str, Any]:
    """Return the object that a cell holds, decoded if it is a text.

    Raises:
        CustosError: If it is no object.
    """
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
    """Return the labels that single people gave, by name.

    Args:
        value: An object of names and labels; a list of objects with ``annotator`` and ``label``; a
            list of labels; or a text that is one of these in JSON, or labels with the separator
            between them.
        separator: As in :func:`as_list`.
        annotators: Names for a list of as many labels; else they are ``person 1`` and so on.

    Raises:
        CustosError: If it is none of these.
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


def as_images(value: Any, folder: Path, image_folder: Path | None) -> tuple[str, ...]:
    """Return pictures as absolute file names or data URLs.

    Args:
        value: A list of paths, URLs, pictures in base64, bytes, and records with bytes, as hub data
            sets hold them, or one of these.
        folder: Folder that relative paths start from.
        image_folder: Folder to save bytes in; ``None`` makes data URLs of them.

    Raises:
        CustosError: If it is none of these, or bytes are no picture.
    """
    if isinstance(value, str) and is_bare(value):  # as the TSV files of benchmarks hold it
        try:
            value = content_of(value)
        except ValueError as error:
            raise CustosError(str(error)) from None
    content = value.get("bytes") if isinstance(value, Mapping) else value
    if image_folder is None and isinstance(content, bytes):
        return (_data_url(content),)
    if isinstance(value, list):
        return tuple(name for part in value for name in as_images(part, folder, image_folder))
    return image_names(value, folder, image_folder)


def json_value(value: Any) -> Any:
    """Return a value of a column that is not ours as JSON can hold it; pictures are left out."""
    if isinstance(value, Mapping):
        return {name: json_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(part) for part in value]
    if isinstance(value, bytes | date | time | timedelta | Decimal | UUID):
        text = as_text(value)
        return text if isinstance(text, str) else None
    return value


def is_split(cell: str) -> bool:
    """Return whether the default separator divides a cell, which is no list by itself."""
    is_list = _json_array(cell) is not None or _python_list(cell) is not None
    return not is_list and len(as_list(cell, DEFAULT_SEPARATOR)) > 1


def _split(text: str, separator: str) -> list[str]:
    """Return the parts of a text between separators; none ends an entity of HTML (``&amp;``)."""
    entities = {match.end() - 1 for match in _ENTITY.finditer(text) if _is_entity(match[0])}
    parts, start = [], 0
    for match in re.finditer(re.escape(separator), text):
        if entities.isdisjoint(range(*match.span())):
            parts.append(text[start : match.start()])
            start = match.end()
    return [*parts, text[start:]]


def _is_entity(text: str) -> bool:
    """Return whether ``&NAME;`` is one of HTML, by name or by number."""
    return text[1] == "#" or text[1:] in html5


def _json_array(text: str) -> list[Any] | None:
    if not text.lstrip().startswith("["):
        return None
    try:
        decoded = decode_json(text)
    except CustosError:
        return None
    return decoded if isinstance(decoded, list) and _are_texts(decoded) else None


def _are_texts(elements: list[Any]) -> bool:
    """Return whether elements are texts; some may be missing. ``[1, 2]`` may be an interval."""
    return not elements or {str} <= set(map(type, elements)) <= {str, type(None)}


def _python_list(text: str) -> list[Any] | None:
    """Return the elements of a list that pandas wrote into a cell; ``None`` if it is none."""
    if not _PYTHON_LIST.fullmatch(text.strip()):
        return None
    try:
        parts = re.findall(_PYTHON_PART, text)
        elements = [None if p in _PYTHON_MISSING else ast.literal_eval(p) for p in parts]
    except (SyntaxError, ValueError):  # an escape that is none, such as \x without digits
        return None
    return elements if _are_texts(elements) else None


def _data_url(content: bytes) -> str:
    with opened_image(content) as image:
        kind = mime_type(image)
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
