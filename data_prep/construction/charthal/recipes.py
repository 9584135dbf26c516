"""Twelve recipes, one per cell: instructions to write a question about a chart; and their replies.

The criteria are those of ChartHal's Tables 3 to 14, in our own words.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from clients.messages import ChatItem
from data_prep.construction.charthal.charts import Chart
from data_prep.errors import UnusableText
from judging.messages import Message

UNREADABLE = "unreadable reply"

QType = Literal["desc", "reason", "open"]
QRelation = Literal["irrel", "inexist", "contra", "normal"]

_TYPES: dict[QType, str] = {
    "desc": "a simple question about facts, of the kind whose answer could be read straight off a "
    "chart; it has one concrete answer",
    "reason": "a question that takes one simple step of reasoning, such as a difference, a "
    "comparison or a trend; it has one concrete answer",
    "open": "an open question, which asks for an explanation, a cause, an interpretation or a "
    "prediction and for no particular fact",
}
_RELATIONS: dict[QRelation, str] = {
    "irrel": "The question is about a topic that does not occur in the chart at all. It still "
    "sounds natural and specific, as if a chart lay beside it that answers it.",
    "inexist": "The question stays on the chart's own topic, but hinges on something that the "
    "chart lacks: a year, a category, a label or a variable. At first sight it seems answerable.",
    "contra": "Begin with a statement about the chart that sounds right and is false by what the "
    "chart shows; then ask a question that builds on it. The falsehood lies in the statement, "
    "never in the question.",
    "normal": "The question speaks only of what the chart really shows, assumes nothing beyond it "
    "and is consistent with it.",
}
_ANSWERS: dict[QRelation, str] = {
    "irrel": "The answer says in a sentence or two that the chart has nothing on this topic, so "
    "that the question cannot be answered from it.",
    "inexist": "The answer says in a sentence or two what exactly is missing from the chart, so "
    "that the question cannot be answered from it.",
    "contra": "The answer says that the statement is false and what the chart shows instead",
    "normal": "The answer is short and exact and comes from the chart",
}
_ENDINGS: dict[tuple[QRelation, bool], str] = {
    ("contra", False): "; then it gives the right answer to the question, leaving the statement "
    "aside.",
    ("contra", True): ", and why no explanation can be built on it.",
    ("normal", False): ". For a reason question it names the values that it uses.",
    ("normal", True): " as far as the chart goes; beyond that it is tentative (may, could, one "
    "reason might be) and settles on nothing.",
}

_BRIEF = """\
You are shown a chart. Write one question about it, with a reference answer.

Kind of question: {type}.

{relation}

{answer}

Write in the language of the chart. Reply with nothing but these two parts:
Question: ...
Answer: ..."""

_REPLY = re.compile(
    r"[\s*#]*question[\s*]*:[\s*]*(?P<question>.+?)[\s*#]*^[\s*#]*answer[\s*]*:[\s*]*(?P<answer>.+?)"
    r"[\s*]*\Z",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)


class Cell(NamedTuple):
    """A type of question and its relation to the chart, as ChartHal's files spell them."""

    q_type: QType
    q_relation: QRelation


CELLS = tuple(Cell(q_type, relation) for q_type in _TYPES for relation in _RELATIONS)


def recipe(cell: Cell) -> str:
    """Write the instruction for a cell."""
    ending = _ENDINGS.get((cell.q_relation, cell.q_type == "open"), "")
    return _BRIEF.format(
        type=_TYPES[cell.q_type],
        relation=_RELATIONS[cell.q_relation],
        answer=_ANSWERS[cell.q_relation] + ending,
    )


def recipe_item(chart: Chart, number: int) -> ChatItem:
    """Compose the request for a chart and the cell of that number."""
    message = Message(role="user", text=recipe(CELLS[number]), images=chart.images)
    return ChatItem(id=chart.question_id(number), messages=(message,))


def parse_question(text: str) -> tuple[str, str]:
    """Read question and reference answer out of a reply.

    Raises:
        UnusableText: If the reply does not hold both parts, in this order.
    """
    match = _REPLY.fullmatch(text.strip())
    if match is None:
        raise UnusableText(UNREADABLE, "expected 'Question:' and, on a line of its own, 'Answer:'")
    return match["question"].strip(), match["answer"].strip()
