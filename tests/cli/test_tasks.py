"""``custos tasks`` shows tasks with rows that work, ``custos backbone`` what there is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from judging.judge import Judge
from judging.judge.card import shipped_judges
from judging.tasks import get_task, task_names
from judging.types import JudgeRequest

EXPECTED = {
    # A rule reads 41 mm for 40 mm; with no options or order in the row the judge decides.
    "embedded-benchmarks": {
        *(("chartom-fact", "Correct"), ("chartom-fact", "Incorrect"), ("simplevqa", "Correct")),
    },
    "embedded-ea": {("hieval-ea", "Wrong"), ("hieval-qs", "Correct")},
    "embedded-pair": {("truthful-pair", "A")},
    "embedded-qs": {("hieval-qs", "Correct")},
}
"""Labels of the example rows, which are plain cases."""


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["tasks", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def described() -> list[dict[str, Any]]:
    descriptions: list[dict[str, Any]] = json.loads(shown("--json"))
    return descriptions


def shown_rows() -> list[dict[str, Any]]:
    """Return the rows of the text, as a user would copy them."""
    return [
        json.loads(line[line.index("{") :])
        for line in shown().splitlines()
        if line.lstrip().startswith("row ")
    ]


def test_every_task_is_shown_with_a_row_that_it_takes() -> None:
    rows = shown_rows()
    assert [row["task"] for row in rows] == list(task_names())
    assert rows == [description["row"] for description in described()]
    for row in rows:
        get_task(row["task"]).check(JudgeRequest.model_validate(row))


def test_each_rubric_has_a_row_and_its_labels() -> None:
    for description in described():
        task = get_task(description["name"])
        rows = task.rows_by_rubric()
        assert next(iter(rows.values())) == description["row"]
        assert list(rows) == list(description["rubrics"])
        for rubric, row in rows.items():
            request = JudgeRequest.model_validate(row)
            task.check(request)
            assert task.rubric(request) == rubric
            assert list(task.labels(rubric)) == description["rubrics"][rubric]
        assert description["variants"] == list(task.variants)
        assert all(row.get(field) for row in rows.values() for field in description["required"])


def test_the_judges_are_those_whose_cards_name_the_task() -> None:
    judges = {each["name"]: each["judges"] for each in described()}
    assert judges["hieval-ea"]["embedded-ea"] == ["plain/all"]
    assert "plain/any" in judges["hieval-qs"]["embedded-qs"]
    assert {name for known in judges.values() for name in known} == set(shipped_judges())
    assert judges["charthal"] == {}


def test_one_task_in_words() -> None:
    text = shown("charthal")
    assert text.startswith("charthal\n  for ")
    assert "references under normal-closed, contradictory-closed" in text
    assert "none is shipped" in text
    assert "hieval" not in text
    assert "Correct; Wrong with one of Reasoning Error" in " ".join(shown("hieval-ea").split())
    assert "10 to 0" in shown("truthful-critique-score")


def test_an_unknown_task_names_the_nearest() -> None:
    result = CliRunner().invoke(app, ["tasks", "hieval-sq"])
    assert result.exit_code != 0
    assert "hieval-qs" in result.stderr


@pytest.mark.usefixtures("embedded")
@pytest.mark.parametrize("name", shipped_judges())
def test_a_shipped_judge_grades_the_rows_of_its_tasks(name: str) -> None:
    judge = Judge.load(name)
    assert judge.card
    rows = [row for row in shown_rows() if row["task"] in judge.tasks]
    for task, rubrics in judge.card.tasks.items():
        of_rubrics = [get_task(task).rows_by_rubric()[rubric] for rubric in rubrics]
        rows += [row for row in of_rubrics if row not in rows]
    verdicts = judge.grade(map(JudgeRequest.model_validate, rows))
    labels = [(row["task"], verdict.label) for row, verdict in zip(rows, verdicts, strict=True)]
    assert set(labels) == EXPECTED[name]


def test_the_embedded_backbone_is_described_and_answers() -> None:
    result = CliRunner().invoke(app, ["backbone", "--smoke"], catch_exceptions=False)
    assert result.exit_code == 0
    facts = dict(line.split(maxsplit=1) for line in result.stdout.splitlines()[:8])
    assert facts["name"] == facts["version"] == "embedded@1"
    assert int(facts["vocabulary"].replace(",", "")) == 49_156
    assert int(facts["parameters"].replace(",", "")) > 130_000_000
    assert Path(facts["folder"], "config.json").is_file()
    assert "Paris" in result.stdout.splitlines()[-1]


def test_an_unknown_backbone(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["backbone", str(tmp_path)])
    assert result.exit_code == 2
    assert f"error: backbone '{tmp_path}' cannot be loaded" in result.stderr


def test_backbones_are_listed_with_what_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUSTOS_CACHE", str(tmp_path))
    (tmp_path / "qwen2.5-coder-0.5b@1").mkdir()
    (tmp_path / "qwen2.5-coder-0.5b@1/config.json").touch()
    result = CliRunner().invoke(app, ["backbones"], catch_exceptions=False)
    here = {line.split()[0]: line.split()[-1] for line in result.stdout.splitlines()[1:]}
    assert here.pop("qwen2.5-coder-0.5b") == "yes"
    assert here == dict.fromkeys(("embedded@1", "embedded@2", "qwen2.5-coder-1.5b"), "no")
