"""A mistake in a row is said of the right file, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.bench.made_up import Grader, charthal_responses, read, run, write

BAD_TYPE = "row '1_0': field 'q_type'"
TABLE = ("table", "charthal", "--graded")
GRADE = ("grade", "charthal", "--judge", "j", "--out", "new.json", "--responses")
PLAY = ("tournament", "truthfulvqa", "--judge", "j", "--out", "m.jsonl", "--items", "good.json")


@pytest.fixture
def files(judge: Grader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a graded file and several that are wrong in one row."""
    monkeypatch.chdir(tmp_path)
    responses: dict[str, Any] = charthal_responses("right", "no")
    write(Path("responses.json"), responses)
    run(*GRADE[:4], "--out", "good.json", "--responses", "responses.json")
    graded = read(Path("good.json"))

    def with_verdicts(verdicts: object) -> dict[str, Any]:
        return {key: {**one, "verdicts": verdicts} for key, one in graded.items()}

    for name, content in {
        "type": {**graded, "1_0": {**graded["1_0"], "q_type": "essay"}},
        "listed": with_verdicts(["1"]),
        "unlike": with_verdicts({"charthal": {"status": "odd"}}),
        "twice": [{"id": key, **graded["0_0"]} for key in "aa"],
        "silent": {key: {**row, "response": None} for key, row in responses.items()},
        "people": {"0_0": {"score": "high"}},
        "unknown": [{"id": "9_9", "response": "?"}],
        "nameless": [{"response": "?"}],
        "logits": [{"case": {}, "result": {}}],
        "empty": [],
        "bare": [{"question_id": "7", "answer": "A", "response": "A"}],
    }.items():
        write(Path(f"{name}.json"), content)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("file", "message", "arguments"),
    [
        ("type", BAD_TYPE, (*TABLE, "type.json")),
        ("gone", "no such file", (*TABLE, "gone.json")),
        ("empty", "no items", (*TABLE, "empty.json")),
        ("people", "row '0_0': field 'score'", (*TABLE, "good.json", "--people", "people.json")),
        ("type", BAD_TYPE, (*TABLE, "type.json", "--people", "people.json")),
        ("listed", "field 'verdicts'", (*TABLE, "listed.json")),
        ("unlike", "verdict on 'charthal': field 'status'", (*TABLE, "unlike.json")),
        ("type", BAD_TYPE, ("compare", "charthal", "type.json", "good.json")),
        ("type", BAD_TYPE, ("compare", "charthal", "good.json", "type.json")),
        ("twice", "item 2: id 'a'", ("compare", "charthal", "good.json", "twice.json")),
        ("logits", "row 1: ", ("lal", "--results", "logits.json")),
        ("silent", "row 1: item '0_0': field 'response'", (*GRADE, "silent.json")),
        ("empty", "no items", (*GRADE, "empty.json")),
        (
            "bare",
            "row 1: item '7': fields 'category', 'subcategory', 'level' are missing",
            ("grade", "truthfulvqa", "--out", "new.json", "--responses", "bare.json"),
        ),
        ("unknown", "response 1: field 'id'", (*GRADE, "unknown.json", "--items", "good.json")),
        ("nameless", "row 1: field 'question_id'", (*PLAY, "--responses", "x=nameless.json")),
    ],
)
def test_a_bad_row_is_named_with_its_file(
    file: str, message: str, arguments: tuple[str, ...]
) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {file}.json: {message}")
    assert done.stderr.count("\n") == done.stderr.count(f"{file}.json") == 1
