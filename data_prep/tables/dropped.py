"""Labelled rows of a table, and what happens to rows that cannot be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from data_prep.tables.labels import UnknownLabel, count_labels, describe_unknown
from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import BadRow, read_table
from judging.errors import CustosError, FieldError
from judging.types import LabelledExample

_MAX_SHOWN = 6


def read_examples(
    source: Path | str,
    mapping: TableMapping | None = None,
    bad_rows: dict[int, BadRow] | None = None,
    *,
    allow_dropped: bool | None = False,
    image_folder: Path | None = None,
) -> list[tuple[int, LabelledExample]]:
    """Read the labelled rows of a table with their numbers; stop if a row cannot be used.

    Args:
        source: A CSV, TSV, JSONL, JSON or Parquet file, or a hub data set.
        mapping: Which column fills which field, and what labels mean.
        bad_rows: Gets every row that cannot be used.
        allow_dropped: Leave these rows out instead of stopping; ``None`` if there is no option to
            ask for it.
        image_folder: Folder to save pictures in that come as bytes.

    Raises:
        CustosError: If the table cannot be read; if rows cannot be used and this is not allowed,
            with their counts by label and by reason.
    """
    bad_rows = {} if bad_rows is None else bad_rows
    rows = list(read_table(source, LabelledExample, mapping, bad_rows, image_folder=image_folder))
    check_dropped(source, bad_rows, len(rows), allow_dropped=allow_dropped)
    return rows


def check_dropped(
    source: Path | str, bad_rows: Mapping[int, BadRow], num_good: int, *, allow_dropped: bool | None
) -> None:
    """Raise ``CustosError`` if there are bad rows, unless this is allowed and good ones remain."""
    if not bad_rows or (allow_dropped and num_good):
        return
    parts = [f"{len(bad_rows)} of {len(bad_rows) + num_good} rows cannot be used"]
    unknown = {n: row.error for n, row in bad_rows.items() if isinstance(row.error, UnknownLabel)}
    if unknown:
        parts.append(describe_unknown(unknown))
    others = {n: row for n, row in bad_rows.items() if n not in unknown}
    if others:
        rows_by_reason: dict[str, list[int]] = {}
        for number, row in others.items():
            rows_by_reason.setdefault(_reason(row.error), []).append(number)
        ranked = sorted(rows_by_reason.items(), key=lambda reason: -len(reason[1]))
        parts += [
            f"{reason} ({len(rows)}, the first is row {rows[0]})"
            for reason, rows in ranked[:_MAX_SHOWN]
        ]
        if len(ranked) > _MAX_SHOWN:
            parts.append(f"and {len(ranked) - _MAX_SHOWN} more reasons")
        labels = Counter(row.label for row in others.values() if row.label)
        if labels:
            parts.append(f"their labels: {count_labels(labels)}")
    if num_good and allow_dropped is not None:
        parts.append("--allow-dropped leaves them out")
    raise CustosError(f"{source}: {'; '.join(parts)}")


def _reason(error: CustosError) -> str:
    if isinstance(error, FieldError):
        return str(FieldError(error.field, error.message))
    return str(error).partition(": ")[2] or str(error)
