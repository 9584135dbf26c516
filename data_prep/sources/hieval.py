"""HiEval-style data: responses to questions with a known answer set, labelled on three levels.

Tables differ in how they name their columns, so ``Columns`` says where each of our fields comes
from. Rows become examples of task ``hieval-qs``, or of ``hieval-ea`` if there is a column with the
type of error.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, field_validator

from data_prep.splits.filters import SCORES
from data_prep.tables.cells import with_nested_columns
from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import TableReader
from data_prep.tables.source import HubOptions, Table, is_hub_id, split_files
from judging.errors import CustosError
from judging.types import LabelledExample


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

    @property
    def of_fields(self) -> dict[str, str]:
        """Map each of our fields that has a column to it."""
        others = {"metadata", "labels", "separator"}
        return self.model_dump(exclude=others, exclude_none=True)


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
    saved in ``image_folder``. Errors are those of :func:`read_records`; ``CustosError`` is also
    raised if a column is empty in every row.
    """
    columns, hub, path = columns or Columns(), hub or HubOptions(), Path(source)
    if is_hub_id(source):
        tables = [Table(str(source), Path.cwd(), hub)]
    else:
        folder = path if path.is_dir() else path.parent
        files = split_files(path, hub.split) if path.is_dir() else [path]
        tables = [Table(str(file), folder) for file in files]
    mapping = TableMapping(
        columns=columns.of_fields,
        labels=columns.labels,
        separator=columns.separator,
        task="hieval-ea" if columns.error_type else "hieval-qs",
        variant=variant,
    )
    examples: list[LabelledExample] = []
    filled: set[str] = set()
    for table in tables:
        reader = TableReader(table, LabelledExample, mapping, image_folder, picks_cells=True)
        for number, row in table.rows():
            try:
                example = reader.read(number, _picked(row, columns.of_fields))
            except CustosError as error:
                text = str(error).replace("--map ", "--field ").replace("--labels ", "--label ")
                if bad_rows is None:
                    raise CustosError(text) from None
                bad_rows.append(text)
                continue
            kept = {ours: row[their] for ours, their in columns.metadata.items() if their in row}
            names = {"id": example.id or f"{table.path.stem}-{number}", "source": path.stem}
            kind = {"error_type": example.error_type} if columns.error_type else {}
            fields = example.model_dump(exclude={"second_label"}, exclude_unset=True)
            examples.append(LabelledExample(**{**fields, **kind, **names, "metadata": kept}))
            filled |= {name for name, cell in row.items() if cell not in (None, "", [])}
            filled.add(columns.response)  # an empty one is a response
    named = (*columns.of_fields.values(), *columns.metadata.values())
    if examples and (empty := [column for column in named if column not in filled]):
        raise CustosError(f"{source}: column '{empty[0]}' is missing or empty in every row")
    return examples


def _picked(row: Any, columns: Mapping[str, str]) -> Any:
    """Keep the cells of our fields, so that no other column is read for its name."""
    if not isinstance(row, dict):
        return row
    row = with_nested_columns(row, columns.values())
    return {column: row[column] for column in columns.values() if column in row}
