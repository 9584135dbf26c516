"""Responses to a benchmark under a judge, up to the table; what is kept, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.bench.made_up import Grader, charthal_responses, fail_on, grade, read, run, write
from tests.clients.fake_server import FakeServer

MINE = ("--judge", "j")


def test_charthal_from_responses_to_the_table(judge: Grader, tmp_path: Path) -> None:
    responses = charthal_responses("right", "wrong", "right", "", "right")
    done = grade(tmp_path, responses, *MINE)
    out, table = tmp_path / "out.json", tmp_path / "table.json"
    assert done.exit_code == 0, done.stderr
    assert f"5 items graded, 0 without a label: {out}" in done.stdout
    graded = read(out)
    assert [row["score"] for row in graded.values()] == [1, 0, 1, 0, 1]
    for key, row in responses.items():
        assert {name: graded[key][name] for name in row} == row
    run_file = tmp_path / "out.json.run.json"
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["in.json", out.name, run_file.name]
    assert (read(run_file)["cost"], read(run_file)["requests"]) == ("free", 5)
    assert read(run_file)["seconds"] > 0

    shown = run("table", "charthal", "--graded", out, "--json", table)
    assert shown.exit_code == 0
    assert read(table)["overall"] == {"correct": 3, "total": 5, "score": 60}
    assert read(table)["per_cell"]["desc_irrel"] == {"correct": 0, "total": 2, "score": 0}
    for text in ("100.0% scored", "judges: fake/charthal", "GPT-5-mini", "27.02"):
        assert text in shown.stdout


def test_what_the_judge_was_not_trained_for_is_shown(judge: Grader, tmp_path: Path) -> None:
    judge.known_tasks = ("hieval-qs",)
    done = grade(tmp_path, charthal_responses("right", "wrong"), *MINE)
    assert "2 items graded, 2 without a label" in done.stdout
    assert "in.json rows 1-2 (2 rows): field 'task': not trained for it" in done.stderr
    out = tmp_path / "out.json"
    refused = run("table", "charthal", "--graded", out)
    assert refused.exit_code == 2
    assert refused.stderr == f"error: {out}: no item has a score of 0 or 1\n"


def test_responses_that_hold_only_ids(judge: Grader, tmp_path: Path) -> None:
    items = charthal_responses("", "")
    for row in items.values():
        del row["response"]
    official = write(tmp_path / "items.json", items)
    said, out = [{"id": "1_0", "response": "right"}], tmp_path / "out.jsonl"
    assert grade(tmp_path, said, "--items", official, *MINE, "--out", out).exit_code == 0
    [row] = [json.loads(line) for line in out.read_text().splitlines()]
    assert (row["id"], row["score"], row["question"]) == ("1_0", 1, "Who won?")


def test_simplevqa_in_both_languages(judge: Grader, tmp_path: Path) -> None:
    rows = [
        {"data_id": 1, "language": "EN", "question": "q1", "answer": "a", "response": "right"},
        {"data_id": 2, "language": "CN", "question": "q2", "answer": "a", "response": "right"},
        {"data_id": 3, "language": "CN", "question": "q3", "answer": "a", "response": "pass"},
    ]
    out, table = tmp_path / "out.json", tmp_path / "table.json"
    grade(tmp_path, rows, *MINE, name="simplevqa")
    assert isinstance(read(out), list)
    assert run("table", "simplevqa", "--graded", out, "--json", table).exit_code == 0
    found = read(table)
    assert found["overall"] == pytest.approx(
        {"CO": 2 / 3, "IN": 0, "NA": 1 / 3, "CGA": 1, "F": 0.8}
    )
    assert found["by_language"]["CN"]["CO"] == 1 / 2
    assert found["judges"] == ["fake/simplevqa"]


def test_rules_grade_without_a_judge(judge: Grader, tmp_path: Path) -> None:
    rows = [
        {"data_id": 1, "language": "EN", "question": "q1", "answer": "Elm", "response": "An elm."},
        {"data_id": 2, "language": "CN", "question": "q2", "answer": "榆树", "response": "橡树"},
        {"data_id": 3, "language": "EN", "question": "q3", "answer": "Elm", "response": "No idea"},
    ]
    done = grade(tmp_path, rows, "--judge", "rules", name="simplevqa")
    assert done.exit_code == 0, done.stderr
    labels = [row["verdicts"]["simplevqa"]["label"] for row in read(tmp_path / "out.json")]
    assert labels == ["Correct", "Incorrect", "Not attempted"]
    assert "rules: not a judge" in done.stdout
    assert judge.loaded == []


def test_truthfulvqa_needs_no_judge(judge: Grader, tmp_path: Path) -> None:
    row = {"category": "c", "subcategory": "s", "level": 1, "answer": "A"}
    rows = [{**row, "question_id": "1", "response": "(A)"}]
    done = grade(tmp_path, rows, name="truthfulvqa")
    assert done.exit_code == 0, done.stderr
    assert read(tmp_path / "out.json")[0]["is_correct"] is True
    asked = grade(tmp_path, rows, *MINE, name="truthfulvqa")
    assert "--judge j: not asked" in asked.stderr
    assert judge.loaded == []


def test_chartom_asks_the_judge_only_for_what_rules_leave(judge: Grader, tmp_path: Path) -> None:
    common = {"kind": "bar", "question": "?", "question_type": "number", "answer": 5, "hmi": 0.9}
    said = {"fact_response": "9", "mind_response": "0.8 right"}
    rows = [
        {**common, "id": "A_1", "fact_response": "5"},
        {**common, "id": "B_1", "fact_response": "4 or 5, right"},
        {**common, "id": "B_2", "manipulation": "inverted y-axis", **said},
    ]
    grade(tmp_path, rows, *MINE, name="chartom")
    assert judge.batches == [["B_1", "B_2"]]
    graded = read(tmp_path / "out.json")
    assert [row["fact_correct"] for row in graded] == [True, True, False]
    assert graded[2]["justification_named"] is True
    shown = run("table", "chartom", "--graded", tmp_path / "out.json")
    assert "overall / fact_accuracy" in shown.stdout
    assert "inverted y-axis" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["charthal", "--judge", "http://127.0.0.1:9/v1"], "--model: name the model"),
        (["charthal", "--judge", "m=r", "--engine", "openai"], "--engine openai and --base-url"),
        (["truthfulvqa", "--rubric-file", "x"], "only charthal and simplevqa"),
        (["vqa", *MINE], "benchmark 'vqa' is not one of"),
        (["charthal"], "--judge: 'charthal' needs one, for charthal"),
        (["charthal", *MINE, "--out", "x.csv"], "--out 'x.csv'"),
        (["simplevqa", *MINE], "item '0_0': fields 'answer', 'language' are"),
    ],
)
def test_mistakes_are_one_line(
    judge: Grader, tmp_path: Path, arguments: list[str], message: str
) -> None:
    name, *options = arguments
    done = grade(tmp_path, charthal_responses("x"), *options, name=name)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["in.json"]


def test_files_that_are_read_are_never_overwritten(judge: Grader, tmp_path: Path) -> None:
    said = charthal_responses("x")
    items = write(tmp_path / "items.json", said)
    for out in (tmp_path / "in.json", items):
        done = grade(tmp_path, said, *MINE, "--items", items, "--out", out)
        assert done.exit_code == 2
        assert f"--out '{out}': that is another file of this command" in done.stderr
        assert read(out) == said


def test_a_judge_that_was_not_measured_on_the_task_says_so(judge: Grader, tmp_path: Path) -> None:
    said, out = charthal_responses("right", "wrong"), tmp_path / "out.json"
    done = grade(tmp_path, said, *MINE)
    line = "judge fake: not measured on this task (charthal)"
    assert line in done.stdout
    assert read(tmp_path / "out.json.run.json")["measured"] == [line]
    assert line in run("table", "charthal", "--graded", out).stdout

    part = {"n": 542, "accuracy": {"value": 0.825, "low": 0.793, "high": 0.858, "n": 542}}
    judge.folder = tmp_path / "run"
    judge.folder.mkdir()
    write(judge.folder / "report.json", {"slices": {"task": {"charthal/normal-open": part}}})
    done = grade(tmp_path, said, *MINE)
    measured = "accuracy 0.825 [0.793, 0.858] on 542 rows (normal-open)"
    assert f"judge fake on charthal: {measured}" in done.stdout


def test_grading_asks_again_only_for_what_failed(fake: FakeServer, tmp_path: Path) -> None:
    out, partial = tmp_path / "out.json", tmp_path / "out.json.partial"
    said, server = charthal_responses("one", "two", "three"), ("--judge", fake.url, "--model", "m")
    fail_on("two", fake)
    done = grade(tmp_path, said, *server)
    assert (done.exit_code, len(fake.seen)) == (0, 3)
    assert f"1 failed, kept in {partial}; --retry-failed grades them again\n" in done.stderr
    first = read(out)
    fail_on("nothing", fake)
    assert grade(tmp_path, said, *server).exit_code == 0
    assert (fake.seen, read(out)) == ([], first)
    assert grade(tmp_path, said, *server, "--retry-failed").exit_code == 0
    assert ["two" in seen.text for seen in fake.seen] == [True]
    assert [row["score"] for row in read(out).values()] == [1, 1, 1]
    assert not partial.exists()


def test_grading_without_a_single_verdict_fails(fake: FakeServer, tmp_path: Path) -> None:
    fail_on("Who won?", fake)
    said = charthal_responses("one", "two")
    done = grade(tmp_path, said, "--judge", fake.url, "--model", "m")
    assert done.exit_code == 1
    assert done.stderr.endswith(f"error: {tmp_path / 'in.json'}: no row got a verdict\n")
    assert (tmp_path / "out.json.partial").exists()
