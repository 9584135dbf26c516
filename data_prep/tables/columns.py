"""Columns of a table, and the fields of ours that they fill."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from data_prep.tables.cells import json_value
from data_prep.tables.fields import (
    ANNOTATOR_LABELS,
    METADATA,
    PAIR,
    PERSON,
    REQUEST_FIELDS,
    RESPONSES,
    TABLE_FIELDS,
    map_option,
    nearest_field,
    suggest_columns,
)
from data_prep.tables.mapping import TableMapping
from data_prep.tables.nested_cells import leading_parts
from judging.errors import CustosError, FieldError, nearest_name
from judging.files.values import is_empty
from judging.tasks import get_task
from judging.types import JudgeRequest


class ColumnPlan:
    """The columns that fill our fields, and those that go to ``metadata``.

    A column fills the fields that the mapping says, and the field of its own name unless another
    column is mapped to that.

    Args:
        mapping: What the user says.
        is_labelled: Whether labels are wanted, or the request alone.
    """

    def __init__(self, mapping: TableMapping, is_labelled: bool) -> None:
        self.mapping = mapping
        self.is_labelled = is_labelled
        self.fields = TABLE_FIELDS if is_labelled else REQUEST_FIELDS
        self.mapped = dict(mapping.columns)
        self._responses = tuple(name for name in RESPONSES if name in self.mapped)
        maps_pair = any(name in self.mapped for name in PAIR)
        self._other_responses = tuple(
            name for name in RESPONSES if self._responses and not (maps_pair and name in PAIR)
        )
        self._free: list[str] = []
        self._checked: set[str] = set()

    @property
    def needed(self) -> set[str]:
        """Return the columns without which a table does not suit."""
        mapped = {theirs for ours, theirs in self.mapped.items() if self._is_wanted(ours)}
        return mapped | {name for name in self._wanted(self.mapped) if name not in self.mapped}

    def column(self, field: str) -> str:
        """Return the column that fills a field."""
        return self.mapped.get(field, field)

    def check(self, source: str, columns: Collection[str]) -> None:
        """Check that the columns of a table suit.

        Raises:
            CustosError: If a column that is mapped is missing, if a field of the task has no
                column, or if a column without use is called nearly like a field without a column.
        """
        shown = f"the columns are {', '.join(columns)}"
        for ours, theirs in self.mapped.items():
            if theirs not in columns and self._is_wanted(ours):
                near = nearest_field(theirs, columns)
                advice = f"; the nearest is '{near}'" if near else nearest_name(theirs, columns)
                raise CustosError(f"{source}: no column '{theirs}' for '{ours}'{advice}; {shown}")
        filled = {name for name in self.fields if self._fills(name, columns)}
        if any(map(self._is_of_person, (*self.mapped, *columns))):
            filled.add(ANNOTATOR_LABELS)
        self._responses = tuple(name for name in RESPONSES if name in filled)
        self._free = [
            name
            for name in self.fields
            if name not in filled
            and not (self._responses and name in RESPONSES)
            and name != "reasoning"  # columns called nearly so hold a model's thoughts
        ]
        missing = [name for name in self._wanted(filled) if name not in filled]
        if missing:
            # Fields that would be the next error, once those that are missing have a column.
            nearly = [nearest_field(column, self._free) for column in self._unused(columns)]
            named = dict.fromkeys([*missing, *filter(None, nearly)])
            raise CustosError(
                f"{source}: no column for {', '.join(missing)}; {shown}; say which ones hold them: "
                f"{self._map_options([*named], columns)}"
            )
        self.check_names(source, columns)

    def check_names(self, source: str, columns: Collection[str]) -> None:
        """Refuse a column that nothing uses and whose name is nearly that of a free field.

        Rows of JSONL files may bring new columns, so every row is checked; known columns cost
        nothing.
        """
        for column in columns:
            if column in self._checked:
                continue
            self._checked.add(column)
            if self._unused([column]) and (near := nearest_field(column, self._free)):
                raise CustosError(
                    f"{source}: column '{column}' is nearly our field '{near}', which no column "
                    f"fills; give {map_option(near, column)}, or "
                    f"{map_option(METADATA + column, column)} to keep it as metadata"
                )

    def check_shape(self, row: Mapping[str, Any]) -> None:
        """Refuse keys that are none of our fields, in a row that must have our shape.

        Raises:
            FieldError: Naming the first such key and the options that read it.
        """
        is_labelled = "label" in row or ANNOTATOR_LABELS in row
        fields = TABLE_FIELDS if is_labelled else self.fields
        others = [name for name in row if name not in fields]
        if not others:
            return
        if "judge" in others:  # as in the body of POST /judge
            raise FieldError("judge", "rows of files name no judge; name it with --judge")
        missing = [name for name in self._wanted(row) if name not in row]
        free = [name for name in fields if name not in row and name != "reasoning"]
        near = nearest_field(others[0], free)
        options = self._map_options(missing, others) if missing else ""
        if not options or "COLUMN" in options:
            options = map_option(near or f"{METADATA}{others[0]}", others[0])
        raise FieldError(
            others[0],
            f"not one of our fields{f', the nearest is {near!r}' if near else ''}; with {options} "
            "it is read, and what is not mapped goes to metadata",
        )

    def field(self, path: str) -> str:
        """Return the field that the dotted path of a validated record stands for."""
        name, _, index = path.partition(".")
        if name != "responses" or self._responses in ((), ("responses",)):
            return name
        return self._responses[int(index) if index.isdigit() else 0]

    def fill(self, row: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the cells of our fields and the cells of ``metadata``.

        Empty cells are left out, but an empty response is a response.
        """
        cells = {name: value for name, value in row.items() if not is_empty(value)}
        fields: dict[str, Any] = {}
        metadata: dict[str, Any] = {}
        for column, value in cells.items():
            if (field := self._field_of(column)) is not None:
                fields[field] = value
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

    def _field_of(self, column: str) -> str | None:
        """Return the field that a column fills because it is called so."""
        is_taken = column in self.mapped or column in self._other_responses
        is_metadata = self.mapped.get(METADATA + column) == column
        is_named = column in TABLE_FIELDS or column.startswith(PERSON)
        return column if is_named and not is_taken and not is_metadata else None

    def _unused(self, columns: Collection[str]) -> list[str]:
        """Return the columns that fill no field."""
        used = {part for theirs in self.mapped.values() for part in leading_parts(theirs)}
        return [name for name in columns if name not in used and self._field_of(name) is None]

    def _is_wanted(self, ours: str) -> bool:
        return self._is_ours(ours) or ours.startswith(METADATA)

    def _is_ours(self, name: str) -> bool:
        return name in self.fields or self._is_of_person(name)

    def _is_of_person(self, name: str) -> bool:
        """Return whether a name is that of one person's labels, and labels are wanted."""
        return self.is_labelled and name.startswith(PERSON)

    def _fills(self, field: str, columns: Collection[str]) -> bool:
        if field in self.mapped:
            return True
        return field in columns and self._field_of(field) is not None

    def _wanted(self, filled: Collection[str]) -> list[str]:
        """Return the fields that the task needs, as far as they are known before the rows."""
        wanted = ["question"]
        num_responses = 1
        if "task" not in filled:
            default = str(JudgeRequest.model_fields["task"].default)
            task = get_task(self.mapping.task or default)
            wanted += [name for name in task.required if name not in wanted]
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
