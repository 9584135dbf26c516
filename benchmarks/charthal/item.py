"""ChartHal's items: twelve cells of question type and relation to the chart, seven rubrics."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict

QuestionType = Literal["desc", "reason", "open"]
Relation = Literal["irrel", "inexist", "contra", "normal"]

TYPES = get_args(QuestionType)
RELATIONS = get_args(Relation)
CELLS = tuple(f"{question_type}_{relation}" for question_type in TYPES for relation in RELATIONS)

UNSCORED = -1
"""Score that ChartHal's own grader writes where it got none."""

_RUBRICS = {"inexist": "inexistent", "contra": "contradictory", "normal": "normal"}


class ChartHalItem(BaseModel):
    """An item, with a response and a grade where there is one, under the official names."""

    model_config = ConfigDict(frozen=True, extra="allow", coerce_numbers_to_str=True)

    id: str = ""
    figure_id: str
    q_type: QuestionType
    q_relation: Relation
    question: str
    ref_answer: str = ""
    response: str | None = None
    score: int | None = None

    @property
    def cell(self) -> str:
        """Return the item's cell, as the official scores name it."""
        return f"{self.q_type}_{self.q_relation}"

    @property
    def rubric(self) -> str:
        """Return the variant of the task ``charthal`` that this item is judged under."""
        if self.q_relation == "irrel":
            return "irrelevant"
        return f"{_RUBRICS[self.q_relation]}-{'open' if self.q_type == 'open' else 'closed'}"

    @property
    def value(self) -> int | None:
        """Return the score if it is 0 or 1, else ``None``."""
        return self.score if self.score in (0, 1) else None
