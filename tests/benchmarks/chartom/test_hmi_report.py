"""The report on HMI, on the answers that the paper publishes for one pair."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from scipy.stats import binomtest
from typer.testing import CliRunner

from benchmarks.chartom.benchmark import ANSWERS, HMI, PUBLISHED
from benchmarks.chartom.hmi_report import measure_hmi
from cli.bench.app import app

PAIR = "G7_Q1"


def item(name: str, manipulation: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": name,
        "kind": "bar",
        "question": "How many bags do they eat?",
        "question_type": "number",
        "answer": 1.2,
        "unit": "million bags",
        "alternatives": [6, 300] if manipulation else [300],
        "manipulation": manipulation,
        **fields,
    }


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("hmi")
    rows = [
        item(
            name,
            manipulation,
            human_answers=[a for a, n in ANSWERS[name].items() for _ in range(n)],
        )
        for name, manipulation in (("G7_Q1_1", ""), ("G7_Q1_2", "truncated y-axis"))
    ]
    rows.append(item("G1_Q1_2", "truncated y-axis", hmi=0.4))
    (tmp_path / "items.json").write_text(json.dumps(rows))
    out = tmp_path / "out"
    done = CliRunner().invoke(
        app, ["hmi", "--items", str(tmp_path / "items.json"), "--out", str(out)]
    )
    assert done.exit_code == 0, done.output
    assert "3 charts" in done.output
    return out


def test_the_published_pair(report: Path) -> None:
    charts = {chart["id"]: chart for chart in json.loads((report / "hmi.json").read_text())}
    [published] = [table.rows[PAIR] for table in PUBLISHED if table.source == HMI]
    kind, original, manipulation, manipulated = published
    for name, value, misled in (("G7_Q1_1", original, 12), ("G7_Q1_2", manipulated, 20)):
        hmi = charts[name]["hmi"]
        assert round(hmi["value"], 2) == value
        low, high = binomtest(misled, 68).proportion_ci(method="wilson")
        assert (hmi["low"], hmi["high"], hmi["n"]) == (pytest.approx(low), pytest.approx(high), 68)
        assert charts[name]["acceptable"] == [None, pytest.approx(7.2**0.5)]
        assert charts[name]["answers"] == {f"{a:g}": n for a, n in ANSWERS[name].items()}
    assert charts["G7_Q1_2"]["manipulation"] == manipulation
    assert charts["G7_Q1_1"]["kind"] == kind


def test_charts_are_sorted_and_pairs_side_by_side(report: Path) -> None:
    charts = json.loads((report / "hmi.json").read_text())
    assert [chart["id"] for chart in charts] == ["G7_Q1_1", "G7_Q1_2", "G1_Q1_2"]
    lines = (report / "hmi.md").read_text().splitlines()
    assert "| G1_Q1 | bar | - | truncated y-axis | 0.400 |" in lines
    assert any(line.startswith("| G7_Q1 | bar | 0.176 [0.104, 0.") for line in lines)
    assert "![HMI of all charts, sorted](hmi.png)" in lines


def test_the_picture_has_a_bar_of_each_colour(report: Path) -> None:
    with Image.open(report / "hmi.png") as picture:
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 20) or ()}
    assert {(0, 114, 178), (213, 94, 0)} <= colours


def test_items_without_an_hmi_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "items.json"
    source.write_text(json.dumps([item("G1_Q1_1", "")]))
    done = CliRunner().invoke(app, ["hmi", "--items", str(source), "--out", str(tmp_path / "out")])
    assert done.exit_code != 0
    assert "no item has 'human_answers' or 'hmi'" in str(done.exception)


def test_a_choice_has_no_acceptable_numbers() -> None:
    """Its answer may be the number of an option, which no interval is about."""
    fields = {"question_type": "choice", "choices": ["six", "two"], "answer": 2, "hmi": 0.4}
    [chart] = measure_hmi([item("G1_Q1_1", "", **fields)])
    assert chart["acceptable"] is None
