"""Scores of benchmarks without people's labels, corrected by the judge's measured errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.framework.base import get_benchmark
from benchmarks.framework.correction import judged_score, known_errors
from benchmarks.framework.graded import GradedModel
from benchmarks.framework.leaderboard import build_leaderboard
from benchmarks.framework.report.page import rate_charts
from benchmarks.framework.report.text import order_text, summary_lines
from evaluation.correction.judged import judged_rate, parse_errors
from judging.errors import CustosError
from judging.types import Verdict
from tests.benchmarks.charthal.test_benchmark import item
from tests.benchmarks.chartom.test_benchmark import item as chart

CHARTHAL, CHARTOM = get_benchmark("charthal"), get_benchmark("chartom")
RUBRIC = "charthal/normal-open"


def errors(sensitivity: float, alarms: float, half: float = 0.05) -> dict[str, Any]:
    shares = {"sensitivity": sensitivity, "false_positive_rate": alarms}
    figures = {
        name: {"value": share, "low": max(0, share - half), "high": min(1, share + half), "n": 200}
        for name, share in shares.items()
    }
    return {"label": "1", "n": 400, "questions": 80, **figures}


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.json"
    path.write_text(json.dumps({"error_rates": {RUBRIC: errors(0.94, 0.15)}}))
    return path


def graded(
    said: npt.NDArray[Any], judge: str = "gpt", cell: str = "desc_normal", rubric: str = RUBRIC
) -> list[dict[str, Any]]:
    """Items, two on each figure, that a judge gave 0 or 1."""
    rows = []
    for number, label in enumerate(said):
        verdict = Verdict(
            status="scored", label=str(int(label)), judge="j1", judge_name=judge, rubric=rubric
        )
        row = item(cell, id=str(number), figure_id=number // 2, response="x")
        rows.append(CHARTHAL.graded_row(row, [verdict]))
    return rows


def test_a_score_is_corrected_by_the_report_on_its_judge(report: Path) -> None:
    said = np.random.default_rng(0).random(200) < 0.4
    found = judged_score(CHARTHAL, graded(said), known_errors(report, None))
    known = parse_errors({RUBRIC: errors(0.94, 0.15)}, "")
    expected = judged_rate(said.astype(float), np.arange(200) // 2, [RUBRIC] * 200, known).as_json(
        100
    )
    assert found is not None
    for part in ("raw", "corrected"):
        assert found[part] == pytest.approx(expected[part])
    assert found["corrected"]["value"] == pytest.approx(100 * (said.mean() - 0.15) / 0.79)
    assert found["added_width"] > 1
    assert found["source"] == "400 rows of report.json"


def test_what_a_run_knew_counts_for_its_own_judge_alone() -> None:
    run = {"judge": "mine", "error_rates": {RUBRIC: errors(0.94, 0.15)}}
    said = np.arange(100) % 2
    corrected = [
        judged_score(CHARTHAL, graded(said, judge), known_errors(None, run))
        for judge in ("mine", "another")
    ]
    assert corrected[0] and corrected[0]["corrected"]
    assert corrected[1] and corrected[1]["corrected"] is None
    with pytest.raises(CustosError, match="error_rates"):
        known_errors(None, {"error_rates": [1]})


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (graded(np.arange(40) % 2), f"not measured under {RUBRIC} by gpt"),
        ([item(id=str(n), figure_id=n, score=n % 2) for n in range(40)], "errors are not known"),
    ],
)
def test_a_judge_that_was_not_measured_leaves_the_word(
    rows: list[dict[str, Any]], reason: str
) -> None:
    board = build_leaderboard(CHARTHAL, {"m": GradedModel("m.json", rows)})
    [table] = [table for table in board["tables"] if table["source"] == "Table 2"]
    assert table["columns"][-1] == "overall, corrected"
    [ours] = [row for row in table["rows"] if row["ours"]]
    assert ours["figures"][-1] == "uncorrected"
    [line] = [line for line in summary_lines(board["models"]["m"]) if "uncorrected" in line]
    assert reason in line
    assert rate_charts(CHARTHAL, board["models"]) == []


def test_what_rules_decide_needs_no_correction() -> None:
    """A rule reads these answers, so that no judge is asked and nothing is to correct."""
    rows = [
        CHARTOM.graded_row(chart(id=f"P{n}_1", fact_response="12" if n % 2 else "13"), [])
        for n in range(8)
    ]
    assert {row["fact_correct"] for row in rows} <= {True, False}
    assert judged_score(CHARTOM, rows, known_errors(None, None)) is None


def test_two_models_under_a_measured_judge(report: Path) -> None:
    """The probability is that of resampled figures, as the same errors keep the order."""
    rng = np.random.default_rng(4)
    said = {"a": rng.random(120) < 0.55, "b": rng.random(120) < 0.45}
    models = {name: GradedModel(name, graded(labels)) for name, labels in said.items()}
    board = build_leaderboard(CHARTHAL, models, measured=report)
    order = board["order"]
    by_figure = [labels.reshape(-1, 2).sum(axis=1) for labels in said.values()]
    picks = rng.integers(60, size=(4000, 60))
    a, b = (sums[picks].sum(axis=1) for sums in by_figure)
    higher = np.mean(a > b) + np.mean(a == b) / 2
    expected = higher if said["a"].mean() > said["b"].mean() else 1 - higher
    assert order["same_order"] == order["same_winner"] == pytest.approx(expected, abs=0.03)
    assert order["uncorrected"] == []
    assert "with probability" in order_text(order)
    [table] = [table for table in board["tables"] if table["source"] == "Table 2"]
    assert table["columns"][-1] == "overall, corrected"
    assert len(rate_charts(CHARTHAL, board["models"])) == 1


def test_people_on_a_sample_say_how_likely_their_order_is(report: Path) -> None:
    """The judge is blind to which model is better, and people are not."""
    rng = np.random.default_rng(5)
    truth = {"good": rng.random(400) < 0.8, "bad": rng.random(400) < 0.3}
    models = {}
    for name, labels in truth.items():
        said = np.where(rng.random(400) < 0.1, labels, rng.random(400) < 0.5)
        people = [{"id": str(n), "score": int(labels[n])} for n in range(0, 400, 4)]
        models[name] = GradedModel(name, graded(said), people)
    board = build_leaderboard(CHARTHAL, models, random_sample=True)
    raw = {name: table["judged"]["raw"]["value"] for name, table in board["models"].items()}
    probability = board["order"]["same_order"]
    assert (probability > 0.99) == (raw["good"] > raw["bad"])
    assert probability > 0.99 or probability < 0.01
    alone = {"good": models["good"], "bad": GradedModel("bad", graded(truth["bad"]))}
    mixed = build_leaderboard(CHARTHAL, alone, random_sample=True)["order"]
    assert (mixed["same_order"], mixed["uncorrected"]) == (None, ["bad"])
    assert order_text(mixed) == "Ranking uncorrected, as are the scores of bad"
    assert board["models"]["good"]["corrected"]["added_width"] == pytest.approx(
        np.ptp([board["models"]["good"]["corrected"]["corrected"][end] for end in ("low", "high")])
        - np.ptp([board["models"]["good"]["corrected"]["raw"][end] for end in ("low", "high")])
    )


def test_a_rubric_that_misleads_changes_the_order(report: Path) -> None:
    """One model answers questions under a rubric that the judge is too strict with."""
    strict = "charthal/normal-closed"
    content = {"error_rates": {RUBRIC: errors(1, 0.0, 0.02), strict: errors(0.5, 0.0, 0.05)}}
    report.write_text(json.dumps(content))
    said = {"seems": np.arange(300) % 100 < 45, "is": np.arange(300) % 100 < 40}
    models = {
        "seems": GradedModel("seems", graded(said["seems"])),
        "is": GradedModel("is", graded(said["is"], rubric=strict)),
    }
    board = build_leaderboard(CHARTHAL, models, measured=report)
    corrected = {
        name: table["judged"]["corrected"]["value"] for name, table in board["models"].items()
    }
    assert corrected == pytest.approx({"seems": 45, "is": 80})
    assert board["order"]["same_winner"] < 0.02
    assert next(iter(board["models"])) == "seems"
