"""A judge of one task of one's own: a table need not name the task, and all its labels count."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.shared.tables import trained_tasks
from judging.judge import Judge
from judging.judge.card import JudgeCard, instruction_hash
from judging.tasks import get_task
from judging.types import JudgeRequest, Verdict
from tests.cli.made_up import custos, read_csv, read_lines, succeed, write_csv, write_lines
from tests.cli.shards.test_run import PoolHere
from tests.judging.tasks.made_up import Grounded, declare
from tests.serve.made_up import FakeJudge

LABELS = Grounded.label_set
WORDS = ("supported", "somewhat", "unsupported")
MEANINGS = ["--labels", ",".join(map("=".join, zip(WORDS, LABELS, strict=True)))]


class GroundingJudge(FakeJudge):
    """Gives the label whose place the response says."""

    def verdict_on(self, request: JudgeRequest, confidence: float) -> Verdict:
        label = LABELS[int(request.response)]
        return Verdict(
            id=request.id,
            status="scored",
            label=label,
            probabilities={each: 0.8 if each == label else 0.1 for each in LABELS},
            confidence=0.8,
            judge_name=self.name,
            rubric=get_task(request.task).full_rubric(request),
        )


@pytest.fixture
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    declare(monkeypatch)
    folder = tmp_path / "mine"
    folder.mkdir()
    task = Grounded()
    told = {"grounded/plain": instruction_hash(task.instruction("plain"), LABELS)}
    tasks = {"grounded": ("plain",)}
    card = JudgeCard(backbone="none", backbone_version="1", tasks=tasks, instructions=told)
    (folder / "judge.json").write_text(card.model_dump_json(), encoding="utf-8")
    judge = GroundingJudge("mine", ("grounded", "hieval-qs"))
    monkeypatch.setattr(Judge, "load", lambda source: judge)
    return folder


def rows(**fields: Any) -> list[dict[str, Any]]:
    return [
        {"question": f"q{n}", "references": ["x"], "response": str(n % 3)}
        | {"label": WORDS[n % 2], **fields}
        for n in range(12)
    ]


def test_a_table_without_a_task_is_of_the_judge_s(run_folder: Path, tmp_path: Path) -> None:
    table = write_lines(tmp_path / "in.jsonl", rows())
    out = tmp_path / "out.jsonl"
    graded = succeed("grade", "--judge", run_folder, "--in", table, "--out", out, *MEANINGS)
    assert {verdict["rubric"] for verdict in read_lines(out)} == {"grounded/plain"}
    for word in WORDS:
        assert f"{word} 0.333" in graded.stdout
    sheet = tmp_path / "review.csv"
    reviewed = succeed("review", out, "--in", table, "--rows", 6, "--out", sheet, *MEANINGS)
    assert f"{WORDS[1]} 0.333" in reviewed.stdout
    assert f"with {' or '.join(WORDS)}" in reviewed.stdout
    filled = [row | {"label": WORDS[1]} for row in read_csv(sheet)]
    assert {row["task"] for row in filled} == {"grounded"}
    files = ("--in", table, "--out", tmp_path / "merged.jsonl")
    merged = succeed("review", "--merge", write_csv(sheet, filled), *files, *MEANINGS)
    assert "6 of 12 rows have a label of the corrections" in merged.stdout
    files = ("--data", table, "--out", tmp_path / "report")
    measured = succeed("eval", run_folder, *files, "--no-zero-shot", *MEANINGS)
    assert f"{WORDS[1]} 0.500" in measured.stdout
    plain = write_lines(tmp_path / "ours.jsonl", [{**row, "label": LABELS[0]} for row in rows()])
    card = tmp_path / "card"
    succeed("card", run_folder, "--data", f"ours={plain}", "--out", card, "--no-zero-shot")
    [part] = json.loads((card / "reliability.json").read_text())["data"].values()
    assert part["n"] == 12


def test_shards_without_a_task_are_of_the_judge_s(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.shards.RayPool", PoolHere)
    write_lines(tmp_path / "in.jsonl", rows())
    files = ("--in", f"{tmp_path}/i*.jsonl", "--out", f"{tmp_path}/*.csv")
    done = succeed("grade", "--ray", "local", "--judge", run_folder, *files)
    assert "12 rows graded (12 scored)" in done.stdout
    assert {row["rubric"] for row in read_csv(tmp_path / "in.csv")} == {"grounded/plain"}


def test_another_judge_is_not_of_the_folder_it_is_named_in(
    run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(run_folder)
    assert trained_tasks(["."]) == trained_tasks(["m=."]) == ("grounded",)
    assert trained_tasks([]) == trained_tasks(["embedded"]) == trained_tasks([".", "."]) == ()


def test_the_advice_on_foreign_words_is_by_place(run_folder: Path, tmp_path: Path) -> None:
    given = rows()
    for row, label in zip(given, ("half", "not grounded", "ok"), strict=False):
        row["label"] = label
    table = write_lines(tmp_path / "in.jsonl", given)
    result = custos("eval", run_folder, "--data", table, "--out", tmp_path / "report")
    assert result.exit_code == 2
    for pair in ("half=Partly grounded", "not grounded=Ungrounded", "ok=Grounded"):
        assert pair in result.stderr


def test_a_table_with_tasks_stays_as_it_is(run_folder: Path, tmp_path: Path) -> None:
    given = rows(task="hieval-qs", label="Wrong")
    del given[0]["task"]
    table, out = write_lines(tmp_path / "in.jsonl", given), tmp_path / "out.jsonl"
    custos("grade", "--judge", run_folder, "--in", table, "--out", out)
    assert {verdict["rubric"] for verdict in read_lines(out)} == {"hieval-qs/plain/all"}
