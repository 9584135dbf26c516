"""CHARTOM: pairs of an honest and a misleading chart, a FACT and a MIND question about each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.chartom.item import ChartomItem, pair_alternatives
from benchmarks.framework.base import Benchmark, ItemScore, MeasuredRow, benchmark, read_paper
from benchmarks.framework.estimates import OVERALL, Ratio, coverage, intervals, percent, values
from benchmarks.framework.files import (
    Row,
    error_location,
    item_name,
    parse_row,
    parse_rows,
    store_verdicts,
    stored_verdicts,
)
from judging.errors import CustosError, errors_at
from judging.rules.quantities import parse_fraction
from judging.tasks.chartom import CORRECT, NAMED
from judging.types import JudgeRequest, Verdict, parse_record
from judging.verdicts.by_rule import certain_verdict

_MIND = """\
University students will be shown this chart and asked:

{fact}

What share of them, do you expect, will be led to a wrong answer by the chart? Begin with your \
estimate as a decimal number from 0 to 1, then give your reasons."""

MIND_ERROR, JUSTIFICATION = "MIND squared error", "justification"

METRICS = {
    "fact_accuracy": Ratio((1, 0, 0, 0, 0, 0), (0, 1, 0, 0, 0, 0)),
    "mind_mse": Ratio((0, 0, 1, 0, 0, 0), (0, 0, 0, 1, 0, 0), is_rate=False),
    "justification": Ratio((0, 0, 0, 0, 1, 0), (0, 0, 0, 0, 0, 1)),
}
"""Over value and presence of FACT grade, squared MIND error and justification."""

MODELS = "Section 2.3: models"


@benchmark
class Chartom(Benchmark):
    """CHARTOM (56 pairs): FACT accuracy, MIND squared error, justifications (section 2.3)."""

    name = "chartom"
    summary = "misleading charts: what they say, and how many people they mislead"
    headline = "FACT accuracy"
    tasks = ("chartom-fact", "chartom-justification")
    published, example = read_paper("chartom")
    found_fields = ("fact_correct", "mind_prediction", "justification_named")
    grade_fields = (*found_fields, "hmi", "human_answers")
    image_field = "image"
    facets = {"kind": (), "question_type": (), "manipulation": ()}

    def load(self, source: str, images: Path | None = None) -> list[Row]:
        """Read the official items; compute the HMI wherever people's raw answers are given."""
        rows = super().load(source, images)
        with error_location(Path(source)):
            return _with_hmi(rows)

    def completed(self, rows: Sequence[Row]) -> list[Row]:
        """Compute the HMI of rows that have people's raw answers and none."""
        lacking = any(row.get("human_answers") and row.get("hmi") is None for row in rows)
        return _with_hmi(rows, keep=True) if lacking else list(rows)

    def prompts(self, row: Row, style: str) -> dict[str, str]:
        """Word FACT with its numbered options, and MIND with the same inside.

        MIND asks for the number first.
        """
        item = parse_row(ChartomItem, row, self.location(row))
        options = "  ".join(f"{number}. {text}" for number, text in enumerate(item.choices, 1))
        fact = "\n".join(part for part in (item.question, options) if part)
        return {"fact_response": fact, "mind_response": _MIND.format(fact=fact)}

    def requests(self, row: Row) -> tuple[JudgeRequest, ...]:
        """Ask for FACT where rules cannot read the answer, then for the justification if needed."""
        return tuple(each for each in self._questions(row) if certain_verdict(each) is None)

    def graded_row(self, row: Row, verdicts: Sequence[Verdict]) -> Row:
        """Add ``fact_correct``, ``mind_prediction`` and ``justification_named``; null if open."""
        by_judge = dict(zip([each.task for each in self.requests(row)], verdicts, strict=True))
        by_task = {each.task: certain_verdict(each) for each in self._questions(row)} | by_judge
        grades: Row = {}
        if fact := by_task.get("chartom-fact"):
            grades["fact_correct"] = _has_label(fact, CORRECT)
        if prediction := by_task.get("chartom-prediction"):
            # It comes first, so that a response that is cut off still has it.
            grades["mind_prediction"] = prediction.score
        if justification := by_task.get("chartom-justification"):
            grades["justification_named"] = _has_label(justification, NAMED)
        return {**row, **grades, **store_verdicts(by_judge)}

    def _questions(self, row: Row) -> list[JudgeRequest]:
        """Make the requests for FACT, MIND's prediction and, if needed, its justification."""
        needed = ("fact_response",) if row.get("mind_response") is None else ()
        item = parse_row(ChartomItem, row, self.location(row), needed)
        requests = [] if item.fact_response is None else [item.fact_request]
        fields: list[dict[str, Any]] = []
        if item.mind_response is not None:
            fields.append({"task": "chartom-prediction", "responses": (item.mind_response,)})
        if item.needs_justification:
            reasons = parse_fraction(item.mind_response or "")[1]
            references = (item.manipulation,)
            justification = {"references": references, "responses": (reasons,)}
            fields.append({"task": "chartom-justification", **justification})
        common = {"id": item.id, "question": item.question}
        return requests + [
            parse_record(JudgeRequest, {**common, **each}, self.location(row)) for each in fields
        ]

    def table(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Compute FACT accuracy, MIND mean squared error and justifications, overall and by part.

        Parts: ``by_question_type``, ``by_version``, ``by_kind``, ``by_manipulation`` (manipulated
        charts alone). Pairs are clusters.
        """
        items = parse_rows(rows, ChartomItem)
        grades = [(i.fact_correct, i.mind_error, i.justification_named) for i in items]
        columns = np.array([[(v or 0, v is not None) for v in row] for row in grades], np.float64)
        is_graded = columns.reshape(-1, 3, 2)[..., 1].astype(bool)
        # A file that people graded may hold no responses.
        is_asked = is_graded | np.array([_asked(item) for item in items]).reshape(-1, 3)
        num_graded = int(is_graded.sum())
        if not num_graded:
            raise CustosError("no item is graded")
        measured = intervals(
            columns.reshape(-1, 6),
            [item.pair for item in items],
            METRICS,
            {
                "by_question_type": [item.question_type for item in items],
                "by_version": ["manipulated" if i.manipulation else "original" for i in items],
                "by_kind": [item.kind for item in items],
                "by_manipulation": [item.manipulation or None for item in items],
            },
        )
        return {
            **values(measured),
            "intervals": measured,
            **coverage(rows, num_graded, int(is_asked.sum())),
        }

    def paper_rows(self, table: Mapping[str, Any], name: str) -> dict[str, dict[str, MeasuredRow]]:
        """Lay out a row of the measures that section 2.3 defines; the paper gives no figures."""
        measured = table["intervals"]
        overall, by_version = measured[OVERALL], measured["by_version"]
        versions = [by_version.get(version, {}) for version in ("original", "manipulated")]
        row = (
            percent(overall["fact_accuracy"]),
            *(percent(version.get("fact_accuracy")) for version in versions),
            overall["mind_mse"],
            percent(overall["justification"]),
        )
        return {MODELS: {name: row}}

    def scores(self, rows: Sequence[Row]) -> list[ItemScore]:
        """Score 1 for a right FACT answer, else 0."""
        return [_score(item, item.fact_correct) for item in parse_rows(rows, ChartomItem)]

    def other_scores(self, rows: Sequence[Row]) -> dict[str, list[ItemScore]]:
        """Score MIND's squared error, the lower the better, and whether reasons name the trick."""
        items = parse_rows(rows, ChartomItem)
        return {
            MIND_ERROR: [_score(item, item.mind_error) for item in items],
            JUSTIFICATION: [_score(item, item.justification_named) for item in items],
        }

    def compared_verdict(self, row: Row) -> Verdict | None:
        """Look up the verdict on the FACT answer; ``None`` where a rule decided."""
        return stored_verdicts(row).get("chartom-fact")


def _with_hmi(rows: Sequence[Row], keep: bool = False) -> list[Row]:
    """Compute the HMI wherever people's raw answers are given, or keep one that is there."""
    items = parse_rows(rows, ChartomItem)
    alternatives, completed = pair_alternatives(items), list[Row]()
    for row, item in zip(rows, items, strict=True):
        if item.human_answers and not (keep and item.hmi is not None):
            with errors_at(item_name(item.id)):
                row = {**row, "hmi": item.measured_hmi(alternatives[item.pair])}
        completed.append(row)
    return completed


def _score(item: ChartomItem, value: float | None) -> ItemScore:
    return ItemScore(item.id, item.pair, None if value is None else float(value))


def _has_label(verdict: Verdict, label: str) -> bool | None:
    return None if verdict.label is None else verdict.label == label


def _asked(item: ChartomItem) -> tuple[bool, bool, bool]:
    """Tell whether a response is to be graded for FACT, for MIND and for its justification."""
    return (
        item.fact_response is not None,
        item.mind_response is not None and item.hmi is not None,
        item.needs_justification,
    )
