"""Sheets in which an annotator corrects questions and says which ones to keep."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import field_validator, model_validator

from data_prep.construction.charthal.questions import Question
from judging.errors import CustosError, FieldError
from judging.files.atomic import atomic_write
from judging.files.records import read_rows
from judging.types import parse_record

Status = Literal["", "keep", "discard"]

_RANGE = re.compile(r"\[\s*([^\s,\[\]]+)\s*,\s*([^\s,\[\]]+)\s*\]")
_FORMULA_STARTS = ("=", "+", "-", "@", "'", "\t", "\r")


class Check(Question):
    """A line of a sheet: the question, to be corrected in place, and what to do with it."""

    status: Status = ""
    """``keep``, with or without corrections, ``discard``, or empty: not checked yet."""
    acceptable_ranges: str = ""
    """``[0.8, 1.2]``; several are separated by ``;``. They go into the reference answer."""
    note: str = ""

    @field_validator("status", mode="before")
    @classmethod
    def _in_any_case(cls, status: Any) -> Any:
        return status.strip().casefold() if isinstance(status, str) else status

    @model_validator(mode="after")
    def _can_be_used(self) -> Check:
        parse_ranges(self.acceptable_ranges)
        if self.status == "keep" and not (self.question.strip() and self.ref_answer.strip()):
            raise ValueError("a question that is kept needs 'question' and 'ref_answer'")
        return self

    def ruling(self) -> Question | None:
        """Return the question as corrected, or ``None`` if it is discarded."""
        if self.status != "keep":
            return None
        ranges = "; ".join(f"[{low}, {high}]" for low, high in parse_ranges(self.acceptable_ranges))
        fields = self.model_dump(exclude={"status", "acceptable_ranges", "note"})
        if ranges:
            remark = f"(Answers in the range {ranges} are ACCEPTABLE)"
            if remark not in self.ref_answer:
                fields["ref_answer"] = f"{self.ref_answer.rstrip()} {remark}"
        return Question.model_validate(fields)


def parse_ranges(text: str) -> list[tuple[str, str]]:
    """Read every ``[low, high]`` of a text, both ends as they are written.

    Raises:
        ValueError: If the text holds anything else, an end is no number, or low is above high.
    """
    parts = [part.strip() for part in text.split(";") if part.strip()]
    ranges = []
    for part in parts:
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError(f"acceptable range '{part}': expected [low, high]")
        try:
            low, high = (float(end.rstrip("%")) for end in match.groups())
        except ValueError:
            raise ValueError(f"acceptable range '{part}': expected two numbers") from None
        if not low <= high or math.isinf(low) or math.isinf(high):
            raise ValueError(f"acceptable range '{part}': expected low <= high, both finite")
        ranges.append((match[1], match[2]))
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
            sheet.writerow({name: _without_formula(value) for name, value in row.items()})
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
        location = f"{path} row {number}"
        check = parse_record(Check, row, location)
        if check.id in checks:
            raise FieldError("id", f"'{check.id}' occurs twice", location)
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
        yield number, {name: _with_formula(cell) for name, cell in row.items()}


def _without_formula(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would run as a formula."""
    runs = isinstance(value, str) and value[:1] in _FORMULA_STARTS
    return f"'{value}" if runs else value


def _with_formula(cell: str) -> str:
    """Take away the apostrophe that ``_without_formula`` put there."""
    return cell[1:] if cell[:1] == "'" else cell
