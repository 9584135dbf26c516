"""HiEval-style data: responses to questions with a known answer set, labelled on three levels.

Tables differ in how they name their columns, so a ``Layout`` says where each of our fields comes
from. Rows become examples of task ``hieval-qs``, or of ``hieval-ea`` when the layout names a column
with the type of error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from data_prep.sources.images import image_names
from judging.errors import CustosError
from judging.records import ROW_SUFFIXES, read_rows
from judging.types import LabelledExample, parse_record

SCORES = ("Correct", "Partial", "Wrong")
ERROR_TYPES = (
    "Reasoning Error",
    "Image Misunderstanding",
    "Unanswerable",
    "Overthinking",
    "Other",
)

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")

T = TypeVar("T")


class Layout(BaseModel):
    """Which of their columns each of our fields comes from. ``None``: there is no such column."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str = "question"
    references: str = "answer"
    """A list, or one string of elements joined by ``separator``."""
    response: str = "response"
    label: str = "label"
    error_type: str | None = None
    id: str | None = None
    group: str | None = None
    images: str | None = None
    """A path, ``{"bytes", "path"}``, or a list of these."""
    metadata: Mapping[str, str] = Field(default_factory=dict)
    """Our name (``answerer``, ``domain``) to their column."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """Their label to ours, where it is not ours in another case: ``{"2": "Correct"}``."""
    separator: str = Field(default=";", min_length=1)

    @field_validator("labels")
    @classmethod
    def _labels_are_ours(cls, labels: Mapping[str, str]) -> Mapping[str, str]:
        for ours in labels.values():
            if ours not in SCORES:
                raise ValueError(f"'{ours}' is not one of {', '.join(SCORES)}")
        return labels

    def columns(self) -> tuple[str, ...]:
        """Every column that is used."""
        named = (
            *(self.question, self.references, self.response, self.label, self.error_type),
            *(self.id, self.group, self.images, *self.metadata.values()),
        )
        return tuple(column for column in named if column is not None)


@dataclass(frozen=True)
class HubOptions:
    """Which part of a Hugging Face data set to load."""

    split: str = "train"
    config: str | None = None
    revision: str | None = None


def load_hieval(
    source: Path | str,
    layout: Layout | None = None,
    *,
    variant: str = "plain",
    hub: HubOptions | None = None,
    image_folder: Path | None = None,
    bad_rows: list[str] | None = None,
) -> list[LabelledExample]:
    """Read labelled responses from a local file or a data set on the Hugging Face hub.

    Args:
        source: JSONL, JSON or Parquet file, or a hub id (``owner/name``). A local file wins.
        layout: Which columns hold what.
        variant: Variant of the task the labels follow (the tolerance for numbers).
        hub: Part of the data set to load; only used for a hub id.
        image_folder: Where to save images that come as bytes.
        bad_rows: Where to report rows that do not validate and go on; ``None`` raises on the first.

    Returns:
        Examples with ``reference_mode="all"``. Relative image paths are taken from the source's
        folder and made absolute.

    Raises:
        CustosError: If the source cannot be read; if a column of the layout is empty in every row;
            on the first bad row when ``bad_rows`` is ``None``, naming source, row and field.
    """
    layout = layout or Layout()
    if is_hub_id(source):
        folder, rows = Path.cwd(), hub_rows(str(source), hub or HubOptions())
    else:
        folder, rows = Path(source).parent, read_rows(Path(source))
    name = Path(source).stem

    examples: list[LabelledExample] = []
    seen: set[str] = set()
    for number, row in rows:
        where = f"{source} row {number}"
        try:
            fields = _fields(
                row, where, layout, lambda value: image_names(value, folder, image_folder)
            )
            given = {"id": f"{name}-{number}", "variant": variant, "source": name, **fields}
            examples.append(parse_record(LabelledExample, given, where))
            seen |= row.keys()
        except CustosError as error:
            if bad_rows is None:
                raise
            bad_rows.append(str(error))
    if examples and (unused := [column for column in layout.columns() if column not in seen]):
        raise CustosError(f"{source}: column '{unused[0]}' is missing or empty in every row")
    return examples


def is_hub_id(source: Path | str) -> bool:
    """Tell a data set on the hub (``owner/name``) from a local file; an existing file is local."""
    name = str(source)
    is_file_name = name.endswith(ROW_SUFFIXES) or Path(name).exists()
    return not is_file_name and _HUB_ID.fullmatch(name) is not None


def hub_rows(name: str, options: HubOptions) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield numbered rows of a hub data set as plain Python values, images undecoded."""
    import datasets

    try:
        table = datasets.load_dataset(
            name, options.config, split=options.split, revision=options.revision
        )
    except (OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise CustosError(f"{name}: cannot load split '{options.split}': {reason}") from None
    number = 0
    for batch in table.with_format("arrow").iter(batch_size=1000):
        for row in batch.to_pylist():
            number += 1
            yield number, {column: value for column, value in row.items() if value is not None}


def _fields(
    row: Any, where: str, layout: Layout, read_images: Callable[[Any], tuple[str, ...]]
) -> dict[str, Any]:
    """Read the fields of one example out of their row; optional ones only where they have a value.

    Raises:
        CustosError: Naming the row, our field and their column.
    """
    if isinstance(row, CustosError):
        raise row
    if not isinstance(row, dict):
        raise CustosError(f"{where}: expected an object, got {type(row).__name__}")

    def cell(field: str, column: str, read: Callable[[Any], T]) -> T:
        try:
            return read(row.get(column))
        except CustosError as error:
            raise CustosError(f"{where}: field '{field}' (column '{column}'): {error}") from None

    score = cell("label", layout.label, lambda value: _one_of(SCORES, value, layout.labels))
    fields: dict[str, Any] = {
        "task": "hieval-qs",
        "question": cell("question", layout.question, _text),
        "references": cell(
            "references", layout.references, lambda value: _elements(value, layout.separator)
        ),
        "response": cell("response", layout.response, _text),
        "label": score,
        "metadata": {
            ours: row[theirs] for ours, theirs in layout.metadata.items() if theirs in row
        },
    }
    if layout.images is not None:
        fields["images"] = cell("images", layout.images, read_images)
    if layout.id is not None:
        fields["id"] = cell("id", layout.id, _text)
    if layout.group is not None and layout.group in row:
        fields["group"] = cell("group", layout.group, _text)
    if layout.error_type is not None:
        error_type = cell("error_type", layout.error_type, lambda value: _error_type(value, score))
        label = f"{score}; {error_type}" if error_type else score
        fields |= {"task": "hieval-ea", "error_type": error_type, "label": label}
    return fields


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    raise CustosError(f"expected text, got {'nothing' if value is None else repr(value)[:80]}")


def _elements(value: Any, separator: str) -> tuple[str, ...]:
    parts = value.split(separator) if isinstance(value, str) else value
    if not isinstance(parts, list):
        parts = [parts]
    elements = tuple(text for part in parts if (text := _text(part).strip()))
    if not elements:
        raise CustosError("expected at least one element of the answer, got none")
    return elements


def _one_of(choices: Sequence[str], value: Any, renamed: Mapping[str, str]) -> str:
    """Read a choice in any case, or under the name ``renamed`` gives for it."""
    text = "" if value is None else str(value).strip()
    by_name = {choice.casefold(): choice for choice in choices}
    choice = renamed.get(text) or by_name.get(text.casefold())
    if choice is None:
        raise CustosError(f"'{text}' is not one of {', '.join(choices)}")
    return choice


def _error_type(value: Any, score: str) -> str | None:
    if value is None or not str(value).strip():
        if score == "Correct":
            return None
        raise CustosError(f"a label '{score}' needs one of {', '.join(ERROR_TYPES)}")
    if score == "Correct":
        raise CustosError(f"a label 'Correct' has no type of error, got '{value}'")
    return _one_of(ERROR_TYPES, value, {})
