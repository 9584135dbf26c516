"""Records of a user's table: from its columns and words to our fields and labels."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar, cast, get_args

from data_prep.tables.cells import (
    DEFAULT_SEPARATOR,
    as_annotator_labels,
    as_list,
    as_metadata,
    image_names,
    json_value,
    part_options,
    with_nested_columns,
)
from data_prep.tables.labels import (
    in_three_levels,
    may_be_partial,
    most_given,
    needs_three_levels,
    with_our_labels,
)
from data_prep.tables.mapping import (
    ANNOTATOR_LABELS,
    LIST_FIELDS,
    METADATA,
    PAIR,
    PERSON,
    PROBABILITIES,
    REQUEST_FIELDS,
    RESPONSES,
    TABLE_FIELDS,
    TEXT_FIELDS,
    TableMapping,
    map_option,
    nearest_field,
    suggest_columns,
)
from data_prep.tables.source import Table, open_table
from judging.errors import CustosError, FieldError, nearest_name
from judging.files.records import WHOLE_ARRAY
from judging.files.values import as_text, holds_part, is_empty
from judging.tasks import get_task, labels_of
from judging.tasks.hieval_qs import PARTIAL
from judging.types import JudgeRequest, LabelledExample, Reasoning, parse_record, score_of

RequestT = TypeVar("RequestT", bound=JudgeRequest)
_OF_VERDICTS = frozenset({"label", "error_type", "confidence", "score", "critique"})
"""Fields of a labelled row that verdicts have too."""
_OURS = "custos_"
"""Prefix of a verdict's column whose name the graded table already has."""
DEFAULT_TASK = str(JudgeRequest.model_fields["task"].default)


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used."""

    error: CustosError
    label: str
    """The label as the table has it; empty if the row has none."""
    id: str
    """The id as the table has it; empty if it cannot be read."""


def parse_table(
    source: Table | Path | str,
    model: type[RequestT],
    mapping: TableMapping | None = None,
    *,
    image_folder: Path | None = None,
) -> Iterator[tuple[int, RequestT | BadRow]]:
    """Yield ``(row number, record or bad row)`` for the rows of a user's table.

    CSV and TSV files and hub data sets are open tables: columns that fill no field go to
    ``metadata``. Other files are open if the mapping names columns; else keys that are not our
    fields are refused. With ``JudgeRequest`` as ``model`` labels may be missing or unknown to the
    task. Pictures that come as bytes are saved in ``image_folder``; ``None`` makes data URLs of
    them. Raise ``CustosError`` if the source cannot be read or lacks a column.
    """
    mapping = mapping or TableMapping()
    table = open_table(source, mapping.text_format)
    reader = TableReader(table, model, mapping, image_folder)
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
    """Yield ``(row number, record)`` for the good rows of a user's table, as :func:`parse_table`.

    ``bad_rows`` gets every row that cannot be used, by its number; ``None`` raises on the first.
    """
    for number, record in parse_table(source, model, mapping, image_folder=image_folder):
        if not isinstance(record, BadRow):
            yield number, record
        elif bad_rows is None:
            raise record.error
        else:
            bad_rows[number] = record


def task_fields(task: str) -> dict[str, str]:
    """Return the fields that move a row to another task: one without critiques decides at once."""
    return {"task": task} | ({"mode": "score"} if get_task(task).critique is None else {})


class TableReader(Generic[RequestT]):
    """Reader of the records of one table.

    A column fills the fields that the mapping gives it, and the field of its own name unless
    another column is mapped to that, or it holds the labels (``--map label=score``), or a judge's
    verdict beside a label of people. The other columns of an open table go to ``metadata``.

    The columns of an open table are checked before its rows are read, unless the caller picks the
    cells of mapped columns from every row. Raise ``CustosError`` if a column that is mapped is
    missing, if a field of the task has no column, or if an unused column has nearly the name of a
    field without a column.
    """

    def __init__(
        self,
        table: Table,
        model: type[RequestT],
        mapping: TableMapping,
        image_folder: Path | None,
        *,
        picks_cells: bool = False,
    ) -> None:
        self.table, self.model, self.mapping = table, model, mapping
        self.image_folder = image_folder
        self.is_open = table.is_open or bool(mapping.columns)
        self.separator = mapping.separator or (DEFAULT_SEPARATOR if table.is_spreadsheet else None)
        self.is_labelled = issubclass(model, LabelledExample)
        self.fields = TABLE_FIELDS if self.is_labelled else REQUEST_FIELDS
        self.mapped = dict(mapping.columns)
        self._responses = tuple(name for name in RESPONSES if name in self.mapped)
        maps_pair = any(name in self.mapped for name in PAIR)
        self._other_responses = tuple(
            name for name in RESPONSES if self._responses and not (maps_pair and name in PAIR)
        )
        self._free: list[str] = []
        """Fields that no column fills."""
        self._checked: set[str] = set()
        """Columns whose names have been checked."""
        self._whole: dict[str, bool] = {}
        """By column, whether all its numbers and times are whole."""
        if self.is_open and not picks_cells:
            self._check_columns()

    def _check_columns(self) -> None:
        mapped = {t for ours, t in self.mapped.items() if self._is_ours(ours, METADATA)}
        needed = mapped | set(self._wanted(self.mapped)) - self.mapped.keys()
        columns = self.table.columns(needed)
        if not columns:
            return
        shown = f"the columns are {', '.join(columns)}"
        for ours, theirs in self.mapped.items():
            if theirs not in columns and self._is_ours(ours, METADATA):
                near = nearest_field(theirs, columns)
                advice = f"; the nearest is '{near}'" if near else nearest_name(theirs, columns)
                raise CustosError(
                    f"{self.table.name}: no column '{theirs}' for '{ours}'{advice}; {shown}"
                )
        filled = {
            name
            for name in self.fields
            if name in self.mapped or (name in columns and self._fills_field(name))
        }
        if self.is_labelled and any(name.startswith(PERSON) for name in (*self.mapped, *columns)):
            filled.add(ANNOTATOR_LABELS)
        self._responses = tuple(name for name in RESPONSES if name in filled)
        self._free = [
            name
            for name in self.fields
            if name not in filled
            and not (self._responses and name in RESPONSES)
            and name != "reasoning"  # columns with nearly this name hold a model's thoughts
        ]
        missing = [name for name in self._wanted(filled) if name not in filled]
        if missing:
            # Name other free fields too: each would be the next error once these have a column.
            nearly = [nearest_field(column, self._free) for column in self._unused(columns)]
            named = dict.fromkeys([*missing, *filter(None, nearly)])
            raise CustosError(
                f"{self.table.name}: no column for {', '.join(missing)}; {shown}; say which ones "
                f"hold them: {self._map_options([*named], columns)}"
            )
        self._check_names(columns)

    def cell(self, field: str, row: Any) -> str:
        """Look up a row's cell for a field, as the table has it; empty if it is no text."""
        value = row.get(self.mapped.get(field, field)) if isinstance(row, Mapping) else None
        text = as_text(value)
        return text if isinstance(text, str) else ""

    def read(self, number: int, row: Any) -> RequestT:
        """Read the record of a row; errors name the row and, if known, the field and its column."""
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
        mapping = self.mapping
        has_modes = get_task(record.task).has_reference_modes
        if has_modes and record.reference_mode == "any" and self._has_three_levels:
            record = in_three_levels(record)
        if not isinstance(record, LabelledExample):
            return record
        labelled = with_our_labels(record, mapping.labels, location, mapping.columns)
        return cast(RequestT, labelled)

    @cached_property
    def _of_judge(self) -> Collection[str]:
        """List the columns of the judge's verdict in a graded table that also has people's labels.

        Read as people's, they would add the judge's error type or confidence to a person's label.
        """
        names: set[str] = set()
        if self.table.is_spreadsheet:
            names = set(self.table.sheet.columns)
        elif self.table.is_parquet:
            import pyarrow.parquet as pq

            names = set(pq.read_schema(self.table.path).names)
        is_graded = {"status", "judge_name", "rubric"} <= {n.removeprefix(_OURS) for n in names}
        own = {name for name in _OF_VERDICTS if _OURS + name in names}
        if not is_graded or ("label" not in own and self.mapped.get("label", "label") == "label"):
            return ()
        return _OF_VERDICTS - own

    @cached_property
    def _has_three_levels(self) -> bool:
        """Tell whether people called a row of mode ``any`` partly right: then any row may be.

        They did if the mapping has a word for it. Otherwise a table with labels is read for this,
        once.
        """
        labels, columns = self.mapping.labels, self.mapping.columns.values()
        if any(score_of(ours) == PARTIAL for ours in labels.values()):
            return True
        if not self.is_labelled:
            return False
        for _, stored in self.table.rows():
            row = with_nested_columns(stored, columns)
            if not isinstance(row, dict) or not may_be_partial(row.values(), labels):
                continue
            try:
                record = self._record(row)
            except CustosError:  # reported when the row itself is read
                continue
            if isinstance(record, LabelledExample) and needs_three_levels(record, labels):
                return True
        return False

    def _record(self, row: dict[str, Any]) -> RequestT:
        if self.is_open:
            self._check_names(row)
            fields, metadata = self._fill(row)
        else:
            self._check_shape(row)
            fields = {name: value for name, value in row.items() if not is_empty(value)}
            metadata = {}
            self._add_empty_responses(fields, row)
        thoughts = fields.get("reasoning")  # of a model, unless it is one of our options
        if thoughts not in (None, *get_args(Reasoning)) and "reasoning" not in self.mapped:
            metadata["reasoning"] = json_value(fields.pop("reasoning"))
        for name, value in fields.items():
            try:
                fields[name] = self.value(name, value)
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
        if not self.is_labelled:
            if "label" in fields:
                parse_record(LabelledExample, fields, "")  # checks it; then it is left out
            fields = {name: value for name, value in fields.items() if name in REQUEST_FIELDS}
        record = parse_record(self.model, fields, "")
        for name, value in given.items():
            if name != "task" and (own := getattr(record, name)) != value:
                row_has, option = f"the row has '{as_text(own)}'", f"--{name.replace('_', '-')}"
                raise FieldError(name, f"{row_has}, {option} is '{as_text(value)}'")
        if (task := given.get("task", record.task)) == record.task:
            return record
        under_given = record.model_copy(update={**task_fields(task), **given})
        if labels_of(under_given) != labels_of(record):
            raise FieldError("task", f"the row has '{record.task}', --task is '{task}'")
        return under_given

    def _fill(self, row: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Divide a row into the cells of our fields and the cells of ``metadata``.

        Empty cells are left out, but an empty response is a response.
        """
        cells = {name: value for name, value in row.items() if not is_empty(value)}
        fields: dict[str, Any] = {}
        metadata: dict[str, Any] = {}
        for column, value in cells.items():
            if self._fills_field(column):
                fields[column] = value
            elif column not in self.mapped.values():
                metadata[column] = json_value(value)
        for ours, theirs in self.mapped.items():
            if theirs not in cells:
                continue
            if ours.startswith(METADATA):
                metadata[ours.removeprefix(METADATA)] = json_value(cells[theirs])
            else:
                fields[ours] = cells[theirs]
        for response in self._responses:
            fields.setdefault(response, "")
        kept = {name: value for name, value in metadata.items() if value is not None}
        return {name: value for name, value in fields.items() if self._is_ours(name)}, kept

    def _join_people(self, fields: dict[str, Any]) -> None:
        """Collect the labels of single people; without a label, their most frequent one is it."""
        try:
            given = fields.pop(ANNOTATOR_LABELS, {})
            people = as_annotator_labels(given, self.separator, fields.get("annotators", ()))
        except CustosError as error:
            raise FieldError(ANNOTATOR_LABELS, str(error)) from None
        for name in [name for name in fields if name.startswith(PERSON)]:
            people[name.removeprefix(PERSON)] = fields.pop(name)
        if people:
            fields[ANNOTATOR_LABELS] = people
            if others := [name for name, label in people.items() if not isinstance(label, str)]:
                raise FieldError(PERSON + others[0], "expected a text")
            if (label := most_given(people, self.mapping.labels)) is not None:
                fields.setdefault("label", label)

    def value(self, name: str, value: Any) -> Any:
        """Read the content of a cell as its field takes it."""
        is_whole = self._is_whole(self.mapped.get(name, name), value)
        if name == "images":
            names = as_list(value, self.separator) if isinstance(value, str) else value
            return image_names(names, self.table.folder, self.image_folder, in_cell=True)
        if name in LIST_FIELDS:
            keeps_empty = name == "responses"
            return as_list(value, self.separator, keeps_empty=keeps_empty, is_whole=is_whole)
        if name == "metadata":
            return json_value(as_metadata(value) if self.is_open else value)
        if name in PROBABILITIES and isinstance(value, str):
            return value.replace(",", ".")  # spreadsheets of many countries save commas
        if name in TEXT_FIELDS or name.startswith(PERSON):
            return as_text(value, is_whole=is_whole)
        return value.strip() if isinstance(value, str) else value

    def _is_whole(self, column: str, value: Any) -> bool:
        """Tell whether all numbers and times of a column are whole.

        Only if the value holds a number or a time, the column is read for this, once.
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
        """Add, as empty, the responses of a row's task that the table has and the row lacks."""
        try:
            task = get_task(str(self.mapping.task or fields.get("task") or DEFAULT_TASK))
        except FieldError:  # reported with the row
            return
        names = RESPONSES[:1] if task.num_responses == 1 else PAIR
        if all(name in names for name in RESPONSES if name in fields):
            for name in names:
                if name not in fields and (name in row or name in self._response_columns):
                    fields[name] = ""

    @cached_property
    def _response_columns(self) -> tuple[str, ...]:
        return self.table.columns(RESPONSES[:3])

    def _check_names(self, columns: Collection[str]) -> None:
        """Refuse an unused column whose name is nearly that of a field that no column fills.

        Rows of JSONL files may bring new columns, so every row is checked.
        """
        for column in columns:
            if column in self._checked:
                continue
            self._checked.add(column)
            if self._unused([column]) and (near := nearest_field(column, self._free)):
                raise CustosError(
                    f"{self.table.name}: column '{column}' is nearly our field '{near}', which no "
                    f"column fills; give {map_option(near, column)}, or "
                    f"{map_option(METADATA + column, column)} to keep it as metadata"
                )

    def _check_shape(self, row: Mapping[str, Any]) -> None:
        """Refuse keys that are not our fields, in a row that must have our fields."""
        others = [name for name in row if name not in TABLE_FIELDS]
        if not others:
            return
        if "judge" in others:  # as in the body of POST /judge
            raise FieldError("judge", "rows of files name no judge; name it with --judge")
        missing = [name for name in self._wanted(row) if name not in row]
        free = [name for name in self.fields if name not in row and name != "reasoning"]
        near = nearest_field(others[0], free)
        options = self._map_options(missing, others) if missing else ""
        if not options or "COLUMN" in options:
            options = map_option(near or f"{METADATA}{others[0]}", others[0])
        raise FieldError(
            others[0],
            f"not one of our fields{f', the nearest is {near!r}' if near else ''}; with {options} "
            "it is read, and what is not mapped goes to metadata",
        )

    def _with_column(self, error: FieldError, row: dict[str, Any]) -> FieldError:
        """Reword an error so that it names our field as the mapping does, and the column."""
        if not self.is_open:
            return error
        field, _, index = error.field.partition(".")
        if field == "responses" and self._responses not in ((), ("responses",)):
            field = self._responses[int(index) if index.isdigit() else 0]
        column = self.mapped.get(field, field)
        message = error.message + part_options(field, column, row.get(column))
        if column == field:
            return FieldError(field, message)
        if not is_empty(row.get(column)):
            return FieldError(field, f"column '{column}': {message}")
        reason = "" if error.message == "Field required" else f"; {error.message}"
        return FieldError(field, f"column '{column}' is empty{reason}")

    def _fills_field(self, column: str) -> bool:
        """Tell whether a column fills the field of its own name."""
        is_taken = column in self.mapped or column in self._other_responses
        is_other = column in (self.mapped.get("label"), self.mapped.get(METADATA + column))
        is_other |= column in self._of_judge
        is_named = column in TABLE_FIELDS or column.startswith(PERSON)
        return is_named and not is_taken and not is_other

    def _unused(self, columns: Collection[str]) -> list[str]:
        """List the columns that fill no field; a mapped ``a.b`` uses the column ``a`` too."""
        parts = [theirs.split(".") for theirs in self.mapped.values()]
        used = {".".join(keys[:length]) for keys in parts for length in range(1, len(keys) + 1)}
        used.update(self._of_judge)
        return [name for name in columns if name not in used and not self._fills_field(name)]

    def _is_ours(self, name: str, *others: str) -> bool:
        """Tell whether a name is a field of the model or begins with one of ``others``."""
        people = (PERSON,) if self.is_labelled else ()
        return name in self.fields or name.startswith((*people, *others))

    def _wanted(self, filled: Collection[str]) -> list[str]:
        """List the fields that the task needs, as far as they are known before the rows."""
        wanted = [] if "criteria" in filled else ["question"]
        num_responses = 1
        if "task" not in filled:
            task = get_task(self.mapping.task or DEFAULT_TASK)
            wanted = list(task.required)
            num_responses = task.num_responses
        if any(name in filled for name in PAIR):
            wanted += PAIR
        elif not any(name in filled for name in RESPONSES):
            wanted += ["response"] if num_responses == 1 else ["response_a", "response_b"]
        has_people = any(name == ANNOTATOR_LABELS or name.startswith(PERSON) for name in filled)
        return wanted + (["label"] if self.is_labelled and not has_people else [])

    def _map_options(self, missing: list[str], columns: Collection[str]) -> str:
        suggested = suggest_columns(missing, self._unused(columns))
        return " ".join(map_option(name, suggested.get(name, "COLUMN")) for name in missing)
