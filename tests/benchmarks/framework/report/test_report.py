"""The table of a graded file with people's grades, in every form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks.framework.base import benchmark_names, get_benchmark
from cli.main import app
from tests.benchmarks.framework.report.test_page import Page
from tests.benchmarks.framework.test_corrected_by_people import graded


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, ["bench", *map(str, arguments)], catch_exceptions=False)


def test_the_table_with_people_in_every_form(tmp_path: Path) -> None:
    rows, people = graded(5)
    path, said = tmp_path / "x.eval.jsonl", tmp_path / "people.json"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    said.write_text(json.dumps({row["id"]: {"score": row["score"]} for row in people}))
    (tmp_path / "x.eval.jsonl.run.json").write_text(
        json.dumps({"judge": "q", "requests": 200, "seconds": 8.0, "cost": "free"})
    )
    out = {kind: tmp_path / f"out.{kind}" for kind in ("json", "markdown", "html")}
    command: list[str | Path] = [
        "table",
        "charthal",
        "--graded",
        path,
        "--people",
        said,
        "--random-sample",
    ]
    for kind, file in out.items():
        command += [f"--{kind}", file]
    done = run(*command)
    assert done.exit_code == 0, done.stderr
    corrected = json.loads(out["json"].read_text())["corrected"]
    shown = f"corrected score: {corrected['corrected']['value']:.4g} ["
    time = "judge q; running time: 8.00 s (25.00 requests a second); cost: free"
    for text in (done.stdout, out["markdown"].read_text(), out["html"].read_text()):
        for expected in (shown, time, "judges: j1", "200 to score, 100.0% scored", "this file"):
            assert expected in text
        # rates, confusion, calibration
        assert Page(out["html"].read_text()).all("figure") == [{}, {}, {}]


def test_a_correction_that_does_not_exist_is_one_line(tmp_path: Path) -> None:
    rows, people = graded(6)
    path, said = tmp_path / "x.json", tmp_path / "people.json"
    path.write_text(json.dumps({row["id"]: row for row in rows}))
    said.write_text(json.dumps({p["id"]: {"score": p["score"]} for p in people[:1]}))
    done = run("table", "charthal", "--graded", path, "--people", said, "--random-sample")
    assert done.exit_code == 2
    assert "of 1 independent groups" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", benchmark_names())
def test_every_benchmark_names_fields_that_a_report_can_divide_by(name: str) -> None:
    benchmark = get_benchmark(name)
    assert len(benchmark.facets) in (0, 2, 3)
    assert benchmark.styles
