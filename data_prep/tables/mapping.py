"""The mapping of a table: which column fills which field, and what its labels mean."""

from __future__ import annotations

import io
import re
import shlex
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import yaml
from pydantic import BaseModel, Field, field_validator, model_validator

from judging.errors import CustosError, nearest_name
from judging.files.csv_rows import DELIMITER_NAMES
from judging.files.opening import TextFormat, load_yaml, nearest_file
from judging.tasks import task_names
from judging.types import JudgeRequest, LabelledExample, Reasoning, ReferenceMode, parse_record

MAPPING_SUFFIXES = (".yaml", ".yml")
ANNOTATORS = "annotators"
"""Key of a mapping: the columns that hold the labels of one person each."""


METADATA = "metadata."
"""Before the name of an entry of ``metadata`` in a mapping."""
ANNOTATOR_LABELS = "annotator_labels"
PERSON = f"{ANNOTATOR_LABELS}."
"""Before the name of a person whose labels a column holds."""
RESPONSES = ("response", "response_a", "response_b", "responses")
"""The names under which responses may be given."""
PAIR = RESPONSES[1:3]
"""The responses of a pair; one without the other is no pair."""
REQUEST_FIELDS = (*RESPONSES[:3], *JudgeRequest.model_fields)
"""The fields of a request that a table can fill."""
TABLE_FIELDS = (*RESPONSES[:3], *LabelledExample.model_fields)
"""The fields of a labelled row that a table can fill."""
_KINDS = {
    name: {get_origin(part) or part for part in (field.annotation, *get_args(field.annotation))}
    for name, field in LabelledExample.model_fields.items()
}
"""What the annotation of a field holds: ``str``, ``tuple``, ``bool``."""
LIST_FIELDS = tuple(name for name, kinds in _KINDS.items() if tuple in kinds)
TEXT_FIELDS = RESPONSES[:3] + tuple(
    name for name, kinds in _KINDS.items() if kinds & {str, Literal} and not kinds & {tuple, dict}
)
PROBABILITIES = tuple(
    name
    for name, field in LabelledExample.model_fields.items()
    if 1 in {getattr(limit, side, None) for limit in field.metadata for side in ("lt", "le")}
)
"""Fields up to 1; a comma in them can stand before decimals alone."""

SYNONYMS = {
    "question": ("prompt", "query", "input", "instruction", "problem"),
    "references": (
        *("gold", "ground_truth", "gold_answer", "target", "expected", "expected_answer"),
        *("reference_answer", "correct_answer", "reference", "solution", "answer"),
    ),
    "response": (
        *("model_answer", "model_response", "prediction", "output", "completion", "generation"),
        *("model_output", "candidate", "reply", "answer"),
    ),
    "response_a": ("answer_a", "output_a", "model_a", "a", "response_1", "answer_1", "chosen"),
    "response_b": ("answer_b", "output_b", "model_b", "b", "response_2", "answer_2", "rejected"),
    "label": (
        *("human_label", "gold_label", "grade", "rating", "verdict", "judgement", "judgment"),
        *("correct", "correctness", "is_correct", "winner", "preference", "score"),
    ),
}
"""Usual names of columns, the likeliest first; only suggestions are made from them."""
_ALIKE, _NEAR = 0.75, 0.85


class TableMapping(BaseModel, frozen=True, extra="forbid"):
    """Names and settings for a table that does not use our names; the keys of ``mapping.yaml``.

    Columns that are not named here and not called like one of our fields go to ``metadata``.
    """

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
        """Refuse other keys; read ``annotators``, short for ``annotator_labels.NAME: NAME``.

        ``columns`` may be called ``map``, as the option is.
        """
        if not isinstance(values, Mapping):
            return values
        if "columns" not in values:
            values = {"columns" if key == "map" else key: of for key, of in values.items()}
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

        def as_text(name: Any) -> Any:
            return str(name) if isinstance(name, int | float) else name

        return {as_text(ours): as_text(theirs) for ours, theirs in names.items()}

    @field_validator("columns")
    @classmethod
    def _fields_are_ours(cls, columns: Mapping[str, str]) -> Mapping[str, str]:
        for ours in columns:
            is_part = ours.startswith((METADATA, PERSON)) and ours not in (METADATA, PERSON)
            if ours not in TABLE_FIELDS and not is_part:
                near = nearest_field(ours, TABLE_FIELDS)
                nearest = f"; the nearest is '{near}'" if near else nearest_name(ours, TABLE_FIELDS)
                fields = f"; take {', '.join(TABLE_FIELDS)}, metadata.NAME or {PERSON}NAME"
                raise ValueError(f"'{ours}' is not one of our fields{nearest or fields}")
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
        """What is stated about the text of the table."""
        return TextFormat(self.delimiter, self.encoding)

    @property
    def given(self) -> dict[str, Any]:
        """The fields that have one value in all rows."""
        fields = TableMapping.model_fields.keys() & JudgeRequest.model_fields.keys()
        return {name: value for name in fields if (value := getattr(self, name)) is not None}


def read_mapping(path: Path) -> TableMapping:
    """Read a ``mapping.yaml``; refuse one that is missing, not YAML, or not a mapping."""
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


def nearest_field(name: str, fields: Iterable[str]) -> str | None:
    """Find the field that a name nearly equals: another case, a plural, a slip of one letter."""
    fields = tuple(fields)
    plain = _plain(name)
    for field in fields:
        if _plain(field) == plain:
            return field
    for field in fields:
        other = _plain(field)
        if other.rstrip("s") == plain.rstrip("s"):
            return field
        is_long = min(len(plain), len(other)) >= 6
        if is_long and abs(len(plain) - len(other)) <= 1 and _ratio(plain, other) >= _NEAR:
            return field
    return None


def suggest_columns(fields: Iterable[str], columns: Collection[str]) -> dict[str, str]:
    """Find a likely column for each field that has one; no column is suggested twice."""
    free = {_plain(column): column for column in reversed(tuple(columns))}
    suggestions: dict[str, str] = {}
    for field in fields:
        names = [_plain(name) for name in (field, *SYNONYMS.get(field, ()))]
        likely = next((name for name in names if name in free), None)
        if likely is None and free:
            ratios = {name: max(_ratio(name, known) for known in names) for name in free}
            nearest = max(ratios, key=ratios.__getitem__)
            likely = nearest if ratios[nearest] >= _ALIKE else None
        if likely is not None:
            suggestions[field] = free.pop(likely)
    return suggestions


def map_option(ours: str, theirs: str) -> str:
    """Write the option that reads our field from a column, ready for a shell."""
    return f"--map {shlex.quote(f'{ours}={theirs}')}"


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFC", name).casefold())


def _ratio(name: str, other: str) -> float:
    """Compute how alike two names are; 0 if their lengths alone tell that they are not alike."""
    matcher = SequenceMatcher(None, name, other)
    return matcher.ratio() if matcher.real_quick_ratio() >= _ALIKE else 0.0
