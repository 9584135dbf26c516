"""Labelled rows of a table, and what happens to rows that cannot be used."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from data_prep.splits.manifest import describe_file
from data_prep.tables.labels import UnknownLabel, count_labels, describe_unknown, most_given
from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import BadRow, read_table
from data_prep.tables.source import Table
from judging.errors import CustosError, FieldError, errors_at
from judging.files.csv_rows import row_location
from judging.files.pictures import check_pictures
from judging.progress import grouped
from judging.tasks import get_task
from judging.types import JudgeRequest, LabelledExample, ReferenceMode

_MEANINGS: Mapping[ReferenceMode, str] = {
    "all": "together they are the answer",
    "any": "each is enough",
    "any-partial": "each is enough, and a part of one is Partial",
}
_MAX_SHOWN = 6
_MAX_CHARS = 1000


def read_examples(
    source: Path | str,
    mapping: TableMapping | None = None,
    bad_rows: dict[int, BadRow] | None = None,
    *,
    allow_dropped: bool | None = False,
    image_folder: Path | None = None,
) -> list[tuple[int, LabelledExample]]:
    """Read the labelled rows of a table with their numbers, as :func:`read_table`.

    Rows on one item by several people become one (:func:`join_people`). Rows that cannot be used go
    to ``bad_rows``. Unless ``allow_dropped``, ``CustosError`` counts them by label and by reason;
    ``None`` is for callers without an option to leave them out.
    """
    bad_rows = {} if bad_rows is None else bad_rows
    rows = list(read_table(source, LabelledExample, mapping, bad_rows, image_folder=image_folder))
    check_dropped(source, bad_rows, len(rows), allow_dropped=allow_dropped)
    return join_people(rows)


def join_people(rows: Sequence[tuple[int, LabelledExample]]) -> list[tuple[int, LabelledExample]]:
    """Join rows that hold one person's label each on the same item; keep others as they are.

    Such a row names one annotator. Rows are on one item if id, request, group and answerer are the
    same and no person occurs twice: a second row by a person is on another item, or, under one id,
    a mistake that whoever needs unique ids finds.

    An item takes the place of its first row, with ``annotator_labels`` and the label that most
    people gave (of several, the one that was given first). What the first row with that label says
    is kept, and of ``metadata`` what all rows say.
    """
    items: dict[Any, list[tuple[int, LabelledExample]]] = {}
    times: Counter[Any] = Counter()
    for number, row in rows:
        key: Any = number
        if len(row.annotators) == 1 and not row.annotator_labels and row.second_label is None:
            shown = row.request().model_copy(update={"id": "", "metadata": {}}).model_dump_json()
            digest = hashlib.sha256(shown.encode()).digest()
            item = (row.id, row.group, str(row.metadata.get("answerer")), digest)
            times[item, row.annotators] += 1
            key = (*item, times[item, row.annotators])
        items.setdefault(key, []).append((number, row))
    if len(items) == len(rows):
        return list(rows)
    return [
        (of_item[0][0], of_item[0][1] if isinstance(key, int) else _joined([r for _, r in of_item]))
        for key, of_item in items.items()
    ]


def _joined(rows: Sequence[LabelledExample]) -> LabelledExample:
    """Join the rows of several people on one item."""
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
    rows_by_reason = grouped(others, lambda number: _reason(others[number].error))
    ranked = sorted(rows_by_reason.items(), key=lambda reason: -len(reason[1]))
    parts += [
        f"{reason} ({len(rows)}, the first is row {rows[0]})"
        for reason, rows in ranked[:_MAX_SHOWN]
    ]
    if len(ranked) > _MAX_SHOWN:
        parts.append(f"and {len(ranked) - _MAX_SHOWN} more reasons")
    if labels := Counter(row.label for row in others.values() if row.label):
        parts.append(f"their labels: {count_labels(labels)}")
    if num_good and allow_dropped is not None:
        parts.append("--allow-dropped leaves them out")
    raise CustosError(f"{source}: {'; '.join(parts)}")


def _reason(error: CustosError) -> str:
    if isinstance(error, FieldError):
        return str(FieldError(error.field, error.message))
    return str(error).partition(": ")[2] or str(error)


def check_row_pictures(table: Path | str, rows: Iterable[tuple[int, JudgeRequest]]) -> None:
    """Check that the pictures of numbered rows can be read, each picture once.

    Raise ``FieldError`` if one cannot be read; the error names table and row.
    """
    checked: set[str] = set()
    for number, row in rows:
        new = set(row.images) - checked
        if new:
            with errors_at(row_location(Path(table), number)):
                check_pictures(sorted(new))
            checked |= new


def describe_source(table: Table, mapping: TableMapping) -> dict[str, Any]:
    """Describe a table for a manifest: name, content hash or part of the hub, and mapping."""
    part = asdict(table.hub) if table.hub else describe_file(table.path)
    return {"name": table.name, **part, "mapping": mapping.model_dump(exclude_defaults=True)}


def show_row(number: int, example: LabelledExample) -> str:
    """Show a row as the judge will see it: its rubric, every field, and people's label.

    Long texts are cut, and characters that could control a terminal are left out.
    """
    task = get_task(example.task)
    request = example.request()
    fields = [(field.heading, field.shown) for field in task.item(request)]
    if example.images:
        fields.append(("Pictures", ", ".join(name[:80] for name in example.images)))
    lines = [f"row {number}: {task.full_rubric(request)}, labelled {example.label}"]
    if len(request.references) > 1 and task.has_reference_modes:
        numbered = enumerate(map(_printable, request.references), 1)
        listed = "  ".join(f"({n}) {text[:_MAX_CHARS]}" for n, text in numbered)
        meaning = _MEANINGS[request.reference_mode]
        lines.append(f"{len(request.references)} references, {meaning}: {listed}")
    for heading, text in fields:
        cut = _printable(text)[:_MAX_CHARS].replace("\n", "\n    ")
        rest = f" ... ({len(text):,} characters)" if len(text) > _MAX_CHARS else ""
        lines.append(f"{heading}: {cut}{rest}")
    return "\n  ".join(lines)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)


def leaves_mode_open(request: JudgeRequest) -> bool:
    """Tell whether a request has several references and does not say how they are meant."""
    is_open = len(request.references) > 1 and "reference_mode" not in request.model_fields_set
    return is_open and get_task(request.task).has_reference_modes


def show_open_modes(num_rows: int) -> list[str]:
    """Write a line on so many rows of which :func:`leaves_mode_open` is true; none for 0."""
    if not num_rows:
        return []
    rows = "1 row has" if num_rows == 1 else f"{num_rows} rows have"
    return [
        f"{rows} several references and no reference_mode; 'all' was taken (together they are the "
        "answer). If each one is enough, add --reference-mode any"
    ]


def show_reading(
    table: Table, mapping: TableMapping, rows: Iterable[tuple[int, LabelledExample]]
) -> list[str]:
    """Write lines on how the references of a table were split and are meant, where it is open."""
    column = mapping.columns.get("references", "references")
    num_open = sum(leaves_mode_open(row) for _, row in rows)
    lines = [*table.doubts(column, mapping.separator), *show_open_modes(num_open)]
    return [f"note: {table.name}: {line}" for line in lines]


def show_labels(examples: Iterable[LabelledExample]) -> list[str]:
    """Write, for every rubric of the rows, a line with the labels that a judge may answer."""
    rubrics: dict[str, tuple[str, ...]] = {}
    for example in examples:
        task = get_task(example.task)
        rubrics[task.full_rubric(example)] = task.labels(task.rubric(example))
    return [f"labels of {rubric}: {', '.join(labels)}" for rubric, labels in rubrics.items()]


def show_lengths(examples: Sequence[LabelledExample]) -> list[str]:
    """Write lines with the lengths of questions, references and responses in characters."""
    texts = {
        "questions": [row.question for row in examples],
        "references": [text for row in examples for text in row.references],
        "responses": [text for row in examples for text in row.responses],
    }
    return [
        f"{name}: {min(lengths)} to {max(lengths)} characters, median {median(lengths):g}"
        for name, parts in texts.items()
        if (lengths := [len(text) for text in parts])
    ]


def show_doubles(rows: Iterable[tuple[int | str, LabelledExample]]) -> list[str]:
    """Write lines on rows that occur twice, of which the first are named; none if there are none.

    The rows come with what names them, such as their numbers.
    """
    labels: dict[tuple[object, ...], list[tuple[str, str]]] = {}
    for name, row in rows:
        rubric = get_task(row.task).full_rubric(row)
        shown = (row.question, row.choices, row.references, row.responses, row.images)
        given = labels.setdefault((rubric, *shown, row.criteria), [])
        given.append((f"row {name}" if isinstance(name, int) else name, row.label))
    doubles = sum(len(given) - 1 for given in labels.values())
    differ = [given for given in labels.values() if len({label for _, label in given}) > 1]
    lines = [f"{doubles} rows repeat an earlier one"] if doubles else []
    if differ:
        named = ["; ".join(f"{name}: {label}" for name, label in given) for given in differ]
        more = f" and {len(named) - _MAX_SHOWN} more" if len(named) > _MAX_SHOWN else ""
        first = " | ".join(named[:_MAX_SHOWN])
        lines.append(f"{len(differ)} equal rows have different labels ({first}{more})")
    return lines
