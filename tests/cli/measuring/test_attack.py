"""``custos attack``, ``custos compare`` and ``custos plan labels``."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.correction.label_plan import Questions, gate_needs, rate_needs
from evaluation.outcomes import save_evaluation
from judging.errors import FieldError
from judging.files.records import write_records
from judging.fingerprint import file_sha256
from judging.judge import Judge
from judging.types import JudgeRequest, Verdict
from tests.cli.made_up import custos, succeed
from tests.cli.measuring.made_up import UnsteadyJudge, report_of
from tests.evaluation.attacks.made_up import example, examples
from tests.evaluation.made_up import evaluation, scored
from tests.evaluation.made_up import example as labelled

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
        files = ("--data", tmp_path / "data.jsonl", "--out", tmp_path / out)
        return custos("attack", "fake", *files, *options)

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


@pytest.mark.parametrize("stop_at", [2, 12])
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


def test_failed_rows_are_kept_to_be_graded_again(
    judge: StoppingJudge, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(request: JudgeRequest, confidence: float) -> Verdict:
        return Verdict(id=request.id, status="judge_error", message="the server is down")

    verdict_on = judge.verdict_on
    monkeypatch.setattr(
        judge, "verdict_on", lambda r, c: fail(r, c) if "/denial/" in r.id else verdict_on(r, c)
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


def test_a_comparison_is_printed_and_replaces_an_earlier_one_alone(tmp_path: Path) -> None:
    for name, accuracy in (("a", 0.6), ("b", 0.9)):
        save_evaluation(tmp_path / name, *evaluation(accuracy=accuracy, seed=int(accuracy * 10)))
    folders = [tmp_path / name for name in "ab"]
    for out in (tmp_path / "out.json", tmp_path / "b" / "comparison.json"):
        for _ in range(2):
            result = succeed("compare", *folders, "--json", out)
        assert "| metric | A | B | B - A, 95 % interval |" in result.stdout
        written = json.loads(out.read_text())
        assert written["n_common"] == 180
        assert f"Only B right: {written['n_only_b_right']}." in result.stdout
        out.write_text('{"question": "mine"}\n')
    for mine in (tmp_path / "out.json", tmp_path / "b" / "verdicts.jsonl"):
        before = mine.read_bytes()
        result = custos("compare", *folders, "--json", mine)
        assert result.exit_code == 2
        assert f"--json '{mine}'" in result.stderr
        assert mine.read_bytes() == before


def run_plan(*arguments: object) -> Any:
    return custos("plan", "labels", *arguments)


def planned(*arguments: object) -> dict[str, Any]:
    return dict(json.loads(succeed("plan", "labels", *arguments, "--json").stdout))


def test_all_is_planned_where_nothing_is_asked_for() -> None:
    plan = planned("--rows-per-question", "5", "--correlation", ".1")
    assert plan.keys() == {"accuracy", "gate", "risk", "threshold", "assumed"}
    shape = Questions(5, 5, 0.1)
    assert plan["accuracy"] == rate_needs(0.03, 0.9, shape)._asdict()
    assert plan["gate"] == gate_needs(0.02, 0.1, shape)._asdict()
    assert planned("--margin", ".03").keys() == {"gate", "assumed"}
    shown = run_plan("--rows-per-question", "5", "--correlation", ".1").stdout
    assert f" {plan['gate']['questions']:,} " in shown and f" {plan['gate']['rows']:,}\n" in shown


def test_a_good_judge_asks_for_fewer_labels() -> None:
    wanted = ("--half-width", ".05", "--items", "2000", "--sensitivity", ".9", "--specificity")
    plan = planned(*wanted, ".9")
    with_judge, alone = (plan[key]["rows"] for key in ("with_judge", "alone"))
    # 1.96^2 / 4 / .05^2 = 384 labels by the plain formula; Wilson's interval takes a few less.
    assert with_judge < 0.6 * alone
    assert 375 <= alone <= 385
    useless = planned(*wanted, ".1")
    assert useless["with_judge"] == useless["alone"]
    assert run_plan(*wanted[:3], "1", *wanted[4:], ".9").exit_code == 2
    assert "more than 2,000" in run_plan("--half-width", ".01", *wanted[2:], ".9").stdout


def test_an_evaluation_says_how_far_rows_are_alike(tmp_path: Path) -> None:
    """Whole questions are right or wrong: five rows on each say no more than one."""
    rows = [(question, row) for question in range(60) for row in range(5)]
    examples = [labelled("Correct", id=f"{q}-{r}", question=f"Question {q}?") for q, r in rows]
    verdicts = [scored("Wrong" if q % 4 == 0 else "Correct", id=f"{q}-{r}") for q, r in rows]
    save_evaluation(tmp_path, examples, verdicts)
    plan = planned("--like", tmp_path, "--half-width", ".05", "--margin", ".05")
    assumed = plan["assumed"]
    assert (assumed["rows"], assumed["accuracy"]) == (5, 0.75)
    assert assumed["correlation"] == pytest.approx(1, abs=0.03)
    alone = rate_needs(0.05, 0.75, Questions())
    assert alone.questions is not None
    assert plan["accuracy"]["questions"] == pytest.approx(alone.questions, rel=0.05)
    assert plan["gate"] == gate_needs(0.05, 0.25, Questions(5, 5))._asdict()
    one = [labelled("Correct", id=str(n), question="?") for n in range(2)]
    save_evaluation(tmp_path, one, [scored("Correct", id=str(n)) for n in range(2)])
    assert "--like" in run_plan("--like", tmp_path).stderr


def test_a_page_shows_the_numbers_and_the_curve(tmp_path: Path) -> None:
    for arguments in (("--rows-per-question", "4"), ("--items", "900", "--half-width", ".05")):
        plan = planned(*arguments)
        succeed("plan", "labels", *arguments, "--html", tmp_path / "plan.html")
        page = (tmp_path / "plan.html").read_text()
        rows = [need["rows"] for key, need in plan.items() if key != "assumed"]
        assert all(f">{number:,}<" in page for number in rows)
        assert page.count("data:image/png;base64,") == 1
    (tmp_path / "plan.html").write_text("<title>How many labels?</title> mine")
    refused = run_plan("--html", tmp_path / "plan.html")
    assert refused.exit_code == 2 and "--html" in refused.stderr


def test_an_error_that_no_rows_can_show_to_be_below_the_risk_is_refused() -> None:
    result = run_plan("--risk", ".05", "--error", ".05")
    assert result.exit_code == 2 and "--error" in result.stderr
    assert np.isfinite(planned("--risk", ".05", "--error", ".04")["risk"]["rows"])
