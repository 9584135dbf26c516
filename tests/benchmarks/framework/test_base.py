"""The registry, the files, and how a sixth benchmark comes in."""

from __future__ import annotations

import json
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from typer.testing import CliRunner

import benchmarks
from benchmarks.framework import base
from benchmarks.framework.base import benchmark_names, get_benchmark, join_responses
from benchmarks.framework.compare import ScoredItems, compare_graded
from benchmarks.framework.files import check_ids, read_file, write_graded
from cli.main import app
from judging import Judge
from judging.errors import CustosError
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


def png() -> bytes:
    buffer = BytesIO()
    Image.new("RGB", (2, 2)).save(buffer, "png")
    return buffer.getvalue()


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


ROWS = [{"id": "a", "x": 1}, {"id": "b", "x": 2}]


def test_one_content_in_five_shapes(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text(json.dumps(ROWS))
    (tmp_path / "keyed.json").write_text(json.dumps({"a": {"x": 1}, "b": {"x": 2}}))
    (tmp_path / "lines.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "table.parquet")
    for name in ("list.json", "keyed.json", "lines.jsonl", "table.parquet"):
        assert list(read_file(tmp_path / name)) == ROWS, name
        assert get_benchmark("hieval").load(str(tmp_path / name))[0]["x"] == 1
    parts = tmp_path / "parts"
    parts.mkdir()
    for number, row in enumerate(ROWS):
        pq.write_table(pa.Table.from_pylist([row]), parts / f"test-{number}-of-2.parquet")
    (parts / "README.md").write_text("x")
    assert [row["id"] for row in get_benchmark("hieval").load(str(parts))] == ["a", "b"]


def test_items_from_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def load_dataset(*args: Any, **options: Any) -> datasets.Dataset:
        asked.append((args[0], options["split"]))
        return datasets.Dataset.from_list([{"data_id": 4, "image": {"bytes": png(), "path": None}}])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    [row] = get_benchmark("simplevqa").load("lab/simplevqa", tmp_path)
    assert asked == [("lab/simplevqa", "test")]
    assert row["data_id"] == 4
    assert "image" not in row  # bytes cannot be written to JSON
    assert Path(row["images"][0]).read_bytes() == png()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.json", "{", "not valid JSON"),
        ("x.json", '["a"]', "row 1: expected an object, got str"),
        ("x.json", '{"a": 3}', "row 'a': expected an object, got int"),
        ("x.jsonl", '{"a": 1}\nnope\n', "row 2: not valid JSON"),
        ("x.csv", "a,b", "unknown kind of file"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(CustosError, match=message):
        list(read_file(tmp_path / name))


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(CustosError, match="no such file"):
        list(read_file(tmp_path / "none.json"))
    with pytest.raises(CustosError, match="file in this folder"):
        get_benchmark("hieval").load(str(tmp_path))


@pytest.mark.parametrize(
    ("suffix", "keyed", "kind"),
    [("jsonl", False, None), ("json", True, dict), ("json", False, list)],
)
def test_graded_rows_read_back(tmp_path: Path, suffix: str, keyed: bool, kind: Any) -> None:
    path = tmp_path / f"out.{suffix}"
    write_graded(path, ROWS, keyed)
    assert list(read_file(path)) == ROWS
    if kind:
        assert isinstance(json.loads(path.read_text()), kind)


def test_ids_are_checked() -> None:
    check_ids(ROWS)
    with pytest.raises(CustosError, match="row 2: field 'id': 'a' occurs twice"):
        check_ids([ROWS[0], ROWS[0]])
    with pytest.raises(CustosError, match="row 1: field 'id': is missing"):
        check_ids([{"x": 1}])


def test_responses_meet_their_items() -> None:
    items = [{"data_id": 1, "question": "?"}, {"data_id": 2, "question": "!"}]
    assert join_responses(items, [{"data_id": "2", "response": "x"}], "data_id") == [
        {"data_id": "2", "question": "!", "response": "x"}
    ]
    with pytest.raises(CustosError, match="response 1: field 'data_id': no item '3'"):
        join_responses(items, [{"data_id": 3}], "data_id")
    with pytest.raises(CustosError, match="response 2: field 'data_id': '1' occurs twice"):
        join_responses(items, [{"data_id": 1}, {"data_id": 1}], "data_id")


def truthful(answers: str, start: int = 0) -> list[dict[str, Any]]:
    return [
        {"question_id": n, "ground_truth": "A", "response": f"({answer})"}
        for n, answer in enumerate(answers, start)
    ]


def compared(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> dict[str, Any]:
    benchmark = get_benchmark("truthfulvqa")
    return compare_graded(benchmark, *(ScoredItems.of(benchmark, rows) for rows in (first, second)))


def test_two_graded_files_are_paired_by_id() -> None:
    found = compared(truthful("AABB"), truthful("BAAA")[::-1] + truthful("A", 9))
    assert (found["a"]["value"], found["b"]["value"]) == (2 / 4, 3 / 4)
    assert found["difference"]["value"] == 1 / 4
    assert found["difference"]["n"] == 4
    assert (found["only_a"], found["only_b"]) == (0, 1)


def test_two_files_differ_level_by_level_and_by_more_than_chance() -> None:
    levels = [{"level": 1 + n % 3} for n in range(12)]
    before = [row | level for row, level in zip(truthful("ABB" * 4), levels, strict=True)]
    after = [row | level for row, level in zip(truthful("BAB" * 4), levels, strict=True)]
    better = [row | level for row, level in zip(truthful("AAB" * 4), levels, strict=True)]
    found = compared(before, after)
    by_level = {part: row["value"] for part, row in found["by"]["level"].items()}
    assert by_level == {"1": -1.0, "2": 1.0, "3": 0.0}
    assert (found["a_better"], found["b_better"], found["mcnemar_p"]) == (4, 4, 1.0)
    found = compared(before, better)
    assert (found["a_better"], found["b_better"]) == (0, 4)
    assert found["mcnemar_p"] == pytest.approx(2 * 0.5**4)


def test_a_side_has_the_interval_that_its_table_has() -> None:
    rows = truthful("A" * 10)
    found = compared(rows, rows)
    for side in ("a", "b"):
        assert found[side]["value"] == 1
        assert found[side]["low"] == pytest.approx(10 / (10 + 1.959964**2))  # Wilson 1927
    assert (found["difference"]["low"], found["difference"]["high"]) == (0, 0)


def test_items_without_a_set_are_clusters_of_their_own() -> None:
    first, second = truthful("ABABAABB"), truthful("AABBABAB")
    unset = [[{**row, "set_id": None} for row in rows] for rows in (first, second)]
    assert compared(*unset) == compared(first, second)
    found = compared(first, second)["difference"]
    assert found["low"] < found["high"]


def test_the_same_file_twice_differs_by_nothing() -> None:
    found = compared(truthful("ABAB"), truthful("ABAB"))
    assert [found["difference"][key] for key in ("value", "low", "high")] == [0, 0, 0]


def test_files_that_cannot_be_compared() -> None:
    with pytest.raises(CustosError, match="share no scored item"):
        compared(truthful("AB"), truthful("AB", 5))
    with pytest.raises(CustosError, match="item 2: id '0' occurs twice"):
        compared(truthful("AB"), truthful("A") * 2)
