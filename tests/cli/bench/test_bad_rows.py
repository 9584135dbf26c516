"""A mistake in a row is said of the right file, once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.bench.made_up import Grader, charthal_responses, read, run, write

BAD_TYPE = "row '1_0': field 'q_type'"


GRADE = ("grade", "charthal", "--judge", "j", "--out", "new.json", "--responses")


PLAY = ("tournament", "truthfulvqa", "--judge", "j", "--out", "m.jsonl", "--items", "good.json")


@pytest.fixture
def files(judge: Grader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a graded file and several that are wrong in one row."""
    monkeypatch.chdir(tmp_path)
    responses: Mapping[str, Any] = charthal_responses("right", "no")
    write(Path("responses.json"), responses)
    run(*GRADE[:4], "--out", "good.json", "--responses", "responses.json")
    graded = read(Path("good.json"))
    write(Path("type.json"), {**graded, "1_0": {**graded["1_0"], "q_type": "essay"}})
    for name, verdicts in (("listed", ["1"]), ("unlike", {"charthal": {"status": "odd"}})):
        write(
            Path(f"{name}.json"),
            {key: {**one, "verdicts": verdicts} for key, one in graded.items()},
        )
    write(Path("twice.json"), [{"id": key, **graded["0_0"]} for key in "aa"])
    write(Path("silent.json"), {key: {**row, "response": None} for key, row in responses.items()})
    write(Path("people.json"), {"0_0": {"score": "high"}})
    write(Path("unknown.json"), [{"id": "9_9", "response": "?"}])
    write(Path("nameless.json"), [{"response": "?"}])
    write(Path("logits.json"), [{"case": {}, "result": {}}])
    write(Path("empty.json"), [])
    write(Path("bare.json"), [{"question_id": "7", "answer": "A", "response": "A"}])
    return tmp_path


@pytest.mark.parametrize(
    ("file", "message", "arguments"),
    [
        ("type.json", BAD_TYPE, ("table", "charthal", "--graded", "type.json")),
        ("gone.json", "no such file", ("table", "charthal", "--graded", "gone.json")),
        ("empty.json", "no items", ("table", "charthal", "--graded", "empty.json")),
        (
            "people.json",
            "row '0_0': field 'score'",
            ("table", "charthal", "--graded", "good.json", "--people", "people.json"),
        ),
        (
            "type.json",
            BAD_TYPE,
            ("table", "charthal", "--graded", "type.json", "--people", "people.json"),
        ),
        (
            "listed.json",
            "field 'verdicts': expected an object, got list",
            ("table", "charthal", "--graded", "listed.json"),
        ),
        (
            "unlike.json",
            "verdict on 'charthal': field 'status'",
            ("table", "charthal", "--graded", "unlike.json"),
        ),
        ("type.json", BAD_TYPE, ("compare", "charthal", "type.json", "good.json")),
        ("type.json", BAD_TYPE, ("compare", "charthal", "good.json", "type.json")),
        ("twice.json", "item 2: id 'a'", ("compare", "charthal", "good.json", "twice.json")),
        ("logits.json", "row 1: ", ("lal", "--results", "logits.json")),
        ("silent.json", "row 1: item '0_0': field 'response'", (*GRADE, "silent.json")),
        ("empty.json", "no items", (*GRADE, "empty.json")),
        (
            "bare.json",
            "row 1: item '7': fields 'category', 'subcategory', 'level' are missing",
            ("grade", "truthfulvqa", "--out", "new.json", "--responses", "bare.json"),
        ),
        (
            "unknown.json",
            "response 1: field 'id'",
            (*GRADE, "unknown.json", "--items", "good.json"),
        ),
        (
            "nameless.json",
            "row 1: field 'question_id'",
            (*PLAY, "--responses", "x=nameless.json"),
        ),
    ],
)
def test_a_bad_row_is_named_with_its_file(
    files: Path, file: str, message: str, arguments: tuple[str, ...]
) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {file}: {message}")
    assert done.stderr.count("\n") == done.stderr.count(file) == 1
