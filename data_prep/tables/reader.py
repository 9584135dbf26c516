"""Records of a user's table, read one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar, cast, get_args

from data_prep.tables.cells import (
    DEFAULT_SEPARATOR,
    LIST_FIELDS,
    TEXT_FIELDS,
    as_annotator_labels,
    as_images,
    as_list,
    as_metadata,
    json_value,
)
from data_prep.tables.columns import ColumnPlan
from data_prep.tables.fields import ANNOTATOR_LABELS, PAIR, PERSON, REQUEST_FIELDS, RESPONSES
from data_prep.tables.labels import most_given, with_our_labels
from data_prep.tables.mapping import TableMapping
from data_prep.tables.nested_cells import part_options, with_nested_columns
from data_prep.tables.row_task import under_given_task
from data_prep.tables.source import Table, open_table
from judging.errors import CustosError, FieldError
from judging.files.records import WHOLE_ARRAY
from judging.files.values import as_text, holds_part, is_empty
from judging.tasks import get_task
from judging.types import JudgeRequest, LabelledExample, Reasoning, parse_record

RequestT = TypeVar("RequestT", bound=JudgeRequest)


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used."""

    error: CustosError
    label: str
    """The label as the table has it; empty if the row has none."""
    id: str
    """The id as the table has it; empty if it cannot be read."""


def parse_table(
    source: Path | str,
    model: type[RequestT],
    mapping: TableMapping | None = None,
    *,
    image_folder: Path | None = None,
) -> Iterator[tuple[int, RequestT | BadRow]]:
    """Yield ``(row number, record or bad row)`` for the rows of a user's table.

    CSV and TSV files and hub data sets are tables: columns that fill no field go to ``metadata``.
    So it is with JSONL, JSON and Parquet files if the mapping names columns; without one, their
    rows must have our shape, and other keys are refused.

    Args:
        source: A CSV, TSV, JSONL, JSON or Parquet file, or a hub data set (see ``open_table``).
        model: ``LabelledExample``, or ``JudgeRequest`` for the requests alone; then labels may be
            missing and are not checked.
        mapping: Which column fills which field, and what labels mean.
        image_folder: Folder to save pictures in that come as bytes; ``None`` makes data URLs of
            them.

    Raises:
        CustosError: If the source cannot be read or lacks a column.
    """
    mapping = mapping or TableMapping()
    table = open_table(source, mapping.text_format)
    reader = _RowReader(table, model, mapping, image_folder)
    reader.check_columns()
    for number, stored in table.rows():
        row = with_nested_columns(stored, mapping.columns.values())
        try:
            yield number, reader.read(number, row)
        except CustosError as error:
            yield number, BadRow(error, reader.cell("label", row), reader.cell("id", row))


def read_table(
    source: Path | str,
    model: type[RequestT],
    mapping: TableMapping | None = None,
    bad_rows: dict[int, BadRow] | None = None,
    *,
    image_folder: Path | None = None,
) -> Iterator[tuple[int, RequestT]]:
    """Yield ``(row number, record)`` for the good rows of a user's table (see ``parse_table``).

    Args:
        source: As above.
        model: As above.
        mapping: As above.
        bad_rows: Gets every row that cannot be used, by its number; ``None`` raises on the first.
        image_folder: As above.

    Raises:
        CustosError: If the source cannot be read or lacks a column; on the first bad row when
            ``bad_rows`` is ``None``, naming source, row, field and column.
    """
    for number, record in parse_table(source, model, mapping, image_folder=image_folder):
        if not isinstance(record, BadRow):
            yield number, record
        elif bad_rows is None:
            raise record.error
        else:
            bad_rows[number] = record


class _RowReader(Generic[RequestT]):
    """Reader of one record from one row."""

    def __init__(
        self,
        table: Table,
        model: type[RequestT],
        mapping: TableMapping,
        image_folder: Path | None,
    ) -> None:
        self.table = table
        self.model = model
        self.mapping = mapping
        self.image_folder = image_folder
        self.is_open = table.is_csv or table.hub is not None or bool(mapping.columns)
        self.separator = mapping.separator or (DEFAULT_SEPARATOR if table.is_csv else None)
        self.plan = ColumnPlan(mapping, is_labelled=issubclass(model, LabelledExample))
        self._whole: dict[str, bool] = {}

    def check_columns(self) -> None:
        """Raise ``CustosError`` if the columns of a table do not suit."""
        if not self.is_open:
            return
        if columns := self.table.columns(self.plan.needed):
            self.plan.check(self.table.name, columns)

    def cell(self, field: str, row: Any) -> str:
        """Return what a row has for a field as the table has it; empty if that is no text."""
        value = row.get(self.plan.column(field)) if isinstance(row, Mapping) else None
        text = as_text(value)
        return text if isinstance(text, str) else ""

    def read(self, number: int, row: Any) -> RequestT:
        """Return the record of a row.

        Raises:
            CustosError: Naming the row and, where there is one, the field and its column.
        """
        location = self.table.location(number)
        if isinstance(row, CustosError):
            raise row
        if not isinstance(row, dict):
            hint = f"; {WHOLE_ARRAY}" if isinstance(row, list) else ""
            raise CustosError(f"{location}: expected an object, got {type(row).__name__}{hint}")
        try:
            record = self._record(row)
            if isinstance(record, LabelledExample):
                get_task(record.task).check(record)
        except FieldError as error:
            raise self._with_column(error, row).at(location) from None
        if not isinstance(record, LabelledExample):
            return record
        mapping = self.mapping
        labelled = with_our_labels(record, mapping.labels, location, mapping.columns)
        return cast(RequestT, labelled)

    def _record(self, row: dict[str, Any]) -> RequestT:
        if self.is_open:
            self.plan.check_names(self.table.name, row)
            fields, metadata = self.plan.fill(row)
        else:
            self.plan.check_shape(row)
            fields = {name: value for name, value in row.items() if not is_empty(value)}
            metadata = {}
            self._add_empty_responses(fields, row)
        if not self._is_our_reasoning(fields.get("reasoning")):
            metadata["reasoning"] = json_value(fields.pop("reasoning"))
        for name, value in fields.items():
            try:
                fields[name] = self._value(name, value)
            except CustosError as error:
                raise FieldError(name, str(error)) from None
        self._join_people(fields)
        if metadata:
            own = fields.get("metadata", {})
            fields["metadata"] = {**own, **metadata} if isinstance(own, Mapping) else own
        given = self.mapping.given
        for name, value in given.items():
            if fields.get(name) is None:
                fields[name] = value
            elif fields[name] != value and name != "task":
                option = f"--{name.replace('_', '-')}"
                raise FieldError(name, f"the row has '{fields[name]}', {option} is '{value}'")
        if "label" in fields and not issubclass(self.model, LabelledExample):
            parse_record(LabelledExample, fields, "")  # its label is checked, and then left out
            fields = {name: value for name, value in fields.items() if name in REQUEST_FIELDS}
        return under_given_task(parse_record(self.model, fields, ""), given)

    def _join_people(self, fields: dict[str, Any]) -> None:
        """Bring the labels of single people together; most of them decide where there is no label.

        Raises:
            FieldError: If a cell holds no labels of people.
        """
        try:
            given = fields.pop(ANNOTATOR_LABELS, {})
            people = as_annotator_labels(given, self.separator, fields.get("annotators", ()))
        except CustosError as error:
            raise FieldError(ANNOTATOR_LABELS, str(error)) from None
        for name in [name for name in fields if name.startswith(PERSON)]:
            people[name.removeprefix(PERSON)] = fields.pop(name)
        if not people:
            return
        fields[ANNOTATOR_LABELS] = people
        label = most_given(people, self.mapping.labels)
        if label is not None:
            fields.setdefault("label", label)

    def _is_our_reasoning(self, value: Any) -> bool:
        """Return whether a cell is our field ``reasoning``, and no column of a model's thoughts."""
        is_word = value is None or value in get_args(Reasoning)
        return is_word or "reasoning" in self.mapping.columns

    def _value(self, name: str, value: Any) -> Any:
        """Return the content of a cell as its field takes it."""
        is_whole = self._is_whole(self.plan.column(name), value)
        if name == "images":
            names = as_list(value, self.separator) if isinstance(value, str) else value
            return as_images(names, self.table.folder, self.image_folder)
        if name in LIST_FIELDS:
            keeps_empty = name == "responses"
            return as_list(value, self.separator, keeps_empty=keeps_empty, is_whole=is_whole)
        if name == "metadata":
            return json_value(as_metadata(value) if self.is_open else value)
        is_text = name in TEXT_FIELDS or name.startswith(PERSON)
        return as_text(value, is_whole=is_whole) if is_text else value

    def _is_whole(self, column: str, value: Any) -> bool:
        """Return whether all numbers and times of a column are whole.

        The column is read for it, once, if the value could be one of them.
        """
        elements = value if isinstance(value, list) else [value]
        if not any(isinstance(element, float | datetime) for element in elements):
            return False
        if column not in self._whole:
            rows = (with_nested_columns(row, [column]) for _, row in self.table.rows())
            cells = (row.get(column) for row in rows if isinstance(row, dict))
            self._whole[column] = not any(map(holds_part, cells))
        return self._whole[column]

    def _add_empty_responses(self, fields: dict[str, Any], row: Mapping[str, Any]) -> None:
        """Add the responses of a row's task that its row leaves empty and the table has."""
        given = [name for name in RESPONSES if name in fields]
        default = JudgeRequest.model_fields["task"].default
        try:
            task = get_task(str(self.mapping.task or fields.get("task") or default))
        except FieldError:  # is reported with the row
            return
        names = RESPONSES[:1] if task.num_responses == 1 else PAIR
        if all(name in names for name in given):
            for name in names:
                if name not in fields and (name in row or name in self._columns):
                    fields[name] = ""

    @cached_property
    def _columns(self) -> tuple[str, ...]:
        """Return the columns of the table, as far as responses need them."""
        return self.table.columns(RESPONSES[:3])

    def _with_column(self, error: FieldError, row: dict[str, Any]) -> FieldError:
        """Return an error that names our field as the mapping does, and the column."""
        if not self.is_open:
            return error
        field = self.plan.field(error.field)
        column = self.plan.column(field)
        message = error.message + part_options(field, column, row.get(column))
        if column == field:
            return FieldError(field, message)
        if not is_empty(row.get(column)):
            return FieldError(field, f"column '{column}': {message}")
        reason = "" if error.message == "Field required" else f"; {error.message}"
        return FieldError(field, f"column '{column}' is empty{reason}")
