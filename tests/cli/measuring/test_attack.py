from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from judging.errors import FieldError
from judging.files.records import write_records
from judging.fingerprint import file_sha256
from judging.judge import Judge
from judging.types import JudgeRequest, Verdict
from tests.cli.measuring.made_up import UnsteadyJudge, report_of
from tests.evaluation.attacks.made_up import example, examples

Run = Callable[..., Any]


class StoppingJudge(UnsteadyJudge):
    """Looks for references in what it reads."""

    def verdict_on(self, request: JudgeRequest, confidence: float) -> Verdict:
        try:
            return super().verdict_on(request, 0.9)
        except FieldError as error:
            return Verdict.from_error(error, request)

    def fingerprint(self, request: JudgeRequest) -> str:
        if request.task not in self.known_tasks:
            raise FieldError("task", f"judge '{self.name}' was trained for something else")
        return super().fingerprint(request)


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> StoppingJudge:
    judge = StoppingJudge()
    monkeypatch.setattr(Judge, "load", lambda source: judge)
    return judge


@pytest.fixture
def run(tmp_path: Path) -> Run:
    wrong = example("Who composed Aida?", ["Verdi"], responses=("Puccini",), label="Wrong")
    write_records(tmp_path / "data.jsonl", [*examples(), wrong])

    def run(*options: str, out: str = "out") -> Any:
        data, folder = str(tmp_path / "data.jsonl"), str(tmp_path / out)
        arguments = ["attack", "fake", "--data", data, "--out", folder, *options]
        return CliRunner().invoke(app, arguments, catch_exceptions=False)

    return run


def test_all_files_and_one_table(judge: StoppingJudge, run: Run, tmp_path: Path) -> None:
    result = run("--search", "1", "--pool", "10")
    assert result.exit_code == 0, result.stderr
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"attacks.html", "attacks.json", "attacks.md", "rows.jsonl"}
    report = report_of(tmp_path / "out", "attacks.json")
    assert report["attacks"]["denial"]["called_correct"]["value"] == 1
    assert report["attacks"]["wrong_entity"]["called_correct"]["value"] == 0
    controls = {name: each["called_correct"]["value"] for name, each in report["controls"].items()}
    assert 0 < controls.pop("right_option") < 1  # a letter holds no reference
    assert set(controls.values()) == {1}
    assert report["dataset_sha256"] == file_sha256(tmp_path / "data.jsonl")
    assert report["judges"] == ["fake/hieval-qs"]
    assert report["search"]["tries"] == 10
    assert {check["flips"]["hits"] for check in report["stability"]["checks"].values()} == {0}
    shown = {line.split()[1]: line for line in result.stdout.splitlines() if "│" in line}
    assert " 1.000 " in shown["denial"] and " 0.000 " in shown["wrong_entity"]
    assert str(tmp_path / "out" / "attacks.html") in result.stdout


def test_families_questions_and_wordings_can_be_chosen(run: Run, judge: StoppingJudge,
                                                       tmp_path: Path) -> None:  # fmt: skip
    options = ("--family", "denial", "--family", "right_bare", "--no-stability")
    assert run(*options, "--limit", "3", "--wordings", "2").exit_code == 0
    report = report_of(tmp_path / "out", "attacks.json")
    assert (list(report["attacks"]), list(report["controls"])) == (["denial"], ["right_bare"])
    assert report["controls"]["right_bare"]["called_correct"]["n"] == 6
    assert (report["questions"], report["stability"], report["search"]) == (3, None, None)


@pytest.mark.parametrize("stop_at", [0, 2, 9, 12])
def test_a_stopped_attack_goes_on_where_it_stopped(
    judge: StoppingJudge, run: Run, tmp_path: Path, stop_at: int
) -> None:
    options = ("--family", "denial", "--batch", "9", "--search", "1", "--pool", "10")
    assert run(*options, out="whole").exit_code == 0
    whole, judge.batches = list(judge.batches), []
    judge.stop_at = stop_at
    assert run(*options).exit_code == 130
    assert not (tmp_path / "out" / "attacks.json").exists()
    judge.stop_at = None
    assert run(*options).exit_code == 0
    assert judge.batches[:stop_at] == whole[:stop_at]
    assert judge.batches == whole
    reports = [report_of(tmp_path / out, "attacks.json") for out in ("whole", "out")]
    assert reports[0] == {**reports[1], "command": reports[0]["command"]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--family", "denail"), "attack family 'denail' is not one of correction, denial"),
        (("--search", "1", "--pool", "999999"), "there are 2,688"),
    ],
)
def test_refusals_are_one_line(
    judge: StoppingJudge, run: Run, options: tuple[str, ...], message: str
) -> None:
    result = run(*options)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert message in result.stderr


def test_rows_and_judges_of_other_tasks_are_refused(
    judge: StoppingJudge, run: Run, tmp_path: Path
) -> None:
    judge.known_tasks = ("simplevqa",)
    result = run("--family", "denial")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "judge 'fake' was trained for something else" in result.stderr
    rows = examples(task="hieval-ea", label="Correct")
    write_records(tmp_path / "data.jsonl", rows)
    result = run()
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "task 'hieval-ea': the attacks are for quick-score judges" in result.stderr
    assert not judge.batches


def test_a_judge_that_takes_some_of_the_rows_is_attacked(
    judge: StoppingJudge, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fingerprint(request: JudgeRequest) -> str:
        if request.reference_mode == "all":
            raise FieldError("reference_mode", "is another")
        return "print"

    whole = example("Which two?", ["iron", "zinc"], reference_mode="all")
    write_records(tmp_path / "data.jsonl", [whole, *examples()])
    monkeypatch.setattr(judge, "fingerprint", fingerprint)
    result = run("--family", "right_bare", "--no-stability")
    assert (result.exit_code, "1 of 9 rows failed" in result.stderr) == (1, True)
    assert (
        report_of(tmp_path / "out", "attacks.json")["controls"]["right_bare"]["called_correct"]["n"]
        == 8
    )
    write_records(tmp_path / "data.jsonl", [whole])
    assert run("--family", "right_bare", "--no-stability", out="other").exit_code == 2


def test_failed_rows_are_kept_to_be_graded_again(
    judge: StoppingJudge, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(request: JudgeRequest, confidence: float) -> Verdict:
        return Verdict(id=request.id, status="judge_error", message="the server is down")

    verdict_on = judge.verdict_on
    monkeypatch.setattr(
        judge,
        "verdict_on",
        lambda r, c: fail(r, c) if "/denial/" in r.id else verdict_on(r, c),
    )
    result = run("--no-stability")
    assert result.exit_code == 1
    assert "rows failed; --retry-failed grades them again" in result.stderr
    assert (
        report_of(tmp_path / "out", "attacks.json")["unscored"][0]["message"]
        == "the server is down"
    )
    assert run("--no-stability", "--allow-failed").exit_code == 0
    monkeypatch.setattr(judge, "verdict_on", verdict_on)
    judge.batches = []
    assert run("--no-stability", "--retry-failed").exit_code == 0
    assert all("/denial/" in id for batch in judge.batches for id in batch)
    assert report_of(tmp_path / "out", "attacks.json")["unscored"] == []
    assert not list((tmp_path / "out").glob("*.partial"))
