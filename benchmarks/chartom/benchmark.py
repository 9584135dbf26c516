"""CHARTOM: pairs of an honest and a misleading chart, a FACT and a MIND question about each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.chartom.example import EXAMPLE
from benchmarks.chartom.item import ChartomItem
from benchmarks.chartom.published import MODELS, PUBLISHED
from benchmarks.framework.base import Benchmark, ItemScore, MeasuredRow, benchmark
from benchmarks.framework.files import Row, error_location, item_name, parse_row, parse_rows
from benchmarks.framework.tables import (
    OVERALL,
    Ratio,
    coverage,
    intervals,
    percent,
    store_verdicts,
    stored_verdicts,
    values,
)
from judging.errors import CustosError, errors_at
from judging.rules.quantities import parse_fraction
from judging.tasks.chartom import CORRECT, NAMED
from judging.types import JudgeRequest, Verdict, parse_record
from judging.verdicts.build import certain_verdict

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
"""Over the columns of ``_columns``."""


@benchmark
class Chartom(Benchmark):
    """CHARTOM (56 pairs): FACT accuracy, MIND squared error, justifications (section 2.3)."""

    name = "chartom"
    summary = "misleading charts: what they say, and how many people they mislead"
    tasks = ("chartom-fact", "chartom-justification")
    grade_fields = ("fact_correct", "mind_prediction", "justification_named")
    people_fields = ("hmi", "human_answers")
    headline = "FACT accuracy"
    image_field = "image"
    facets = {"kind": (), "question_type": (), "manipulation": ()}
    published = PUBLISHED
    example = EXAMPLE

    def load(self, source: str, images: Path | None = None) -> list[Row]:
        """Read the official items; compute the HMI wherever people's raw answers are given."""
        rows = super().load(source, images)
        with error_location(Path(source)):
            items = parse_rows(rows, ChartomItem)
            alternatives: dict[str, list[float]] = {}
            for item in items:
                alternatives.setdefault(item.pair, []).extend(item.alternatives)
            return [
                {**row, "hmi": _measured_hmi(item, alternatives[item.pair])}
                if item.human_answers
                else row
                for row, item in zip(rows, items, strict=True)
            ]

    def prompts(self, row: Row, style: str) -> dict[str, str]:
        """Return FACT with its numbered options, and MIND with the same inside.

        MIND asks for the number first.
        """
        item = self._parse(row)
        options = "  ".join(f"{number}. {text}" for number, text in enumerate(item.choices, 1))
        fact = "\n".join(part for part in (item.question, options) if part)
        return {"fact_response": fact, "mind_response": _MIND.format(fact=fact)}

    def requests(self, row: Row) -> tuple[JudgeRequest, ...]:
        """Return FACT where rules cannot read the answer, then the justification if needed."""
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
        """Return FACT, MIND's prediction, and its justification if that is needed."""
        needed = ("fact_response",) if row.get("mind_response") is None else ()
        item = parse_row(ChartomItem, row, self.location(row), needed)
        requests = [] if item.fact_response is None else [item.fact_request]
        fields: list[dict[str, Any]] = []
        if item.mind_response is not None:
            fields.append({"task": "chartom-prediction", "responses": (item.mind_response,)})
        if item.needs_justification:
            fields.append(
                {
                    "task": "chartom-justification",
                    "references": (item.manipulation,),
                    "responses": (parse_fraction(item.mind_response or "")[1],),
                }
            )
        common = {"id": item.id, "question": item.question}
        return requests + [
            parse_record(JudgeRequest, {**common, **each}, self.location(row)) for each in fields
        ]

    def table(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Return FACT accuracy, MIND mean squared error and justifications, overall and by part.

        Parts: ``by_question_type``, ``by_version``, ``by_kind``, ``by_manipulation`` (manipulated
        charts alone). Pairs are clusters.
        """
        items = parse_rows(rows, ChartomItem)
        columns = np.array([_columns(item) for item in items]).reshape(-1, 6)
        is_graded = columns[:, 1::2].astype(bool)
        # A file that people graded may hold no responses.
        is_asked = is_graded | np.array([_asked(item) for item in items]).reshape(-1, 3)
        num_graded = int(is_graded.sum())
        if not num_graded:
            raise CustosError("no item is graded")
        measured = intervals(
            columns,
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
        """Return a row of the measures that section 2.3 defines; the paper gives no figures."""
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
        return [
            ItemScore(i.id, i.pair, None if i.fact_correct is None else float(i.fact_correct))
            for i in parse_rows(rows, ChartomItem)
        ]

    def other_scores(self, rows: Sequence[Row]) -> dict[str, list[ItemScore]]:
        """Return MIND's squared error, the lower the better, and whether reasons name the trick."""
        items = parse_rows(rows, ChartomItem)
        named = [item.justification_named for item in items]
        return {
            MIND_ERROR: [ItemScore(i.id, i.pair, i.mind_error) for i in items],
            JUSTIFICATION: [
                ItemScore(item.id, item.pair, None if is_named is None else float(is_named))
                for item, is_named in zip(items, named, strict=True)
            ],
        }

    def compared_verdict(self, row: Row) -> Verdict | None:
        """Return the verdict on the FACT answer; ``None`` where a rule decided."""
        return stored_verdicts(row).get("chartom-fact")

    def _parse(self, row: Row) -> ChartomItem:
        return parse_row(ChartomItem, row, self.location(row))


def _measured_hmi(item: ChartomItem, alternatives: Sequence[float]) -> float:
    """Return the HMI of people's answers; errors name the item."""
    with errors_at(item_name(item.id)):
        return item.measured_hmi(alternatives)


def _has_label(verdict: Verdict, label: str) -> bool | None:
    return None if verdict.label is None else verdict.label == label


def _asked(item: ChartomItem) -> tuple[bool, bool, bool]:
    """Return whether a response is to be graded for FACT, for MIND and for its justification."""
    return (
        item.fact_response is not None,
        item.mind_response is not None and item.hmi is not None,
        item.needs_justification,
    )


def _columns(item: ChartomItem) -> tuple[float, ...]:
    """Return value and presence of FACT grade, squared MIND error and justification."""
    return tuple(
        number
        for value in (item.fact_correct, item.mind_error, item.justification_named)
        for number in (float(value or 0), float(value is not None))
    )
