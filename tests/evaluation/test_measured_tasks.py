"""A judge's folder says how it was measured on a task."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluation.comparisons.by_task import RULES_NAME
from evaluation.measured_tasks import measured_lines, unmeasured_tasks
from judging.judge.card import SHIPPED, read_card


def test_a_shipped_judge_on_its_task_and_on_another() -> None:
    report = json.loads((SHIPPED / "embedded-qs" / "report.json").read_text())
    accuracy = report["metrics"]["accuracy"]
    figures = " ".join(f"{accuracy[end]:.3f}" for end in ("value", "low", "high"))
    on_own, on_other = measured_lines(
        "embedded-qs", SHIPPED / "embedded-qs", ("hieval-qs", "charthal")
    )
    assert on_own.startswith("judge embedded-qs on hieval-qs: accuracy")
    assert all(figure in on_own for figure in figures.split())
    assert "on 445 rows (plain)" in on_own
    assert on_other == "judge embedded-qs: not measured on this task (charthal)"


def test_an_untrained_judge_has_its_zero_shot_figures_beside_it() -> None:
    [line] = measured_lines("embedded@2", None, ("charthal",))
    assert "judge embedded@2: not measured on this task (charthal)" in line
    assert "untrained on other tasks: embedded@1 on hieval-qs/plain: accuracy 0.656 [" in line
    [stranger] = measured_lines("gpt-4o", None, ("charthal",))
    assert stranger == "judge gpt-4o: not measured on this task (charthal)"


@pytest.mark.parametrize("content", ["{oops", "[]", "{}"])
def test_a_folder_without_a_report_of_ours(tmp_path: Path, content: str) -> None:
    (tmp_path / "report.json").write_text(content)
    [line] = measured_lines("mine", tmp_path, ("charthal",))
    assert line == "judge mine: not measured on this task (charthal)"


@pytest.mark.parametrize(
    ("low", "ending"),
    [
        (
            0.02,
            "; on all 1,220 rows, a missing label being wrong, the benchmark's rules have "
            "accuracy 0.650 [0.600, 0.700]",
        ),
        (-0.01, "0.650 [0.600, 0.700], which it is not shown to beat: consider --judge rules"),
    ],
)
def test_rules_on_all_rows_stand_beside_the_judge(tmp_path: Path, low: float, ending: str) -> None:
    accuracy = {"value": 0.7, "low": 0.65, "high": 0.75, "n": 200}
    rules = {
        "accuracy": {"value": 0.65, "low": 0.6, "high": 0.7, "n": 1220},
        "gain": {"value": 0.05, "low": low, "high": 0.1, "n": 1220},
        "decided": 1.0,
    }
    report = {
        "slices": {"task": {"simplevqa/english": {"n": 200, "accuracy": accuracy}}},
        "tasks": {"simplevqa": {"rivals": {"benchmark_rules": rules}}},
    }
    (tmp_path / "report.json").write_text(json.dumps(report))
    [line] = measured_lines("mine", tmp_path, ("simplevqa",))
    assert line.startswith("judge mine on simplevqa: accuracy 0.700 [0.650, 0.750] on 200 rows")
    assert line.endswith(ending)


def test_rows_without_a_label_were_not_measured(tmp_path: Path) -> None:
    accuracy = {"value": 0.7, "low": 0.65, "high": 0.75, "n": 150}
    nothing = {"value": None, "low": None, "high": None, "n": 0}
    parts = {
        "simplevqa/english": {"n": 200, "accuracy": accuracy},
        "simplevqa/chinese": {"n": 80, "accuracy": nothing},
        "charthal/irrelevant": {"n": 44, "accuracy": nothing},
    }
    (tmp_path / "report.json").write_text(json.dumps({"slices": {"task": parts}}))
    tasks = ("simplevqa", "charthal")
    assert measured_lines("mine", tmp_path, tasks) == [
        "judge mine on simplevqa: accuracy 0.700 [0.650, 0.750] on 150 rows (english)",
        "judge mine: not measured on this task (charthal)",
    ]
    assert unmeasured_tasks(tmp_path, tasks) == ["charthal"]


def test_the_shipped_judge_of_benchmarks_beats_the_rules() -> None:
    folder = SHIPPED / "embedded-benchmarks"
    tasks = json.loads((folder / "report.json").read_text())["tasks"]
    assert set(tasks) == set(read_card(folder).tasks) == {"chartom-fact", "simplevqa"}
    for measured in tasks.values():
        gain = measured["rivals"][RULES_NAME]["gain"]
        assert gain["low"] > 0
        assert gain["n"] == measured["n"] > 190
