"""People check generated questions: sheets out, one per annotator, and their rulings back in."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from data_prep.construction.charthal.recipes import QRelation, QType
from judging.errors import CustosError
from judging.records import atomic_write, read_rows
from judging.types import parse_record

Status = Literal["", "keep", "discard"]

FINAL = "final"
"""Name of the sheet that settles disagreements."""

_RANGE = re.compile(r"\[\s*([^\s,\[\]]+)\s*,\s*([^\s,\[\]]+)\s*\]")


class Question(BaseModel):
    """A question as ChartHal's files hold it."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    id: str
    figure_id: str
    figure_path: str
    subq_idx: int
    q_type: QType
    q_relation: QRelation
    question: str
    ref_answer: str


class Check(Question):
    """A line of a sheet: the question, to be corrected in place, and what to do with it."""

    status: Status = ""
    """``keep``, with or without corrections, ``discard``, or empty: not checked yet."""
    acceptable_ranges: str = ""
    """``[0.8, 1.2]``; several are separated by ``;``. They go into the reference answer."""
    note: str = ""

    @field_validator("status", mode="before")
    @classmethod
    def _in_any_case(cls, said: Any) -> Any:
        return said.strip().casefold() if isinstance(said, str) else said

    @model_validator(mode="after")
    def _can_be_used(self) -> Check:
        parse_ranges(self.acceptable_ranges)
        if self.status == "keep" and not (self.question.strip() and self.ref_answer.strip()):
            raise ValueError("a question that is kept needs 'question' and 'ref_answer'")
        return self

    def ruling(self) -> Question | None:
        """What becomes of the question: corrected, or ``None`` if it is discarded."""
        if self.status != "keep":
            return None
        ranges = "; ".join(f"[{low}, {high}]" for low, high in parse_ranges(self.acceptable_ranges))
        kept = self.model_dump(exclude={"status", "acceptable_ranges", "note"})
        if ranges:
            told = f"(Answers in the range {ranges} are ACCEPTABLE)"
            if told not in self.ref_answer:
                kept["ref_answer"] = f"{self.ref_answer.rstrip()} {told}"
        return Question.model_validate(kept)


@dataclass
class Rulings:
    """What the annotators' sheets come to."""

    kept: list[Question] = field(default_factory=list)
    discarded: list[str] = field(default_factory=list)
    """Ids that everybody who checked them discarded."""
    disagreements: list[dict[str, Any]] = field(default_factory=list)
    """``id`` and, by field, every annotator's version, for somebody to settle."""
    unchecked: list[str] = field(default_factory=list)


def parse_ranges(text: str) -> list[tuple[str, str]]:
    """Read ``[low, high]``, as often as it stands there, as it is written.

    Raises:
        ValueError: If anything else stands there, or an end is no number or above the other.
    """
    parts = [part.strip() for part in text.split(";") if part.strip()]
    ranges = []
    for part in parts:
        found = _RANGE.fullmatch(part)
        if found is None:
            raise ValueError(f"acceptable range '{part}': expected [low, high]")
        try:
            low, high = (float(end.rstrip("%")) for end in found.groups())
        except ValueError:
            raise ValueError(f"acceptable range '{part}': expected two numbers") from None
        if not low <= high or math.isinf(low) or math.isinf(high):
            raise ValueError(f"acceptable range '{part}': expected low <= high, both finite")
        ranges.append((found[1], found[2]))
    return ranges


def write_sheet(path: Path, questions: Iterable[Question]) -> None:
    """Write a sheet to fill in: CSV for a spreadsheet (``.csv``) or JSONL."""
    rows = [Check(**question.model_dump()).model_dump() for question in questions]
    if path.suffix == ".jsonl":
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    elif path.suffix == ".csv":
        table = io.StringIO(newline="")
        sheet = csv.DictWriter(table, list(Check.model_fields))
        sheet.writeheader()
        for row in rows:
            sheet.writerow({name: _armoured(value) for name, value in row.items()})
        text = "\ufeff" + table.getvalue()  # the mark tells spreadsheets that this is UTF-8
    else:
        raise CustosError(f"{path}: expected a file ending in .csv or .jsonl")
    with atomic_write(path) as file:
        file.write(text)


def read_sheet(path: Path) -> list[Check]:
    """Read a filled-in sheet.

    Raises:
        CustosError: Naming the file, the row and the field that does not fit.
    """
    rows = _csv_rows(path) if path.suffix == ".csv" else read_rows(path)
    checks: dict[str, Check] = {}
    for number, row in rows:
        if isinstance(row, CustosError):
            raise row
        check = parse_record(Check, row, f"{path} row {number}")
        if check.id in checks:
            raise CustosError(f"{path} row {number}: field 'id': '{check.id}' occurs twice")
        checks[check.id] = check
    return list(checks.values())


def _csv_rows(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        content = path.read_text(encoding="utf-8-sig")
        rows = list(csv.DictReader(io.StringIO(content, newline=""), strict=True))
    except (OSError, ValueError, csv.Error) as error:
        raise CustosError(f"{path}: cannot be read: {error}") from None
    for number, row in enumerate(rows, 1):
        if None in row or None in row.values():
            raise CustosError(f"{path} row {number}: too many or too few cells")
        yield number, {name: _unarmoured(cell) for name, cell in row.items()}


def _armoured(value: Any) -> Any:
    """A text that a spreadsheet would run as a formula, made plain by a leading apostrophe."""
    runs = isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "'", "\t", "\r")
    return f"'{value}" if runs else value


def _unarmoured(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" else cell


def settle(
    questions: Sequence[Question],
    sheets: Mapping[str, Sequence[Check]],
    final: Sequence[Check] = (),
) -> Rulings:
    """Bring annotators' sheets together.

    A question is ruled on where everybody who checked it came to the same: discarded by all, or
    kept by all with the same type, relation, wording and answer. Everything else is a disagreement.

    Args:
        questions: What was sent out.
        sheets: Annotator to what came back; rows may be missing.
        final: A sheet that settles disagreements: what it rules on holds, whatever others said.

    Raises:
        CustosError: If a sheet holds a question that was not sent out, or one is named ``final``.
    """
    if FINAL in sheets:
        raise CustosError(f"sheet '{FINAL}': that name is the settling sheet's; give it as --final")
    sent = {question.id for question in questions}
    said: dict[str, dict[str, Check]] = {}
    for annotator, checks in (*sheets.items(), (FINAL, final)):
        for check in checks:
            if check.id not in sent:
                raise CustosError(f"sheet '{annotator}': no question '{check.id}' was sent out")
            if check.status:
                said.setdefault(check.id, {})[annotator] = check
    rulings = Rulings()
    for question in questions:
        own = said.get(question.id, {})
        if FINAL in own:
            own = {FINAL: own[FINAL]}
        versions = {annotator: check.ruling() for annotator, check in own.items()}
        if not own:
            rulings.unchecked.append(question.id)
        elif len(set(versions.values())) > 1:
            rulings.disagreements.append({"id": question.id, **_differences(own)})
        elif (ruling := next(iter(versions.values()))) is None:
            rulings.discarded.append(question.id)
        else:
            rulings.kept.append(ruling)
    return rulings


def _differences(checks: Mapping[str, Check]) -> dict[str, dict[str, Any]]:
    """Fields in which the annotators differ, each with everybody's version."""
    fields = [name for name in Check.model_fields if name != "note"]
    versions = {
        name: {annotator: getattr(check, name) for annotator, check in checks.items()}
        for name in fields
    }
    return {name: own for name, own in versions.items() if len(set(own.values())) > 1}
