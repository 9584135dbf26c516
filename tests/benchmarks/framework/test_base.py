"""The registry of benchmarks, and how a sixth one is added."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import benchmarks
from benchmarks.framework import base
from benchmarks.framework.base import benchmark_names, get_benchmark, join_responses
from cli.main import app
from judging.errors import CustosError
from judging.judge import Judge
from judging.tasks import task_names
from tests.clients.conftest import fake
from tests.clients.fake_server import FakeServer, Say, completion
from tests.serve.made_up import FakeJudge

__all__ = ["fake"]

SIXTH = '''
"""Riddles: a made-up benchmark of one task and one rate."""

from benchmarks.framework.base import Benchmark, ItemScore, PublishedTable, benchmark
from benchmarks.framework.tables import RATE, coverage, intervals
from benchmarks.framework.tables import store_verdicts, value_columns, values
from judging.types import JudgeRequest


@benchmark
class Riddles(Benchmark):
    """Solved or not."""

    name = "riddles"
    summary = "riddles"
    tasks = ("hieval-qs",)
    grade_fields = ("solved",)
    headline = "solved"
    published = (PublishedTable("Table 1", ("solved",), {"Sphinx": (50.0,)}),)

    def requests(self, row):
        return (
            JudgeRequest(
                id=row["id"],
                question=row["question"],
                references=(row["answer"],),
                responses=(row["response"],),
            ),
        )

    def graded_row(self, row, verdicts):
        [verdict] = verdicts
        solved = None if verdict.label is None else verdict.label == "Correct"
        return {**row, "solved": solved, **store_verdicts({"hieval-qs": verdict})}

    def table(self, rows):
        solved = [row["solved"] for row in rows]
        ids = [row["id"] for row in rows]
        measured = intervals(value_columns(solved), ids, {"solved": RATE}, {})
        scored = sum(value is not None for value in solved)
        return {**values(measured), "intervals": measured, **coverage(rows, scored, len(rows))}

    def scores(self, rows):
        return [ItemScore(row["id"], row["id"], row.get("solved")) for row in rows]
'''


@pytest.fixture
def sixth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sixth benchmark: one more file in the package, nothing else."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "riddles.py").write_text(SIXTH)
    monkeypatch.setattr(benchmarks, "__path__", [*benchmarks.__path__, str(folder)])
    monkeypatch.setattr(base.BENCHMARKS, "entries", dict(base.BENCHMARKS.entries))
    monkeypatch.delitem(sys.modules, "benchmarks.riddles", raising=False)


def test_the_five() -> None:
    assert benchmark_names() == ("charthal", "chartom", "hieval", "simplevqa", "truthfulvqa")
    for name in benchmark_names():
        found = get_benchmark(name)
        assert found.name == name
        assert set(found.tasks) <= set(task_names())
        assert found.published, name
    with pytest.raises(CustosError, match="benchmark 'vqa' is not one of charthal, chartom"):
        get_benchmark("vqa")


def test_a_sixth_is_one_file(
    sixth: None, fake: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked, graded, tabulated, put on a page and compared, with nothing but its file."""

    def run(*arguments: str | Path) -> str:
        done = CliRunner().invoke(app, ["bench", *map(str, arguments)], catch_exceptions=False)
        assert done.exit_code == 0, done.stderr
        return done.stdout

    monkeypatch.setattr(Judge, "load", lambda source: FakeJudge())
    items, said, graded = (tmp_path / f"{name}.json" for name in ("items", "said", "graded"))
    items.write_text(
        json.dumps([{"id": n, "question": f"Riddle {n}?", "answer": n} for n in "abc"])
    )
    fake.answer = lambda seen: Say(body=completion("it is a"))
    assert "riddles" in run("list")
    run(
        "respond",
        "riddles",
        "--items",
        items,
        "--base-url",
        fake.url,
        "--model",
        "m",
        "--out",
        said,
    )
    assert [row["response"] for row in json.loads(said.read_text())] == ["it is a"] * 3
    run("grade", "riddles", "--responses", said, "--judge", "j", "--out", graded)
    page, table = tmp_path / "page.html", tmp_path / "table.json"
    shown = run("table", "riddles", "--graded", graded, "--html", page, "--json", table)
    assert json.loads(table.read_text())["overall"] == {"solved": pytest.approx(1 / 3)}
    assert "Sphinx" in shown
    assert "Riddle b?" in page.read_text()
    assert "0 in A, 0 in B" in run("compare", "riddles", graded, graded)


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="benchmark 'hieval' is already declared"):
        base.benchmark(type(get_benchmark("hieval")))


def test_responses_meet_their_items() -> None:
    items = [{"data_id": 1, "question": "?"}, {"data_id": 2, "question": "!"}]
    assert join_responses(items, [{"data_id": "2", "response": "x"}], "data_id") == [
        {"data_id": "2", "question": "!", "response": "x"}
    ]
    with pytest.raises(CustosError, match="response 1: field 'data_id': no item '3'"):
        join_responses(items, [{"data_id": 3}], "data_id")
    with pytest.raises(CustosError, match="response 1: field 'data_id': is missing"):
        join_responses(items, [{"id": 1}], "data_id")
    with pytest.raises(CustosError, match="response 2: field 'data_id': '1' occurs twice"):
        join_responses(items, [{"data_id": 1}, {"data_id": 1}], "data_id")
