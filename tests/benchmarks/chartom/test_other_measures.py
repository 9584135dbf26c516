"""MIND's squared error and justifications: compared, and corrected with people's labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.chartom.benchmark import JUSTIFICATION, MIND_ERROR, MODELS
from benchmarks.framework.correction import corrected_score
from benchmarks.framework.graded import GradedModel, ScoredItems, compare_graded
from benchmarks.framework.leaderboard import build_table, number_of
from benchmarks.framework.report.text import summary_lines
from evaluation.correction.scores import corrected_rate
from judging.errors import CustosError
from judging.types import Verdict
from tests.benchmarks.chartom.test_benchmark import CHARTOM, item, misleading
from tests.cli.bench.made_up import read, run, write


def charts(count: int, seed: int = 0) -> tuple[list[dict[str, Any]], list[float]]:
    """Graded charts with borrowed HMI, and what HMI people would give them."""
    rng = np.random.default_rng(seed)
    borrowed = rng.choice([0.2, 0.4], count)
    people = np.clip(borrowed + rng.normal(0, 0.1, count), 0, 1)
    predicted = rng.uniform(0, 1, count).round(2)
    rows = [
        CHARTOM.graded_row(
            item(id=f"P{n}_1", hmi=float(target), mind_response=f"{replies}. It looks odd."), []
        )
        for n, (target, replies) in enumerate(zip(borrowed, predicted, strict=True))
    ]
    return rows, people.tolist()


def test_squared_errors_are_compared_chart_by_chart() -> None:
    replies = (("0.2", "0.7"), ("0.4", "0.2"))
    files = [
        [item(id=f"P{n}_1", hmi=0.2, mind_response=text) for n, text in enumerate(texts)]
        for texts in replies
    ]
    scored = [ScoredItems.of(CHARTOM, rows, MIND_ERROR) for rows in files]
    result = compare_graded(*scored)
    assert result["metric"] == MIND_ERROR
    assert result["a"]["value"] == pytest.approx((0 + 0.25) / 2)
    assert result["b"]["value"] == pytest.approx((0.04 + 0) / 2)
    assert result["difference"]["value"] == pytest.approx(-0.105)
    with pytest.raises(CustosError, match=f"not one of FACT accuracy, {MIND_ERROR}, justification"):
        ScoredItems.of(CHARTOM, files[0], "MIND")


def test_the_command_compares_them(tmp_path: Path) -> None:
    names = []
    for name, replies in (("a", "0.2"), ("b", "0.6")):
        rows = [item(id=f"P{n}_1", mind_response=replies) for n in range(4)]
        names.append(write(tmp_path / f"{name}.json", rows))
    out = tmp_path / "out.json"
    done = run("compare", "chartom", *names, "--measure", MIND_ERROR, "--json", out)
    assert done.exit_code == 0, done.stderr
    assert read(out)["difference"]["value"] == pytest.approx(0.16)


def test_borrowed_targets_are_corrected_with_the_hmi_of_people() -> None:
    rows, hmi = charts(80)
    people = [{"id": f"P{n}_1", "hmi": hmi[n]} for n in range(30)]
    result = corrected_score(CHARTOM, rows, people, True, MIND_ERROR)
    predicted = np.array([row["mind_prediction"] for row in rows])
    errors = (predicted - np.array([row["hmi"] for row in rows])) ** 2
    of_people = np.where(np.arange(80) < 30, (predicted - np.array(hmi)) ** 2, np.nan)
    expected = corrected_rate(errors, of_people, random_sample=True, groups=np.arange(80))
    assert result["raw"]["value"] == pytest.approx(errors.mean())
    assert result["corrected"]["value"] == pytest.approx(expected.corrected.value)
    assert result["labelled"]["value"] == pytest.approx(np.nanmean(of_people))
    assert result["corrected"]["n"] == 30


def test_intervals_of_squared_errors_hold_the_truth() -> None:
    held = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        truth = rng.beta(1, 6, 200)
        judge = np.clip(truth + rng.normal(0, 0.05, 200), 0, 1)
        human = np.where(rng.permutation(200) < 50, truth, np.nan)
        result = corrected_rate(judge, human, random_sample=True).corrected
        held += result.low <= 1 / 7 <= result.high
    assert held >= 188, "of 200, at 95 %"


def test_justifications_are_corrected_and_facts_are_not_asked_for() -> None:
    rows = []
    for number in range(60):
        verdict = Verdict(status="scored", label="Named" if number % 3 else "Missed", judge="j")
        row = misleading(id=f"P{number}_2", mind_response="0.8 The axis is cut.")
        rows.append(CHARTOM.graded_row(row, [verdict]))
    people = [
        {"id": f"P{number}_2", "justification_named": bool(number % 2)} for number in range(40)
    ]
    table = build_table(CHARTOM, GradedModel("x", rows, people), True)
    assert "corrected" not in table, "people graded no FACT answer"
    assert set(table["corrected_measures"]) == {JUSTIFICATION}, "nobody measured HMI anew"
    result = table["corrected_measures"][JUSTIFICATION]
    assert result["raw"]["value"] == pytest.approx(40 / 60)
    assert result["labelled"]["value"] == 0.5
    assert any(line.startswith(f"corrected {JUSTIFICATION}") for line in summary_lines(table))


def test_several_models_stand_in_one_table(tmp_path: Path) -> None:
    names = []
    for name, replies in (("good", "0.2"), ("bad", "0.9")):
        rows = [
            CHARTOM.graded_row(item(id=f"P{n}_1", fact_response="1.2", mind_response=replies), [])
            for n in range(4)
        ]
        names.append(f"{name}={write(tmp_path / f'{name}.json', rows)}")
    done = run("table", "chartom", *names, "--json", tmp_path / "out.json")
    assert done.exit_code == 0, done.stderr
    [ours] = [t for t in read(tmp_path / "out.json")["tables"] if t["source"] == MODELS]
    errors = {
        row["name"]: number_of(row["figures"][ours["columns"].index("MIND squared error")])
        for row in ours["rows"]
    }
    assert errors == pytest.approx({"good": 0.0, "bad": 0.49})
