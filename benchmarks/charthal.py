"""ChartHal: does a model see when a chart cannot answer the question about it?

An item has one of three types of question and stands in one of four relations to its chart; the
twelve cells have seven rubrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict

from benchmarks.framework.base import Benchmark, ItemScore, MeasuredRow, benchmark, read_paper
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
    published, example = read_paper("charthal")
    grade_fields = found_fields = ("eval_resp", "score")
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
