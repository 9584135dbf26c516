"""Running a step over a file of rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from data_prep.construction.model_writer import ModelWriter, Request
from data_prep.construction.steps.base import Step, StepRow
from data_prep.splits.manifest import check_replaceable
from judging.errors import CustosError, FieldError
from judging.files.records import read_records

ROWS = "rows.jsonl"

R = TypeVar("R", bound=StepRow)


def load_rows(path: Path, row_type: type[R], bad_rows: list[str] | None = None) -> list[R]:
    """Read the rows that go into a step.

    Args:
        path: File of rows; pictures are relative to it.
        row_type: What the step needs of a row.
        bad_rows: List that errors of rows are added to; ``None`` raises the first error.

    Raises:
        CustosError: If the file cannot be read, an id occurs twice, no row is left or, when
            ``bad_rows`` is ``None``, a row does not fit.
    """
    rows: dict[str, R] = {}
    for number, row in read_records(path, row_type, bad_rows):
        if row.id in rows:
            raise FieldError("id", f"'{row.id}' occurs twice", f"{path} row {number}")
        rows[row.id] = row
    if not rows:
        raise CustosError(f"{path}: there are no rows that can be used")
    return list(rows.values())


def run_step(step: Step[Any, Any], rows: Sequence[StepRow], writer: ModelWriter) -> dict[str, Any]:
    """Ask a model about every row that has no reply yet, and write what comes of the rows.

    The folder gets ``rows.jsonl``, in the order of the rows that went in, and ``rejects.jsonl``. A
    reply in the wrong form is asked for once more.

    Returns:
        The manifest.

    Raises:
        CustosError: As ``run_job``, or if ``rows.jsonl`` lies there without a manifest.
    """
    check_replaceable(writer.out, [ROWS])
    requests = [Request(step.item(row), partial(step.read, row)) for row in rows]
    outcome = writer.ask(requests, mend=True)
    made = [row for written in outcome.records for row in written]
    counts = {"step": step.name, "counts": {"in": len(rows), "out": len(made)}}
    return writer.write(outcome, {ROWS: made}, counts)
