"""Rows that already have our shape: one ``LabelledExample`` each, of any task."""

from __future__ import annotations

from pathlib import Path

from judging.files.records import read_records
from judging.types import LabelledExample


def load_generic(path: Path | str, bad_rows: list[str] | None = None) -> list[LabelledExample]:
    """Read labelled examples from a JSONL, JSON or Parquet file.

    Args:
        path: File of rows in the shape of ``LabelledExample``.
        bad_rows: List that errors of rows are added to; ``None`` raises the first error.

    Returns:
        The examples. An example without an id is named after the file and its row; one without a
        source is given the file's name. Relative image paths are taken from the file's folder and
        made absolute.

    Raises:
        CustosError: If the file cannot be read; on the first bad row when ``bad_rows`` is ``None``,
            naming file, row and field.
    """
    path = Path(path)
    return [
        example.model_copy(
            update={
                "id": example.id or f"{path.stem}-{number}",
                "source": example.source or path.stem,
            }
        )
        for number, example in read_records(path, LabelledExample, bad_rows)
    ]
