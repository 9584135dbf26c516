"""HiEval-style data: responses to questions with a known answer set, labelled on three levels.

Tables differ in how they name their columns, so ``Columns`` says where each of our fields comes
from. Rows become examples of task ``hieval-qs``, or of ``hieval-ea`` if there is a column with the
type of error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field, field_validator

from data_prep.tables.cells import image_names
from data_prep.tables.source import HubOptions, hub_rows, is_hub_id, split_files
from judging.errors import CustosError, FieldError
from judging.files.csv_rows import row_location
from judging.files.records import read_rows
from judging.files.values import as_text
from judging.tasks.hieval_ea import ERROR_TYPES
from judging.tasks.hieval_qs import CORRECT, PARTIAL, WRONG
from judging.types import LabelledExample, parse_record

SCORES = (CORRECT, PARTIAL, WRONG)

T = TypeVar("T")


class Columns(BaseModel, frozen=True, extra="forbid"):
    """The columns of a table that our fields come from. ``None``: there is no such column."""

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
        for label in labels.values():
            if label not in SCORES:
                raise ValueError(f"'{label}' is not one of {', '.join(SCORES)}")
        return labels

    def names(self) -> tuple[str, ...]:
        """List every column that is read."""
        columns = (
            *(self.question, self.references, self.response, self.label, self.error_type),
            *(self.id, self.group, self.images, *self.metadata.values()),
        )
        return tuple(column for column in columns if column is not None)


def load_hieval(
    source: Path | str,
    columns: Columns | None = None,
    *,
    variant: str = "plain",
    hub: HubOptions | None = None,
    image_folder: Path | None = None,
    bad_rows: list[str] | None = None,
) -> list[LabelledExample]:
    """Read labelled responses from a local file or a data set on the Hugging Face hub.

    The source is a CSV, TSV, JSONL, JSON or Parquet file; a folder of a hub data set; or a hub id
    (``owner/name``). What is here wins over the hub, and of a folder only the split of ``hub``
    counts. ``variant`` is the one of the task that the labels follow (the tolerance for numbers).
    Examples have ``reference_mode="all"`` and absolute image paths; images that come as bytes are
    saved in ``image_folder``.

    ``bad_rows`` gets the errors of rows, which name source, row and field; ``None`` raises the
    first. Raise ``CustosError`` if the source cannot be read, or a column is empty in every row.
    """
    columns = columns or Columns()
    path, hub = Path(source), hub or HubOptions()
    folder = path if path.is_dir() else path.parent
    if is_hub_id(source):
        folder = Path.cwd()
        numbered = hub_rows(str(source), hub)
        rows = ((f"{path.stem}-{n}", f"{source} row {n}", row) for n, row in numbered)
    else:
        rows = (
            (f"{file.stem}-{n}", row_location(file, n), row)
            for file in (split_files(path, hub.split) if path.is_dir() else [path])
            for n, row in read_rows(file)
        )
    examples: list[LabelledExample] = []
    filled_columns: set[str] = set()
    for row_id, location, row in rows:
        try:
            fields = {"id": row_id, "variant": variant, "source": path.stem}
            fields |= _fields(row, location, columns, folder, image_folder)
            examples.append(parse_record(LabelledExample, fields, location))
            filled_columns |= {name for name, cell in row.items() if cell not in (None, "", [])}
            filled_columns.add(columns.response)  # an empty one is a response
        except CustosError as error:
            if bad_rows is None:
                raise
            bad_rows.append(str(error))
    empty_columns = [column for column in columns.names() if column not in filled_columns]
    if examples and empty_columns:
        raise CustosError(f"{source}: column '{empty_columns[0]}' is missing or empty in every row")
    return examples


def _fields(
    row: Any, location: str, columns: Columns, folder: Path, image_folder: Path | None
) -> dict[str, Any]:
    """Read the fields of one example; optional fields only where the row has a value."""
    if isinstance(row, CustosError):
        raise row
    if not isinstance(row, dict):
        raise CustosError(f"{location}: expected an object, got {type(row).__name__}")

    def cell(field: str, column: str, read: Callable[[Any], T]) -> T:
        try:
            return read(row.get(column))
        except CustosError as error:
            raise FieldError(field, f"column '{column}': {error}", location) from None

    def elements(value: Any) -> tuple[str, ...]:
        parts = value.split(columns.separator) if isinstance(value, str) else value
        parts = parts if isinstance(parts, list) else [parts]
        texts = tuple(text for part in parts if (text := _text(part).strip()))
        if not texts:
            raise CustosError("expected at least one element of the answer, got none")
        return texts

    def error_type(value: Any) -> str | None:
        if value is None or not str(value).strip():
            if score == CORRECT:
                return None
            raise CustosError(f"a label '{score}' needs one of {', '.join(ERROR_TYPES)}")
        if score == CORRECT:
            raise CustosError(f"a label '{CORRECT}' has no type of error, got '{value}'")
        return _choice(ERROR_TYPES, value, {})

    score = cell("label", columns.label, lambda value: _choice(SCORES, value, columns.labels))
    fields: dict[str, Any] = {
        "task": "hieval-qs",
        "question": cell("question", columns.question, _text),
        "references": cell("references", columns.references, elements),
        "response": cell("response", columns.response, _text),
        "label": score,
        "metadata": {ours: row[their] for ours, their in columns.metadata.items() if their in row},
    }
    if columns.images is not None:
        fields["images"] = cell(
            "images", columns.images, lambda value: image_names(value, folder, image_folder)
        )
    if columns.id is not None:
        fields["id"] = cell("id", columns.id, _text)
    if columns.group is not None and columns.group in row:
        fields["group"] = cell("group", columns.group, _text)
    if columns.error_type is not None:
        cause = cell("error_type", columns.error_type, error_type)
        label = f"{score}; {cause}" if cause else score
        fields |= {"task": "hieval-ea", "error_type": cause, "label": label}
    return fields


def _text(value: Any) -> str:
    text = None if isinstance(value, bool) else as_text(value)
    if isinstance(text, str):
        return text
    raise CustosError(f"expected text, got {'nothing' if value is None else repr(value)[:80]}")


def _choice(choices: Sequence[str], value: Any, renamed: Mapping[str, str]) -> str:
    """Read one of some choices in any case, or under the name that ``renamed`` maps to it."""
    text = "" if value is None else str(value).strip()
    by_name = {choice.casefold(): choice for choice in choices}
    choice = renamed.get(text) or by_name.get(text.casefold())
    if choice is None:
        raise CustosError(f"'{text}' is not one of {', '.join(choices)}")
    return choice
