"""``custos compare`` and ``custos plan labels``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from cli.compare import compare
from cli.main import app
from evaluation.correction.label_plan import Questions, gate_needs, rate_needs
from evaluation.outcomes import save_evaluation
from judging.errors import CustosError
from tests.evaluation.made_up import evaluation, example, scored


@pytest.fixture
def compare_app() -> typer.Typer:
    compare_app = typer.Typer()
    compare_app.command()(compare)
    return compare_app


@pytest.fixture
def two_runs(tmp_path: Path) -> tuple[str, str]:
    for name, accuracy in (("a", 0.6), ("b", 0.9)):
        save_evaluation(tmp_path / name, *evaluation(accuracy=accuracy, seed=int(accuracy * 10)))
    return str(tmp_path / "a"), str(tmp_path / "b")


def test_prints_a_table_and_writes_json(
    compare_app: typer.Typer, two_runs: tuple[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    result = CliRunner().invoke(
        compare_app, [*two_runs, "--json", str(out)], catch_exceptions=False
    )
    assert result.exit_code == 0
    assert "| metric | A | B | B - A, 95 % interval |" in result.stdout
    written = json.loads(out.read_text())
    assert written["n_common"] == 180
    assert f"Only B right: {written['n_only_b_right']}." in result.stdout


def test_no_file_of_an_evaluation_is_replaced(
    compare_app: typer.Typer, two_runs: tuple[str, str]
) -> None:
    verdicts = Path(two_runs[1]) / "verdicts.jsonl"
    before = verdicts.read_bytes()
    with pytest.raises(CustosError, match="verdicts.jsonl lies there and would be replaced"):
        CliRunner().invoke(
            compare_app, [*two_runs, "--json", str(verdicts)], catch_exceptions=False
        )
    assert verdicts.read_bytes() == before
    beside = verdicts.with_name("comparison.json")
    assert CliRunner().invoke(compare_app, [*two_runs, "--json", str(beside)]).exit_code == 0


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["plan", "labels", *arguments], catch_exceptions=False)


def planned(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def test_all_is_planned_where_nothing_is_asked_for() -> None:
    plan = planned("--rows-per-question", "5", "--correlation", ".1")
    assert plan.keys() == {"accuracy", "gate", "risk", "threshold", "assumed"}
    shape = Questions(5, 5, 0.1)
    assert plan["accuracy"] == rate_needs(0.03, 0.9, shape)._asdict()
    assert plan["gate"] == gate_needs(0.02, 0.1, shape)._asdict()
    assert planned("--margin", ".03").keys() == {"gate", "assumed"}
    shown = run("--rows-per-question", "5", "--correlation", ".1").stdout
    assert f" {plan['gate']['questions']:,} " in shown and f" {plan['gate']['rows']:,}\n" in shown


def test_a_good_judge_asks_for_fewer_labels_also_under_the_earlier_name() -> None:
    wanted = ("--half-width", ".05", "--items", "2000", "--sensitivity", ".9", "--specificity")
    plan = planned(*wanted, ".9")
    with_judge, alone = (plan[key]["rows"] for key in ("with_judge", "alone"))
    # 1.96^2 / 4 / .05^2 = 384 labels by the plain formula; Wilson's interval takes a few less.
    assert with_judge < 0.6 * alone
    assert 375 <= alone <= 385
    useless = planned(*wanted, ".1")
    assert useless["with_judge"] == useless["alone"]
    earlier = CliRunner().invoke(app, ["bench", "plan", *wanted, ".9", "--json"])
    assert json.loads(earlier.stdout) == plan
    assert run(*wanted[:3], "1", *wanted[4:], ".9").exit_code == 2
    assert "more than 2,000" in run("--half-width", ".01", *wanted[2:], ".9").stdout


def test_an_evaluation_says_how_far_rows_are_alike(tmp_path: Path) -> None:
    """Whole questions are right or wrong: five rows on each say no more than one."""
    rows = [(question, row) for question in range(60) for row in range(5)]
    examples = [example("Correct", id=f"{q}-{r}", question=f"Question {q}?") for q, r in rows]
    verdicts = [scored("Wrong" if q % 4 == 0 else "Correct", id=f"{q}-{r}") for q, r in rows]
    save_evaluation(tmp_path, examples, verdicts)
    plan = planned("--like", str(tmp_path), "--half-width", ".05", "--margin", ".05")
    assumed = plan["assumed"]
    assert (assumed["rows"], assumed["accuracy"]) == (5, 0.75)
    assert assumed["correlation"] == pytest.approx(1, abs=0.03)
    alone = rate_needs(0.05, 0.75, Questions())
    assert alone.questions is not None
    assert plan["accuracy"]["questions"] == pytest.approx(alone.questions, rel=0.05)
    assert plan["gate"] == gate_needs(0.05, 0.25, Questions(5, 5))._asdict()
    one = [example("Correct", id=str(n), question="?") for n in range(2)]
    save_evaluation(tmp_path, one, [scored("Correct", id=str(n)) for n in range(2)])
    assert "--like" in run("--like", str(tmp_path)).stderr


def test_a_page_shows_the_numbers_and_the_curve(tmp_path: Path) -> None:
    for arguments in (("--rows-per-question", "4"), ("--items", "900", "--half-width", ".05")):
        plan = planned(*arguments)
        assert run(*arguments, "--html", str(tmp_path / "plan.html")).exit_code == 0
        page = (tmp_path / "plan.html").read_text()
        rows = [need["rows"] for key, need in plan.items() if key != "assumed"]
        assert all(f">{number:,}<" in page for number in rows)
        assert page.count("data:image/png;base64,") == 1


def test_an_error_that_no_rows_can_show_to_be_below_the_risk_is_refused() -> None:
    result = run("--risk", ".05", "--error", ".05")
    assert result.exit_code == 2 and "--error" in result.stderr
    assert np.isfinite(planned("--risk", ".05", "--error", ".04")["risk"]["rows"])
