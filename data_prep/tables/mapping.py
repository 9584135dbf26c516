"""The mapping of a table: which column fills which field, and what its labels mean."""

from __future__ import annotations

import io
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from data_prep.tables.fields import METADATA, PERSON, TABLE_FIELDS, nearest_field
from judging.errors import CustosError, nearest_name
from judging.files.csv_rows import DELIMITER_NAMES
from judging.files.opening import TextFormat, nearest_file
from judging.files.yaml_text import load_yaml
from judging.tasks import task_names
from judging.types import Reasoning, ReferenceMode, parse_record

MAPPING_SUFFIXES = (".yaml", ".yml")
ANNOTATORS = "annotators"
"""Key of a mapping: the columns that hold the labels of one person each."""


class TableMapping(BaseModel):
    """Names and settings for a table that does not use our names; the keys of ``mapping.yaml``.

    Columns that are not named here and not called like one of our fields go to ``metadata``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: Mapping[str, str] = Field(default_factory=dict)
    """Our field, ``metadata.NAME`` or ``annotator_labels.NAME``, to their column:
    ``{"references": "gold"}``."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """Their label to ours: ``{"right": "Correct"}``. An empty one is no label, as where a person
    skipped a row."""
    separator: str | None = Field(default=None, min_length=1)
    """Text between the elements of a list in one cell. ``None``: ``;`` in CSV and TSV files; in the
    other kinds a text is one element."""
    delimiter: str | None = None
    """Character between the cells of a CSV or TSV file; ``None``: decided by all of its rows."""
    encoding: str | None = None
    """Encoding of a file of text. ``None``: UTF-8, or UTF-16 after its byte order mark."""
    reference_mode: ReferenceMode | None = None
    """The reference mode of every row."""
    task: str | None = None
    """The task of every row."""
    variant: str | None = None
    """The variant of every row."""
    mode: Literal["score", "critique"] | None = None
    """The mode of every row."""
    reasoning: Reasoning | None = None
    """``keep``: what stands in thinking tags is graded, in every row; ``drop``: it is not."""

    @model_validator(mode="before")
    @classmethod
    def _keys_exist(cls, values: Any) -> Any:
        """Refuse other keys, and read ``annotators``: columns that hold one person's labels each.

        It is short for ``annotator_labels.NAME: NAME`` under ``columns``.
        """
        if not isinstance(values, Mapping):
            return values
        known = (*cls.model_fields, ANNOTATORS)
        for key in values:
            if key not in known:
                near = get_close_matches(str(key), known, n=1)
                nearest = f"the nearest is '{near[0]}'; " if near else ""
                keys = ", ".join(known)
                raise ValueError(f"no such key '{key}' of a mapping; {nearest}the keys are {keys}")
        people = values.get(ANNOTATORS) or ()
        if not isinstance(people, list | tuple) or not all(isinstance(p, str) for p in people):
            raise ValueError(f"'{ANNOTATORS}' is a list of columns, such as [anna, ben]")
        others = {key: value for key, value in values.items() if key != ANNOTATORS}
        if people and isinstance(columns := values.get("columns") or {}, Mapping):
            others["columns"] = {**{f"{PERSON}{name}": name for name in people}, **columns}
        return others

    @field_validator("columns", "labels", mode="before")
    @classmethod
    def _names_are_text(cls, names: Any) -> Any:
        if not isinstance(names, Mapping):
            return names
        if any(isinstance(name, bool) for pair in names.items() for name in pair):
            raise ValueError("YAML reads yes, no, on and off as truth values; quote them: 'yes'")
        return {_number_as_text(ours): _number_as_text(theirs) for ours, theirs in names.items()}

    @field_validator("columns")
    @classmethod
    def _fields_are_ours(cls, columns: Mapping[str, str]) -> Mapping[str, str]:
        for ours in columns:
            is_part = ours.startswith((METADATA, PERSON)) and ours not in (METADATA, PERSON)
            if ours not in TABLE_FIELDS and not is_part:
                near = nearest_field(ours, TABLE_FIELDS)
                nearest = f"; the nearest is '{near}'" if near else nearest_name(ours, TABLE_FIELDS)
                fields = (
                    nearest or f"; take {', '.join(TABLE_FIELDS)}, metadata.NAME or {PERSON}NAME"
                )
                raise ValueError(f"'{ours}' is not one of our fields{fields}")
        is_pair = "response_a" in columns or "response_b" in columns
        if is_pair + ("response" in columns) + ("responses" in columns) > 1:
            raise ValueError("map 'response', or 'response_a' and 'response_b', or 'responses'")
        return columns

    @field_validator("delimiter")
    @classmethod
    def _delimiter_is_a_character(cls, delimiter: str | None) -> str | None:
        by_name = {name: character for character, name in DELIMITER_NAMES.items()}
        character = by_name.get(str(delimiter).lower(), "\t" if delimiter == "\\t" else delimiter)
        if character is not None and (len(character) != 1 or character in '"\r\n'):
            names = ", ".join(by_name)
            raise ValueError(f"'{delimiter}' is not one of {names}, and no single character")
        return character

    @field_validator("encoding")
    @classmethod
    def _encoding_is_known(cls, encoding: str | None) -> str | None:
        try:
            io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        except (LookupError, ValueError):
            raise ValueError(
                f"'{encoding}' is no encoding of text; take utf-8, utf-16, cp1252, latin-1 or "
                "another one that Python has"
            ) from None
        return encoding

    @field_validator("task")
    @classmethod
    def _task_is_known(cls, task: str | None) -> str | None:
        if task is not None and task not in task_names():
            raise ValueError(f"'{task}' is not one of {', '.join(task_names())}")
        return task

    @property
    def text_format(self) -> TextFormat:
        """Return what is stated about the text of the table."""
        return TextFormat(self.delimiter, self.encoding)

    @property
    def given(self) -> dict[str, str]:
        """Return the fields that have one value in all rows."""
        fields = ("task", "variant", "reference_mode", "mode", "reasoning")
        return {name: value for name in fields if (value := getattr(self, name)) is not None}


def read_mapping(path: Path) -> TableMapping:
    """Read a ``mapping.yaml``.

    Raises:
        CustosError: If the file is missing, not YAML, or not a mapping.
    """
    try:
        # The base loader takes every value as text: labels may be called yes, no or 1.
        content = load_yaml(path.read_text(encoding="utf-8"), yaml.BaseLoader)
    except FileNotFoundError:
        raise CustosError(
            f"{path}: no such mapping{nearest_file(path, MAPPING_SUFFIXES)}"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CustosError(f"{path}: not valid YAML: {error}") from None
    return parse_record(TableMapping, content or {}, str(path))


def write_mapping(path: Path, mapping: TableMapping) -> None:
    """Write a mapping as a file that ``read_mapping`` reads."""
    keys = mapping.model_dump(mode="json", exclude_defaults=True)
    text = yaml.safe_dump(keys, sort_keys=False, allow_unicode=True)
    path.write_text(text, encoding="utf-8")


def _number_as_text(name: Any) -> Any:
    return str(name) if isinstance(name, int | float) else name
