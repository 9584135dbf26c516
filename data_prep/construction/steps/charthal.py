"""ChartHal's step: a question about a chart for one of the twelve cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import Field

from data_prep.construction.charthal.recipes import Cell, QRelation, QType, recipe
from data_prep.construction.steps.base import (
    Row,
    Step,
    StepReply,
    StepRow,
    Text,
    construction_step,
)


class ChartCell(StepRow):
    """A chart, and the cell that a question is wanted for."""

    images: tuple[str, ...] = Field(min_length=1)
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
    row_type = ChartCell
    reply_type = DraftedQuestion

    def template(self, row: ChartCell) -> str:
        """Return the cell's recipe."""
        return recipe(Cell(row.q_type, row.q_relation))

    def fields(self, row: ChartCell) -> Mapping[str, str]:
        """Return nothing: the chart is all."""
        return {}

    def rows(self, row: ChartCell, reply: DraftedQuestion) -> Iterable[Row]:
        """Return the row with its question, under ChartHal's names."""
        yield row.with_fields(question=reply.question, ref_answer=reply.answer)
