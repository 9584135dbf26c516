"""Files of responses to start from, and what is said of rows that lack fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.framework.base import BENCHMARKS, get_benchmark
from tests.cli.bench.made_up import Grader, grade, read, run
from tests.docs.markdown_pages import DOCS, blocks

NEEDED = {
    "charthal": ("figure_id", "q_type", "q_relation", "question", "response"),
    "chartom": ("id", "kind", "question", "question_type", "answer", "fact_response"),
    "hieval": ("question", "responses", "label"),
    "simplevqa": ("question", "answer", "language", "response"),
    "truthfulvqa": ("category", "subcategory", "level", "answer", "response"),
}


@pytest.mark.parametrize("name", BENCHMARKS.names())
@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_an_example_is_graded_and_makes_a_table(
    judge: Grader, name: str, suffix: str, tmp_path: Path
) -> None:
    responses, graded = tmp_path / f"in.{suffix}", tmp_path / f"graded.{suffix}"
    written = run("example", name, "--out", responses)
    assert written.exit_code == 0, written.stderr
    count, command = written.stdout.splitlines()
    assert count == f"2 items with responses: {responses}"
    words = command.removeprefix("grade them: custos bench ").split()
    words[words.index("graded.json")] = str(graded)
    done = run(*words)
    assert done.exit_code == 0, done.stderr
    assert "2 items graded, 0 without a label" in done.stdout
    table = run("table", name, "--graded", graded)
    assert table.exit_code == 0, table.stderr
    assert "- to -" not in table.stdout, "what has no interval has a dash"


def test_an_example_replaces_no_file(tmp_path: Path) -> None:
    out = tmp_path / "mine.json"
    out.write_text("mine")
    refused = run("example", "charthal", "--out", out)
    assert refused.exit_code == 2
    assert refused.stderr == f"error: --out '{out}': exists already; name a new file\n"
    assert out.read_text() == "mine"
    assert "ending in .json or .jsonl" in run("example", "charthal", "--out", "x.csv").stderr


def test_the_page_shows_what_the_command_writes() -> None:
    shown = {
        block.title.removesuffix(".json"): json.loads(block.text)
        for block in blocks(DOCS / "benchmarks.md")
        if block.language == "json"
    }
    assert shown == {name: list(get_benchmark(name).example) for name in BENCHMARKS.names()}


@pytest.mark.parametrize("name", BENCHMARKS.names())
def test_all_missing_fields_of_a_row_are_named(judge: Grader, name: str, tmp_path: Path) -> None:
    def error_of(row: dict[str, Any]) -> str:
        rows = [get_benchmark(name).example[0], row]
        done = grade(tmp_path, rows, "--judge", "j", name=name)
        assert done.exit_code == 2
        return str(done.stderr).removeprefix(f"error: {tmp_path / 'in.json'}: row 2: ")

    item_id = get_benchmark(name).item_id
    key = {item_id: "7"} if item_id not in NEEDED[name] else {}
    location = "item '7': " if key else ""
    listed = ", ".join(f"'{field}'" for field in NEEDED[name])
    if name == "charthal":  # its files are known by their ids
        assert error_of({"question": "?"}) == "field 'id': is missing\n"
    else:
        assert error_of({}) == f"fields {listed} are missing\n"
    assert error_of(key) == f"{location}fields {listed} are missing\n"
    empty = dict.fromkeys(NEEDED[name])
    assert f"{location}fields {listed} are missing\n" == error_of({**empty, **key})
    [*_, last] = NEEDED[name]
    row = {**get_benchmark(name).example[1], item_id: "7"}
    for field in {last, last.removesuffix("s")}:
        row.pop(field, None)
    if name == "chartom":
        del row["mind_response"]
    assert error_of(row) == f"item '7': field '{last}': is missing\n"


def test_a_row_without_an_answer_alone_is_no_error(judge: Grader, tmp_path: Path) -> None:
    first, second = get_benchmark("simplevqa").example
    rows = [first, {name: text for name, text in second.items() if name != "answer"}]
    done = grade(tmp_path, rows, "--judge", "j", name="simplevqa")
    assert "2 items graded, 1 without a label" in done.stdout
    statuses = [row["verdicts"]["simplevqa"]["status"] for row in read(tmp_path / "out.json")]
    assert statuses == ["scored", "invalid"]
