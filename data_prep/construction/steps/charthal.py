"""Twelve recipes, one per cell: instructions to write a question about a chart.

The criteria are those of ChartHal's Tables 3 to 14, in our own words (``words.yaml``).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product, starmap
from typing import Literal, NamedTuple, get_args

from pydantic import Field

from data_prep.construction.steps.base import (
    WORDS,
    Row,
    Step,
    StepReply,
    StepRow,
    Text,
    Texts,
    construction_step,
)

QType = Literal["desc", "reason", "open"]
QRelation = Literal["irrel", "inexist", "contra", "normal"]


class Cell(NamedTuple):
    """A type of question and its relation to the chart, as ChartHal's files spell them."""

    q_type: QType
    q_relation: QRelation


CELLS = tuple(starmap(Cell, product(get_args(QType), get_args(QRelation))))


def recipe(cell: Cell) -> str:
    """Write the instruction for a cell."""
    words, name = WORDS["charthal"], "/".join(cell)
    parts = (
        "You are shown a chart. Write one question about it, with a reference answer.",
        f"Kind of question: {words['types'][cell.q_type]}.",
        f"{words['relations'][cell.q_relation]} {words['added'].get(name, '')}".strip(),
        words["answers"][name],
        "Write in the language of the chart.",
    )
    return "\n\n".join(parts)


class ChartCell(StepRow):
    """A chart, and the cell that a question is wanted for."""

    images: Texts = Field(min_length=1)
    q_type: QType
    q_relation: QRelation


class DraftedQuestion(StepReply):
    """A question with its reference answer."""

    question: Text
    answer: Text


@construction_step
class WriteQuestion(Step[ChartCell, DraftedQuestion]):
    """Question and reference answer for a cell."""

    name = "charthal-question"
    summary = "write a question about a chart for one of ChartHal's twelve cells"

    def template(self, row: ChartCell) -> str:
        """Write the cell's recipe."""
        return recipe(Cell(row.q_type, row.q_relation))

    def rows(self, row: ChartCell, reply: DraftedQuestion) -> Iterable[Row]:
        """Add the question to the row, under ChartHal's names."""
        yield row.with_fields(question=reply.question, ref_answer=reply.answer)
