"""Questions about charts, each written by a model for one of ChartHal's cells."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from clients.chat import Reply
from data_prep.construction.charthal.charts import IMAGE_FOLDER, Chart
from data_prep.construction.charthal.recipes import CELLS, QRelation, QType
from data_prep.construction.model_writer import ModelWriter, Request
from data_prep.construction.steps.base import Row
from data_prep.construction.steps.charthal import ChartCell, WriteQuestion
from data_prep.splits.manifest import check_replaceable
from judging.errors import FieldError
from judging.files.records import read_records

QUESTIONS = "questions.jsonl"
STEP = WriteQuestion()


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


def generate_questions(charts: Sequence[Chart], writer: ModelWriter) -> dict[str, Any]:
    """Have a model write one question per chart and cell.

    The folder gets ``images/`` and ``questions.jsonl``.

    Args:
        charts: Result of ``sample_charts``.
        writer: Model to ask, and folder to write to.

    Returns:
        The manifest.

    Raises:
        CustosError: If a picture cannot be copied, as ``run_job``, or if ``questions.jsonl`` lies
            there and did not come with a manifest.
    """
    check_replaceable(writer.out, [QUESTIONS])
    (writer.out / IMAGE_FOLDER).mkdir(parents=True, exist_ok=True)
    for chart in charts:
        try:
            shutil.copyfile(chart.images[0], writer.out / chart.figure_path)
        except OSError as error:
            raise FieldError("images", str(error), f"chart '{chart.id}'") from None
    outcome = writer.ask(
        [
            Request(STEP.item(cell), partial(_read_question, cell))
            for chart in charts
            for cell in _cells(chart)
        ],
        mend=True,
    )
    counts = {"charts": len(charts), "counts": count_cells(outcome.records)}
    return writer.write(outcome, {QUESTIONS: outcome.records}, counts)


def _cells(chart: Chart) -> list[ChartCell]:
    """Return a row for every cell, with what becomes of a question beside its wording."""
    fields: Row = {"figure_id": chart.id, "figure_path": chart.figure_path}
    return [
        ChartCell(
            id=chart.question_id(number),
            images=chart.images,
            subq_idx=number,
            **cell._asdict(),
            **fields,
        )
        for number, cell in enumerate(CELLS)
    ]


def _read_question(cell: ChartCell, reply: Reply) -> Question:
    [row] = STEP.read(cell, reply)
    return Question.model_validate({name: row[name] for name in Question.model_fields})


def count_cells(questions: Sequence[Question]) -> dict[str, int]:
    """Count questions by cell, ``desc/irrel`` and so on, all twelve in ChartHal's order."""
    counts = Counter((question.q_type, question.q_relation) for question in questions)
    return {"/".join(cell): counts[cell] for cell in CELLS}


def load_questions(folder: Path) -> list[Question]:
    """Read the questions that ``generate_questions`` wrote to a folder."""
    return [question for _, question in read_records(folder / QUESTIONS, Question)]
