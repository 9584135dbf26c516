"""How often intervals hold the truth, on drawn benchmarks."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.correction.scores import ppi_plus_plus
from experiments.findings import interval_coverage as coverage_simulation
from experiments.findings.interval_coverage import (
    ITEMS,
    Setting,
    draw,
    draw_grouped,
    settings,
    simulate,
    summarise,
)
from experiments.findings.question_coverage import simulate_questions


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """Three rates of every setting with independent items, 300 benchmarks each."""
    rng = np.random.default_rng(11)
    chosen = [s for s in settings() if s.group_size == 1 and s.rate in (0.1, 0.5, 0.9)]
    return [simulate(setting, 300, rng) for setting in chosen]


def test_intervals_hold_the_truth_as_often_as_they_say(rows: list[dict[str, Any]]) -> None:
    summary = summarise(rows)
    for method in ("ppi", "labels_alone"):
        assert 0.93 <= summary[method]["coverage"] <= 0.97, method
    assert summary["raw"]["coverage"] < 0.5
    # 300 draws of a coverage of .93 fall below .88 once in a thousand settings.
    assert summary["ppi"]["lowest"] > 0.88


def test_ppi_is_never_wider_than_the_labels_and_narrower_with_a_good_judge(
    rows: list[dict[str, Any]],
) -> None:
    summary = summarise(rows)
    assert summary["widest_ppi_to_labels_alone"] <= 1.02
    assert summary["widest_at_accuracy_80_and_100_labels"] < 0.97


def test_groups_need_to_be_known() -> None:
    """Whole groups of ten labelled: as independent items they would be far too sure."""
    setting = Setting(0.9, "alike", 0.5, 500, "groups", group_size=10)
    cells = draw_grouped(setting, 300, np.random.default_rng(1))
    known = ppi_plus_plus(cells).rates
    ignored = ppi_plus_plus(replace(cells, starts=None)).rates
    assert np.mean((known.low <= 0.5) & (known.high >= 0.5)) > 0.91
    assert np.mean((ignored.low <= 0.5) & (ignored.high >= 0.5)) < 0.85


def test_drawn_benchmarks_are_what_the_setting_says() -> None:
    setting = Setting(0.8, "misses", 0.3, 200, "random")
    assert (setting.sensitivity, setting.specificity) == pytest.approx((0.7, 0.9))
    counts = draw(setting, 4000, np.random.default_rng(0)).counts
    assert (counts.sum(axis=1) == ITEMS).all()
    assert (counts[:, :4].sum(axis=1) == 200).all()
    zeros, alarms, misses, hits = counts[:, :4].mean(axis=0)
    assert hits / (hits + misses) == pytest.approx(0.7, abs=0.01)
    assert zeros / (zeros + alarms) == pytest.approx(0.9, abs=0.01)
    assert (hits + misses) / 200 == pytest.approx(0.3, abs=0.01)
    called = counts[:, [1, 3, 5]].sum(axis=1).mean() / ITEMS
    assert called == pytest.approx(0.3 * 0.7 + 0.7 * 0.1, abs=0.01)


def test_promises_on_questions_are_kept() -> None:
    rows = simulate_questions(60, 5, ("tests", "accuracies", "risk", "gate", "wordings"))
    rows += simulate_questions(60, 11, ("people",))
    by_promise: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_promise.setdefault(row["promise"], []).append(row)
    for promise, of_promise in by_promise.items():
        kept = np.mean([row["kept"] for row in of_promise])
        is_kept = kept > 0.92 if of_promise[0]["wanted"] == ".95" else kept < 0.08
        assert is_kept, promise


def test_command_writes_every_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(coverage_simulation, "ACCURACIES", (0.8, 0.9))
    monkeypatch.setattr(coverage_simulation, "GROUPED_ACCURACIES", (0.9,))
    for name in "ab":
        options = ["--out", str(tmp_path / f"{name}.json"), "--benchmarks", "20", "--draws", "2"]
        coverage_simulation.main(options)
    first, second = (json.loads((tmp_path / f"{name}.json").read_text()) for name in "ab")
    assert len(first["settings"]) == 2 * 3 * 5 * 4 + 3 * 2 * 4
    assert first["benchmarks"] == 120 * 20 + 24 * 4
    assert first["settings"] == second["settings"]
    assert first["questions"] == second["questions"]
    assert "PPI++, grouped, whole groups" in capsys.readouterr().out
