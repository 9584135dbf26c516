"""A summary of a labelled table: its rows as a judge sees them, their lengths and doubles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from data_prep.splits.manifest import describe_file
from data_prep.tables.mapping import TableMapping
from data_prep.tables.source import Table
from judging.tasks import get_task
from judging.types import LabelledExample

_MAX_CHARS = 1000


def describe_source(table: Table, mapping: TableMapping) -> dict[str, Any]:
    """Return name, content hash and mapping of a table, for a manifest."""
    if table.hub is None:
        source: dict[str, Any] = dict(describe_file(table.path))
    else:
        hub = table.hub
        source = {
            "name": table.name,
            "split": hub.split,
            "config": hub.config,
            "revision": hub.revision,
        }
    return {**source, "mapping": mapping.model_dump(exclude_defaults=True)}


def show_row(number: int, example: LabelledExample) -> str:
    """Return a row as the judge will see it: its rubric, every field, and people's label.

    Long texts are cut, and characters that could control a terminal are left out.
    """
    task = get_task(example.task)
    request = example.request()
    fields = [(field.heading, field.shown) for field in task.item(request)]
    fields += (
        [("Pictures", ", ".join(name[:80] for name in example.images))] if example.images else []
    )
    lines = [f"row {number}: {task.full_rubric(request)}, labelled {example.label}"]
    return "\n  ".join([*lines, *(f"{heading}: {_shown(text)}" for heading, text in fields)])


def show_labels(examples: Iterable[LabelledExample]) -> list[str]:
    """Return, for every rubric of the rows, a line with the labels that a judge may answer."""
    rubrics: dict[str, tuple[str, ...]] = {}
    for example in examples:
        task = get_task(example.task)
        rubrics[task.full_rubric(example)] = task.labels(task.rubric(example))
    return [f"labels of {rubric}: {', '.join(labels)}" for rubric, labels in rubrics.items()]


def show_lengths(examples: Sequence[LabelledExample]) -> list[str]:
    """Return lines with the lengths of questions, references and responses in characters."""
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


def show_doubles(examples: Sequence[LabelledExample]) -> list[str]:
    """Return lines with the numbers of rows that occur twice; none if there are none."""
    labels: dict[tuple[object, ...], list[str]] = {}
    for row in examples:
        rubric = get_task(row.task).full_rubric(row)
        shown = (row.question, row.choices, row.references, row.responses, row.images)
        labels.setdefault((rubric, *shown, row.criteria), []).append(row.label)
    doubles = sum(len(given) - 1 for given in labels.values())
    contradictions = sum(len(set(given)) > 1 for given in labels.values())
    lines = [f"{doubles} rows repeat an earlier one"] if doubles else []
    if contradictions:
        lines.append(f"{contradictions} equal rows have different labels")
    return lines


def _shown(text: str) -> str:
    printable = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    cut = printable[:_MAX_CHARS].replace("\n", "\n    ")
    return cut if len(text) <= _MAX_CHARS else f"{cut} ... ({len(text):,} characters)"
