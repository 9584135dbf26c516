"""Twelve recipes, one per cell: instructions to write a question about a chart.

The criteria are those of ChartHal's Tables 3 to 14, in our own words.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from pydantic import Field

from data_prep.construction.steps.base import Row, Step, StepReply, StepRow, Text, construction_step

QType = Literal["desc", "reason", "open"]
QRelation = Literal["irrel", "inexist", "contra", "normal"]


class Cell(NamedTuple):
    """A type of question and its relation to the chart, as ChartHal's files spell them."""

    q_type: QType
    q_relation: QRelation


_TYPES: dict[QType, str] = {
    "desc": "a simple question about facts, of the kind whose answer could be read straight off a "
    "chart; it has one concrete answer",
    "reason": "a question that takes one simple step of reasoning, such as a difference, a ratio, "
    "a comparison or a trend; it has one concrete answer",
    "open": "an open question, which asks for an explanation, a cause, an interpretation or a "
    "prediction and for no particular fact",
}
_RELATIONS: dict[QRelation, str] = {
    "irrel": "The question is about a topic that does not occur in the chart at all, neither its "
    "field nor its subject. It still sounds natural, as if a chart lay beside it that answers it.",
    "inexist": "The question stays on the chart's own topic, but hinges on something that the "
    "chart lacks: a year, a category, a label or a variable. At first sight it seems answerable.",
    "contra": "Begin with a statement about the chart that sounds right and is false by what the "
    "chart shows; then ask a question that builds on it. The falsehood lies in the statement, "
    "never in the question.",
    "normal": "The question speaks only of what the chart really shows, assumes nothing beyond it "
    "and is consistent with it.",
}
_ADDED: dict[Cell, str] = {
    Cell("desc", "irrel"): "It is specific and expects a concrete answer.",
    Cell("reason", "irrel"): "The reasoning would be simple if the data were there.",
    Cell("open", "irrel"): "It asks for nothing specific.",
    Cell("open", "inexist"): "It asks for no number and no comparison of facts.",
    Cell("open", "normal"): "It starts from a trend, a pattern or an exception in the chart and "
    "invites more than one line of thought.",
}
_NOTHING = (
    "The answer says in a sentence or two that the chart has nothing on this topic, so that the "
    "question cannot be answered"
)
_MISSING = "The answer says in a sentence or two what exactly is missing from the chart"
_FALSE = "The answer says that the statement is false and what the chart shows instead"
_ASIDE = f"{_FALSE}; then it gives the right answer to the question, leaving the statement aside"
_ANSWERS: dict[Cell, str] = {
    Cell("desc", "irrel"): f"{_NOTHING} from it.",
    Cell("reason", "irrel"): f"{_NOTHING}: nothing can be inferred from its data.",
    Cell("open", "irrel"): f"{_NOTHING}: no meaningful explanation can be given.",
    Cell("desc", "inexist"): f"{_MISSING}, so that the question cannot be answered from it.",
    Cell("reason", "inexist"): f"{_MISSING}, so that the question cannot be answered from it.",
    Cell("open", "inexist"): f"{_MISSING}: the question cannot be answered, and any explanation is "
    "purely hypothetical.",
    Cell("desc", "contra"): f"{_ASIDE}.",
    Cell("reason", "contra"): f"{_ASIDE}, if the question can be answered without it.",
    Cell("open", "contra"): f"{_FALSE}, and that an explanation built on it may be wrong or "
    "misleading.",
    Cell("desc", "normal"): "The answer is short and exact and comes from the chart.",
    Cell("reason", "normal"): "The answer is short and exact, comes from the chart, and names the "
    "values that it uses.",
    Cell("open", "normal"): "The answer uses what the chart shows and stays tentative (may, could, "
    "one reason might be): it settles on nothing.",
}

CELLS = tuple(Cell(q_type, relation) for q_type in _TYPES for relation in _RELATIONS)


def recipe(cell: Cell) -> str:
    """Write the instruction for a cell."""
    parts = (
        "You are shown a chart. Write one question about it, with a reference answer.",
        f"Kind of question: {_TYPES[cell.q_type]}.",
        f"{_RELATIONS[cell.q_relation]} {_ADDED.get(cell, '')}".strip(),
        _ANSWERS[cell],
        "Write in the language of the chart.",
    )
    return "\n\n".join(parts)


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

    def template(self, row: ChartCell) -> str:
        """Write the cell's recipe."""
        return recipe(Cell(row.q_type, row.q_relation))

    def rows(self, row: ChartCell, reply: DraftedQuestion) -> Iterable[Row]:
        """Add the question to the row, under ChartHal's names."""
        yield row.with_fields(question=reply.question, ref_answer=reply.answer)
