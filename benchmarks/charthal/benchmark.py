"""ChartHal: does a model see when a chart cannot answer the question about it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.charthal.example import EXAMPLE
from benchmarks.charthal.item import CELLS, RELATIONS, TYPES, UNSCORED, ChartHalItem
from benchmarks.charthal.published import PUBLISHED, RESULTS
from benchmarks.framework.base import Benchmark, ItemScore, MeasuredRow, benchmark
from benchmarks.framework.files import Row, parse_row, parse_rows
from benchmarks.framework.tables import (
    OVERALL,
    RATE,
    coverage,
    intervals,
    store_verdicts,
    value_columns,
)
from clients.messages import Decoding
from judging.errors import CustosError
from judging.types import JudgeRequest, Verdict, parse_record


@benchmark
class ChartHal(Benchmark):
    """ChartHal (1,062 items). The score is the share of responses without hallucination, 0-100."""

    name = "charthal"
    summary = "hallucination on chart questions that may have no answer"
    tasks = ("charthal",)
    rubrics_of = "charthal"
    grade_fields = ("eval_resp", "score")
    headline = "score"
    full_score = 100.0
    image_field = "figure_path"
    keyed = True
    facets = {"q_type": TYPES, "q_relation": RELATIONS}
    published = PUBLISHED
    example = EXAMPLE
    decodings = {"published": Decoding(temperature=0.0)}

    def requests(self, row: Row) -> tuple[JudgeRequest, ...]:
        """Return one request under the cell's rubric; text only, as in the paper."""
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
        """Return ``overall``, ``per_type``, ``per_relation`` and ``per_cell``.

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
        counts = {
            name: {part: _count(values, parts, part) for part in measured[name]}
            for name, parts in divisions.items()
        }
        overall = _count(values, [OVERALL] * len(items), OVERALL)
        return {
            OVERALL: overall,
            **counts,
            "intervals": measured,
            **coverage(rows, overall["total"], len(items)),
        }

    def paper_rows(self, table: Mapping[str, Any], name: str) -> dict[str, dict[str, MeasuredRow]]:
        """Return a row of Table 2."""
        measured = table["intervals"]
        parts = {**measured["per_type"], **measured["per_relation"], OVERALL: measured[OVERALL]}
        columns = (*TYPES, *RELATIONS, OVERALL)
        row = tuple(parts[part]["score"] if part in parts else None for part in columns)
        return {RESULTS: {name: row}}

    def graded_files(self, folder: Path) -> dict[str, Path]:
        """Return ``results/MODEL/eval.json`` of a clone of the official repository.

        The folder may also be ``results`` itself, or that of one model.
        """
        for pattern in ("results/*/eval.json", "*/eval.json", "eval.json"):
            if paths := sorted(folder.glob(pattern)):
                return {path.parent.resolve().name: path for path in paths}
        raise CustosError(f"{folder}: no results/MODEL/eval.json in this folder")

    def scores(self, rows: Sequence[Row]) -> list[ItemScore]:
        """Score 100 for every response without hallucination, else 0."""
        return [
            ItemScore(item.id, item.figure_id, None if item.value is None else 100.0 * item.value)
            for item in parse_rows(rows, ChartHalItem)
        ]


def _count(values: Sequence[int | None], parts: Sequence[str | None], part: str) -> dict[str, Any]:
    """Return ``correct, total, score`` of one part."""
    scores = [v for v, p in zip(values, parts, strict=True) if p == part and v is not None]
    percent = 100 * sum(scores) / len(scores) if scores else None
    return {"correct": sum(scores), "total": len(scores), "score": percent}
