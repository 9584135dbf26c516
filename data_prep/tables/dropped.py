"""Labelled rows of a table, and what happens to rows that cannot be used."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from data_prep.tables.labels import UnknownLabel, count_labels, describe_unknown, most_given
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

    Rows on one item by several people become one (:func:`join_people`).

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
    return join_people(rows)


def join_people(rows: Sequence[tuple[int, LabelledExample]]) -> list[tuple[int, LabelledExample]]:
    """Join rows that hold one person's label each on the same item.

    Such a row names one annotator. Rows are on one item if id, request, group and answerer are the
    same and no person occurs twice: a second row by a person is on another item, or, under one id,
    a mistake that whoever needs unique ids finds.

    Args:
        rows: Row numbers and rows.

    Returns:
        One row for each item, in the place of its first one, with ``annotator_labels`` and the
        label that most people gave (of several, the one that was given first). What the first row
        with that label says is kept, and of ``metadata`` what all rows say. All rows are returned
        as they are if no two are on one item.
    """
    items: dict[Any, list[tuple[int, LabelledExample]]] = {}
    times: Counter[Any] = Counter()
    for number, row in rows:
        key: Any = number
        if _is_of_one_person(row):
            item = (row.id, row.group, str(row.metadata.get("answerer")), _content(row))
            times[item, row.annotators] += 1
            key = (*item, times[item, row.annotators])
        items.setdefault(key, []).append((number, row))
    if len(items) == len(rows):
        return list(rows)
    return [(of_item[0][0], _joined([row for _, row in of_item])) for of_item in items.values()]


def _is_of_one_person(row: LabelledExample) -> bool:
    return len(row.annotators) == 1 and not row.annotator_labels and row.second_label is None


def _content(row: LabelledExample) -> bytes:
    """Return a hash of all that a judge may see of a row."""
    request = row.request().model_copy(update={"id": "", "metadata": {}})
    return hashlib.sha256(request.model_dump_json().encode()).digest()


def _joined(rows: Sequence[LabelledExample]) -> LabelledExample:
    """Return the rows of several people on one item as one; a row of another kind as it is."""
    if not _is_of_one_person(rows[0]):
        return rows[0]
    by_person = {row.annotators[0]: row.label for row in rows}
    label = most_given(by_person, {})
    decided = next(row for row in rows if row.label == label)
    metadata = {
        name: value
        for name, value in decided.metadata.items()
        if all(row.metadata.get(name) == value for row in rows)
    }
    people = tuple(by_person)
    changes = {"annotator_labels": by_person, "annotators": people, "metadata": metadata}
    return decided.model_copy(update=changes)


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
