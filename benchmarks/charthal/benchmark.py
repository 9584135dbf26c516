"""ChartHal: does a model see when a chart cannot answer? Twelve cells, seven rubrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict

from benchmarks.framework.base import Benchmark, ItemScore, PaperRow, Published, benchmark
from benchmarks.framework.files import Row, parse_rows
from benchmarks.framework.tables import (
    OVERALL,
    RATE,
    coverage,
    intervals,
    store_verdicts,
    value_columns,
)
from judging.errors import CustosError
from judging.tasks.charthal import register_rubrics
from judging.types import JudgeRequest, Verdict, parse_record

QuestionType = Literal["desc", "reason", "open"]
Relation = Literal["irrel", "inexist", "contra", "normal"]

TYPES = get_args(QuestionType)
RELATIONS = get_args(Relation)
CELLS = tuple(f"{kind}_{relation}" for kind in TYPES for relation in RELATIONS)

UNSCORED = -1
"""What ChartHal's own grader writes when it got no score."""

_RUBRICS = {"inexist": "inexistent", "contra": "contradictory", "normal": "normal"}


class ChartHalItem(BaseModel):
    """An item, with a response and a grade where there is one. Official names."""

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
        """One of the twelve, as the official scores name it."""
        return f"{self.q_type}_{self.q_relation}"

    @property
    def rubric(self) -> str:
        """Variant of the task ``charthal`` that this item is judged under."""
        if self.q_relation == "irrel":
            return "irrelevant"
        return f"{_RUBRICS[self.q_relation]}-{'open' if self.q_type == 'open' else 'closed'}"

    @property
    def value(self) -> int | None:
        """The score, unless it is ``UNSCORED`` or not one at all."""
        return self.score if self.score in (0, 1) else None


@benchmark
class ChartHal(Benchmark):
    """ChartHal (1,062 items). The score is the share of responses without hallucination, 0-100."""

    name = "charthal"
    summary = "hallucination on chart questions that may have no answer"
    tasks = ("charthal",)
    grade_fields = ("eval_resp", "score")
    headline = "score"
    full_score = 100.0
    image_field = "figure_path"
    keyed = True
    facets = {"q_type": TYPES, "q_relation": RELATIONS}
    published = (
        Published(
            "Table 2",
            (*TYPES, *RELATIONS, OVERALL),
            {
                "Gemini-2.5-Pro": (60.31, 50.31, 36.69, 36.80, 52.62, 49.52, 58.58, 49.34),
                "GPT-5 (high)": (43.34, 36.65, 22.97, 20.82, 29.07, 19.52, 70.71, 34.46),
                "GPT-5": (42.82, 40.06, 20.17, 23.05, 30.81, 16.67, 67.78, 34.37),
                "GPT-5-mini (high)": (33.42, 25.78, 20.45, 8.55, 15.99, 11.90, 75.73, 26.74),
                "GPT-5-mini": (34.20, 24.53, 21.57, 8.18, 15.99, 9.05, 79.92, 27.02),
                "GPT-5-nano (high)": (33.68, 20.19, 19.89, 10.41, 17.73, 5.24, 69.04, 24.95),
                "GPT-5-nano": (32.38, 16.15, 19.33, 7.81, 15.99, 5.24, 66.11, 23.07),
                "o4-mini (high)": (34.46, 23.60, 9.52, 10.78, 14.53, 3.33, 65.27, 22.79),
                "o4-mini": (32.90, 22.67, 10.92, 11.52, 12.21, 1.90, 67.36, 22.41),
                "GPT-4o": (40.47, 36.02, 20.73, 27.88, 36.92, 6.67, 53.97, 32.49),
                "Llama-3.2-11B-Vision": (37.60, 20.19, 15.69, 29.37, 28.49, 0.00, 36.82, 24.95),
                "InternVL2.5-4B": (19.58, 9.63, 8.12, 4.83, 11.34, 0.00, 34.73, 12.71),
                "InternVL2.5-8B": (17.23, 8.39, 10.64, 3.35, 6.40, 0.00, 41.84, 12.34),
                "InternVL2.5-38B": (28.72, 18.32, 10.36, 10.04, 21.80, 0.00, 43.51, 19.40),
                "InternVL2.5-78B": (31.33, 17.08, 14.85, 13.75, 26.45, 0.00, 41.84, 21.47),
                "Qwen2.5-VL-3B": (13.05, 4.04, 7.84, 0.74, 0.87, 0.00, 35.98, 8.57),
                "Qwen2.5-VL-7B": (38.38, 25.47, 12.32, 25.65, 25.29, 1.90, 47.28, 25.71),
                "Qwen2.5-VL-32B": (36.81, 25.47, 8.68, 21.56, 25.29, 1.43, 44.35, 23.92),
                "Qwen2.5-VL-72B": (58.49, 59.63, 44.82, 65.06, 69.77, 19.05, 50.63, 54.24),
            },
        ),
    )

    def requests(self, row: Row) -> tuple[JudgeRequest, ...]:
        """One request under the cell's rubric; text only, as in the paper."""
        item = parse_record(ChartHalItem, row, f"item '{row.get('id', '')}'")
        if item.response is None:
            raise CustosError(f"item '{item.id}': field 'response': Field required")
        return (
            parse_record(
                JudgeRequest,
                {
                    "id": item.id,
                    "task": "charthal",
                    "variant": item.rubric,
                    "question": item.question,
                    "references": (item.ref_answer,) if item.ref_answer else (),
                    "responses": (item.response,),
                    "metadata": {"cell": item.cell, "figure_id": item.figure_id},
                },
                f"item '{item.id}'",
            ),
        )

    def register_rubrics(self, path: Path) -> str:
        """Register a user's wording of the seven rubrics."""
        return register_rubrics(path)

    def graded(self, row: Row, verdicts: Sequence[Verdict]) -> Row:
        """Adds ``eval_resp`` and ``score`` as the official grader does."""
        [verdict] = verdicts
        if verdict.label is None:
            said, score = f"No score: {verdict.message or verdict.status}", UNSCORED
        else:
            said, score = f"Score: {verdict.label}", int(verdict.label)
        stored = store_verdicts({"charthal": verdict})
        return {**row, "eval_resp": said, "score": score, **stored}

    def table(self, rows: Sequence[Row]) -> dict[str, Any]:
        """``overall``, ``per_type``, ``per_relation``, ``per_cell``: correct, total and score.

        ``total`` counts scored items alone, as the official script does; figures are clusters.
        """
        items = parse_rows(rows, ChartHalItem)
        if all(item.value is None for item in items):
            raise CustosError("no item has a score of 0 or 1")
        values = [item.value for item in items]
        divisions: dict[str, list[str | None]] = {
            "per_type": [item.q_type for item in items],
            "per_relation": [item.q_relation for item in items],
            "per_cell": [item.cell for item in items],
        }
        measured = intervals(
            value_columns(values),
            [item.figure_id for item in items],
            {"score": RATE.times(100)},
            divisions,
            order=(*TYPES, *RELATIONS, *CELLS),
        )
        counted = {
            name: {part: _count(values, parts, part) for part in measured[name]}
            for name, parts in divisions.items()
        }
        overall = _count(values, [OVERALL] * len(items), OVERALL)
        return {
            OVERALL: overall,
            **counted,
            "intervals": measured,
            **coverage(rows, overall["total"], len(items)),
        }

    def paper_rows(self, table: Mapping[str, Any]) -> dict[str, dict[str, PaperRow]]:
        """A row of Table 2."""
        parts = {**table["per_type"], **table["per_relation"], OVERALL: table[OVERALL]}
        [published] = self.published
        row = tuple(parts[name]["score"] if name in parts else None for name in published.columns)
        return {published.source: {"this file": row}}

    def scores(self, rows: Sequence[Row]) -> list[ItemScore]:
        """100 for every response without hallucination, else 0."""
        return [
            ItemScore(item.id, item.figure_id, None if item.value is None else 100.0 * item.value)
            for item in parse_rows(rows, ChartHalItem)
        ]


def _count(values: Sequence[int | None], parts: Sequence[str | None], part: str) -> dict[str, Any]:
    own = [v for v, p in zip(values, parts, strict=True) if p == part and v is not None]
    score = 100 * sum(own) / len(own) if own else None
    return {"correct": sum(own), "total": len(own), "score": score}
