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
from data_prep.construction.charthal.recipes import (
    CELLS,
    QRelation,
    QType,
    parse_question,
    recipe_item,
)
from data_prep.construction.model_writer import ModelWriter, Request
from judging.errors import FieldError
from judging.files.records import read_records

QUESTIONS = "questions.jsonl"


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
        CustosError: If a picture cannot be copied, or as ``run_job``.
    """
    (writer.out / IMAGE_FOLDER).mkdir(parents=True, exist_ok=True)
    for chart in charts:
        try:
            shutil.copyfile(chart.images[0], writer.out / chart.figure_path)
        except OSError as error:
            raise FieldError("images", str(error), f"chart '{chart.id}'") from None
    outcome = writer.ask(
        [
            Request(recipe_item(chart, number), partial(_read_question, chart, number))
            for chart in charts
            for number in range(len(CELLS))
        ]
    )
    counts = {"charts": len(charts), "counts": count_cells(outcome.records)}
    return writer.write(outcome, {QUESTIONS: outcome.records}, counts)


def _read_question(chart: Chart, number: int, reply: Reply) -> Question:
    question, answer = parse_question(reply.text)
    cell = CELLS[number]
    return Question(
        id=chart.question_id(number),
        figure_id=chart.id,
        figure_path=chart.figure_path,
        subq_idx=number,
        q_type=cell.q_type,
        q_relation=cell.q_relation,
        question=question,
        ref_answer=answer,
    )


def count_cells(questions: Sequence[Question]) -> dict[str, int]:
    """Count questions by cell, ``desc/irrel`` and so on, all twelve in ChartHal's order."""
    counts = Counter((question.q_type, question.q_relation) for question in questions)
    return {"/".join(cell): counts[cell] for cell in CELLS}


def load_questions(folder: Path) -> list[Question]:
    """Read the questions that ``generate_questions`` wrote to a folder."""
    return [question for _, question in read_records(folder / QUESTIONS, Question)]
