"""Responses to a benchmark under a judge, up to the table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judging.types import JudgeRequest
from tests.cli.bench.made_up import Grader, charthal_responses, read, run, write


def test_charthal_from_responses_to_the_table(judge: Grader, tmp_path: Path) -> None:
    responses = charthal_responses("right", "wrong", "right", "", "right")
    source = write(tmp_path / "gpt.response.json", responses)
    out, table = tmp_path / "gpt.eval.json", tmp_path / "table.json"
    done = run("grade", "charthal", "--responses", source, "--judge", "j", "--out", out)
    assert done.exit_code == 0, done.stderr
    assert f"5 items graded, 0 without a label: {out}" in done.stdout
    graded = read(out)
    assert [row["score"] for row in graded.values()] == [1, 0, 1, 0, 1]
    for key, row in responses.items():
        assert {name: graded[key][name] for name in row} == row
    run_file = tmp_path / "gpt.eval.json.run.json"
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [out.name, run_file.name, source.name]
    assert (read(run_file)["cost"], read(run_file)["requests"]) == ("free", 5)
    assert read(run_file)["seconds"] > 0

    shown = run("table", "charthal", "--graded", out, "--json", table)
    assert shown.exit_code == 0
    assert read(table)["overall"] == {"correct": 3, "total": 5, "score": 60}
    assert read(table)["per_cell"]["desc_irrel"] == {"correct": 0, "total": 2, "score": 0}
    assert "100.0% scored" in shown.stdout
    assert "judges: fake/charthal" in shown.stdout
    assert "GPT-5-mini" in shown.stdout
    assert "27.02" in shown.stdout


def test_what_the_judge_was_not_trained_for_is_shown(judge: Grader, tmp_path: Path) -> None:
    judge.known_tasks = ("hieval-qs",)
    source = write(tmp_path / "in.json", charthal_responses("right", "wrong"))
    out = tmp_path / "out.json"
    done = run("grade", "charthal", "--responses", source, "--judge", "j", "--out", out)
    assert "2 items graded, 2 without a label" in done.stdout
    assert "in.json rows 1-2 (2 rows): field 'task': not trained for it" in done.stderr
    refused = run("table", "charthal", "--graded", out)
    assert refused.exit_code == 2
    assert refused.stderr == f"error: {out}: no item has a score of 0 or 1\n"


def test_resuming_grades_only_the_rest(judge: Grader, tmp_path: Path) -> None:
    source = write(tmp_path / "in.json", charthal_responses(*["right", "no"] * 5))
    whole, out = tmp_path / "whole.json", tmp_path / "out.json"
    options = ("--responses", source, "--judge", "j", "--batch", "4")
    command: list[str | Path] = ["grade", "charthal", *options]
    run(*command, "--out", whole)
    judge.batches.clear()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(RuntimeError, match="power cut"):
        grade = judge.grade

        def fail_later(requests: list[JudgeRequest]) -> Any:
            if len(judge.batches) == 2:
                raise RuntimeError("power cut")
            return grade(requests)

        patch.setattr(judge, "grade", fail_later)
        run(*command, "--out", out)
    assert not out.exists()
    judge.batches.clear()
    run(*command, "--out", out)
    assert judge.batches == [["8_0", "9_0"]]
    assert out.read_bytes() == whole.read_bytes()
    assert not out.with_name("out.json.partial").exists()


def test_responses_that_hold_only_ids(judge: Grader, tmp_path: Path) -> None:
    items = charthal_responses("", "")
    for row in items.values():
        del row["response"]
    source = write(tmp_path / "items.json", items)
    said = write(tmp_path / "said.json", [{"id": "1_0", "response": "right"}])
    out = tmp_path / "out.jsonl"
    common: list[str | Path] = ["--responses", said, "--items", source, "--judge", "j"]
    assert run("grade", "charthal", *common, "--out", out).exit_code == 0
    [row] = [json.loads(line) for line in out.read_text().splitlines()]
    assert (row["id"], row["score"], row["question"]) == ("1_0", 1, "Who won?")


def test_simplevqa_in_both_languages(judge: Grader, tmp_path: Path) -> None:
    rows = [
        {"data_id": 1, "language": "EN", "question": "q1", "answer": "a", "response": "right"},
        {"data_id": 2, "language": "CN", "question": "q2", "answer": "a", "response": "right"},
        {"data_id": 3, "language": "CN", "question": "q3", "answer": "a", "response": "pass"},
    ]
    source, out = write(tmp_path / "in.json", rows), tmp_path / "out.json"
    table = tmp_path / "table.json"
    run("grade", "simplevqa", "--responses", source, "--judge", "j", "--out", out)
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
    source, out = write(tmp_path / "in.json", rows), tmp_path / "out.json"
    done = run("grade", "simplevqa", "--responses", source, "--judge", "rules", "--out", out)
    assert done.exit_code == 0, done.stderr
    assert judge.loaded == []
    labels = [row["verdicts"]["simplevqa"]["label"] for row in read(out)]
    assert labels == ["Correct", "Incorrect", "Not attempted"]
    assert "rules: not a judge" in done.stdout


def test_truthfulvqa_needs_no_judge(judge: Grader, tmp_path: Path) -> None:
    common = {"category": "c", "subcategory": "s", "ground_truth": "A"}
    said = {1: "(A)", 2: "(A)", 3: "(B)"}
    rows = [{**common, "level": level, "response": text} for level, text in said.items()]
    source, out = write(tmp_path / "in.json", rows), tmp_path / "out.json"
    assert run("grade", "truthfulvqa", "--responses", source, "--out", out).exit_code == 0
    named = run("grade", "truthfulvqa", "--responses", source, "--judge", "j", "--out", out)
    assert "--judge j: not asked; rules decide all of 'truthfulvqa'" in named.stderr
    assert judge.loaded == []
    table = tmp_path / "table.json"
    run("table", "truthfulvqa", "--graded", out, "--json", table)
    assert read(table)["overall_accuracy"] == pytest.approx(2 / 3)
    assert read(table)["level_accuracies"] == {"1": 1, "2": 1, "3": 0}


def test_chartom_asks_the_judge_only_for_what_rules_leave(judge: Grader, tmp_path: Path) -> None:
    common = {"kind": "bar", "question": "?", "question_type": "number", "answer": 5, "hmi": 0.9}
    rows = [
        {**common, "id": "A_1", "fact_response": "5"},
        {**common, "id": "B_1", "fact_response": "4 or 5, right"},
        {
            **{**common, "id": "B_2", "manipulation": "3D effect"},
            **{"fact_response": "9", "mind_response": "0.8 right"},
        },
    ]
    source, out = write(tmp_path / "in.json", rows), tmp_path / "out.json"
    run("grade", "chartom", "--responses", source, "--judge", "j", "--out", out)
    assert judge.batches == [["B_1", "B_2"]]
    assert [row["fact_correct"] for row in read(out)] == [True, True, False]
    assert read(out)[2]["justification_named"] is True
    shown = run("table", "chartom", "--graded", out)
    assert "overall / fact_accuracy" in shown.stdout
    assert "inverted y-axis" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["grade", "charthal", "--judge", "http://127.0.0.1:9/v1"], "--model: name the model"),
        (
            ["grade", "truthfulvqa", "--rubric-file", "x"],
            "only charthal and simplevqa",
        ),
        (["grade", "vqa", "--judge", "j"], "benchmark 'vqa' is not one of"),
        (["grade", "charthal"], "--judge: 'charthal' needs one, for charthal"),
        (["grade", "charthal", "--judge", "j", "--out", "x.csv"], "--out 'x.csv'"),
        (["grade", "simplevqa", "--judge", "j"], "item '0_0': fields 'answer', 'language' are"),
    ],
)
def test_mistakes_are_one_line(
    judge: Grader, tmp_path: Path, arguments: list[str], message: str
) -> None:
    source = write(tmp_path / "in.json", charthal_responses("x"))
    if "--out" not in arguments:
        arguments = [*arguments, "--out", str(tmp_path / "out.json")]
    done = run(*arguments, "--responses", source)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["in.json"]


def test_the_input_is_never_overwritten(judge: Grader, tmp_path: Path) -> None:
    source = write(tmp_path / "in.json", charthal_responses("x"))
    done = run("grade", "charthal", "--responses", source, "--judge", "j", "--out", source)
    assert done.exit_code == 2
    assert "that is another file of this command" in done.stderr


def test_a_zero_shot_backbone_grades(tiny_folders: Callable[[str], str], tmp_path: Path) -> None:
    """A real model, tiny and random: every label is one of the task's, with its fingerprint."""
    source = write(tmp_path / "in.json", charthal_responses("It is unrelated.", "Nobody.", ""))
    out = tmp_path / "out.json"
    folder = tiny_folders("qwen2_5_vl")
    done = run("grade", "charthal", "--responses", source, "--judge", folder, "--out", out)
    assert done.exit_code == 0, done.stderr
    rows = list(read(out).values())
    assert all(row["score"] in (0, 1) for row in rows)
    assert rows[2]["score"] == 0
    verdicts = [row["verdicts"]["charthal"] for row in rows]
    assert len({verdict["judge"] for verdict in verdicts}) == 1
    assert verdicts[0]["probabilities"].keys() == {"0", "1"}


def test_a_judge_that_was_not_measured_on_the_task_says_so(judge: Grader, tmp_path: Path) -> None:
    source = write(tmp_path / "in.json", charthal_responses("right", "wrong"))
    out = tmp_path / "out.json"
    done = run("grade", "charthal", "--responses", source, "--judge", "j", "--out", out)
    line = "judge fake: not measured on this task (charthal)"
    assert line in done.stdout
    assert read(tmp_path / "out.json.run.json")["measured"] == [line]
    assert line in run("table", "charthal", "--graded", out).stdout

    part = {"n": 542, "accuracy": {"value": 0.825, "low": 0.793, "high": 0.858, "n": 542}}
    judge.folder = tmp_path / "run"
    judge.folder.mkdir()
    write(judge.folder / "report.json", {"slices": {"task": {"charthal/normal-open": part}}})
    done = run("grade", "charthal", "--responses", source, "--judge", "j", "--out", out)
    assert (
        "judge fake on charthal: accuracy 0.825 [0.793, 0.858] on 542 rows (normal-open)"
        in done.stdout
    )


@pytest.mark.parametrize(("options", "scores"), [((), [0, 1]), (("--reasoning", "keep"), [1, 1])])
def test_what_stands_in_thinking_tags_is_graded_if_that_is_wanted(
    judge: Grader, tmp_path: Path, options: tuple[str, ...], scores: list[int]
) -> None:
    responses = charthal_responses("<think>right?</think>no", "<think>no?</think>right")
    source = write(tmp_path / "in.json", responses)
    out = tmp_path / "out.json"
    run("grade", "charthal", "--responses", source, "--judge", "j", *options, "--out", out)
    graded = read(out)
    assert [row["score"] for row in graded.values()] == scores
    for key, row in responses.items():
        assert {name: graded[key][name] for name in row} == row
