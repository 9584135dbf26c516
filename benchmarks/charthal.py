"""ChartHal: does a model see when a chart cannot answer the question about it?

An item has one of three types of question and stands in one of four relations to its chart; the
twelve cells have seven rubrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict

from benchmarks.framework.base import Benchmark, ItemScore, MeasuredRow, PublishedTable, benchmark
from benchmarks.framework.estimates import OVERALL, RATE, coverage, intervals, value_columns
from benchmarks.framework.files import Row, parse_row, parse_rows, store_verdicts
from clients.messages import Decoding
from judging.errors import CustosError
from judging.types import JudgeRequest, Verdict, parse_record

QuestionType = Literal["desc", "reason", "open"]
Relation = Literal["irrel", "inexist", "contra", "normal"]

TYPES = get_args(QuestionType)
RELATIONS = get_args(Relation)
CELLS = tuple(f"{question_type}_{relation}" for question_type in TYPES for relation in RELATIONS)

UNSCORED = -1
"""Score that ChartHal's own grader writes where it got none."""
RESULTS = "Table 2"
_RUBRICS = {"inexist": "inexistent", "contra": "contradictory", "normal": "normal"}

EXAMPLE: tuple[Row, ...] = (
    {
        "id": "7_0",
        "figure_id": "7",
        "q_type": "desc",
        "q_relation": "irrel",
        "question": "Which line is red?",
        "ref_answer": "There is no red line.",
        "response": "No line is red.",
    },
    {
        "id": "7_1",
        "figure_id": "7",
        "q_type": "reason",
        "q_relation": "normal",
        "question": "In which year do the lines cross?",
        "ref_answer": "In 2012.",
        "response": "They cross in 2015.",
    },
)

# Tables 3 to 21 of the paper are prompts.
PUBLISHED = (
    PublishedTable(
        "Table 1: items",
        (*TYPES, "total"),
        {
            "Irrel.": (56, 99, 114, 269),
            "Inexist.": (151, 105, 88, 344),
            "Contra.": (76, 54, 80, 210),
            "Normal": (100, 64, 75, 239),
            "Total": (383, 322, 357, 1062),
        },
        note="Number of items by kind of question and by how it relates to the chart.",
    ),
    PublishedTable(
        RESULTS,
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
            "GPT-4o-2024-11-20": (40.47, 36.02, 20.73, 27.88, 36.92, 6.67, 53.97, 32.49),
            "Llama-3.2-11B-Vision-Instruct": (
                *(37.60, 20.19, 15.69),
                *(29.37, 28.49, 0.00, 36.82, 24.95),
            ),
            "InternVL2.5-4B": (19.58, 9.63, 8.12, 4.83, 11.34, 0.00, 34.73, 12.71),
            "InternVL2.5-8B": (17.23, 8.39, 10.64, 3.35, 6.40, 0.00, 41.84, 12.34),
            "InternVL2.5-38B": (28.72, 18.32, 10.36, 10.04, 21.80, 0.00, 43.51, 19.40),
            "InternVL2.5-78B": (31.33, 17.08, 14.85, 13.75, 26.45, 0.00, 41.84, 21.47),
            "Qwen2.5-VL-3B-Instruct": (13.05, 4.04, 7.84, 0.74, 0.87, 0.00, 35.98, 8.57),
            "Qwen2.5-VL-7B-Instruct": (38.38, 25.47, 12.32, 25.65, 25.29, 1.90, 47.28, 25.71),
            "Qwen2.5-VL-32B-Instruct": (36.81, 25.47, 8.68, 21.56, 25.29, 1.43, 44.35, 23.92),
            "Qwen2.5-VL-72B-Instruct": (58.49, 59.63, 44.82, 65.06, 69.77, 19.05, 50.63, 54.24),
        },
        ranked_by=OVERALL,
        corrected=OVERALL,
        radar=(*TYPES, *RELATIONS),
        note="Share of responses without hallucination, in per cent. A question asks to describe "
        "(desc) or to reason (reason), or is open. It has nothing to do with the chart (irrel), "
        "asks for what the chart lacks (inexist), contradicts the chart (contra), or is normal.",
    ),
)


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
        """Name the item's cell as the official scores do."""
        return f"{self.q_type}_{self.q_relation}"

    @property
    def rubric(self) -> str:
        """Name the variant of the task ``charthal`` that this item is judged under."""
        if self.q_relation == "irrel":
            return "irrelevant"
        return f"{_RUBRICS[self.q_relation]}-{'open' if self.q_type == 'open' else 'closed'}"

    @property
    def value(self) -> int | None:
        """Read the score if it is 0 or 1, else ``None``."""
        return self.score if self.score in (0, 1) else None


@benchmark
class ChartHal(Benchmark):
    """ChartHal (1,062 items). The score is the share of responses without hallucination, 0-100."""

    name = "charthal"
    summary = "hallucination on chart questions that may have no answer"
    headline = "score"
    tasks = ("charthal",)
    published = PUBLISHED
    example = EXAMPLE
    grade_fields = ("eval_resp", "score")
    full_score = 100.0
    image_field = "figure_path"
    keyed = True
    results = ("results/*/eval.json", "*/eval.json", "eval.json")
    decodings = {"published": Decoding(temperature=0.0)}
    facets = {"q_type": TYPES, "q_relation": RELATIONS}

    def requests(self, row: Row) -> tuple[JudgeRequest, ...]:
        """Make one request under the cell's rubric; text only, as in the paper."""
        location = self.location(row)
        item = parse_row(ChartHalItem, row, location, needed=("response",))
        fields = {
            "id": item.id,
            "task": "charthal",
            "variant": item.rubric,
            "question": item.question,
            "references": (item.ref_answer,) if item.ref_answer else (),
            "responses": (item.response,),
            "metadata": {"cell": item.cell, "figure_id": item.figure_id},
        }
        return (parse_record(JudgeRequest, fields, location),)

    def graded_row(self, row: Row, verdicts: Sequence[Verdict]) -> Row:
        """Add ``eval_resp`` and ``score`` as the official grader does."""
        [verdict] = verdicts
        if verdict.label is None:
            text, score = f"No score: {verdict.message or verdict.status}", UNSCORED
        else:
            text, score = f"Score: {verdict.label}", int(verdict.label)
        return {**row, "eval_resp": text, "score": score, **store_verdicts({"charthal": verdict})}

    def table(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Compute ``overall``, ``per_type``, ``per_relation`` and ``per_cell``.

        Each part has ``correct, total, score``. ``total`` counts scored items alone, as the
        official script does. Figures are clusters.
        """
        items = parse_rows(rows, ChartHalItem)
        values = [item.value for item in items]
        if all(value is None for value in values):
            raise CustosError("no item has a score of 0 or 1")
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

        def count(parts: Sequence[str | None], part: str) -> dict[str, Any]:
            scores = [v for v, p in zip(values, parts, strict=True) if p == part and v is not None]
            percent = 100 * sum(scores) / len(scores) if scores else None
            return {"correct": sum(scores), "total": len(scores), "score": percent}

        overall = count([OVERALL] * len(items), OVERALL)
        return {
            OVERALL: overall,
            **{
                name: {part: count(parts, part) for part in measured[name]}
                for name, parts in divisions.items()
            },
            "intervals": measured,
            **coverage(rows, overall["total"], len(items)),
        }

    def paper_rows(self, table: Mapping[str, Any], name: str) -> dict[str, dict[str, MeasuredRow]]:
        """Lay out a row of Table 2."""
        measured = table["intervals"]
        parts = {**measured["per_type"], **measured["per_relation"], OVERALL: measured[OVERALL]}
        columns = (*TYPES, *RELATIONS, OVERALL)
        row = tuple(parts[part]["score"] if part in parts else None for part in columns)
        return {RESULTS: {name: row}}

    def scores(self, rows: Sequence[Row]) -> list[ItemScore]:
        """Score 100 for every response without hallucination, else 0."""
        return [
            ItemScore(item.id, item.figure_id, None if item.value is None else 100.0 * item.value)
            for item in parse_rows(rows, ChartHalItem)
        ]
