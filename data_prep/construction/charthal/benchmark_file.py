"""The benchmark file of the questions that people kept, and the questions that they differ on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from data_prep.construction.charthal.questions import Question, load_questions
from data_prep.construction.sheets.collect import ANNOTATIONS, DIFFERS, Collected
from data_prep.construction.steps.base import Row
from judging.files.records import write_json

BENCHMARK, DISAGREEMENTS = "charthal.json", "disagreements.json"


def rows_to_check(folder: Path) -> list[Row]:
    """Return the questions that ``generate_questions`` wrote to a folder, with their charts."""
    return [
        {**question.model_dump(), "images": [str((folder / question.figure_path).resolve())]}
        for question in load_questions(folder)
    ]


def write_benchmark(folder: Path, collected: Collected) -> list[Question]:
    """Write the questions that people kept, and those left to settle, beside the pictures.

    ``charthal.json`` is ChartHal's own shape, an object from id to item; ``disagreements.json``
    lists the questions that people differ on: ``id`` and, by field, everybody's version.

    Returns:
        The questions that were kept.
    """
    kept = [
        Question.model_validate({name: row[name] for name in Question.model_fields})
        for row in collected.rows
    ]
    items = {question.id: question.model_dump(exclude={"id"}) for question in kept}
    write_json(folder / BENCHMARK, items)
    write_json(folder / DISAGREEMENTS, [_differences(row) for row in collected.disagreements])
    return kept


def _differences(row: Row) -> dict[str, Any]:
    """Return the fields in which people differ, each with everybody's version."""
    versions = {
        name: {annotator: filled.get(name, "") for annotator, filled in row[ANNOTATIONS].items()}
        for name in row[DIFFERS]
    }
    return {"id": row["id"], **versions}
