import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from cli.measuring.compare import compare
from evaluation.outcomes import save_evaluation
from judging.errors import CustosError
from tests.evaluation.made_up import evaluation


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command()(compare)
    return app


@pytest.fixture
def runs(tmp_path: Path) -> tuple[str, str]:
    for name, accuracy in (("a", 0.6), ("b", 0.9)):
        save_evaluation(tmp_path / name, *evaluation(accuracy=accuracy, seed=int(accuracy * 10)))
    return str(tmp_path / "a"), str(tmp_path / "b")


def test_prints_a_table_and_writes_json(
    app: typer.Typer, runs: tuple[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    result = CliRunner().invoke(app, [*runs, "--json", str(out)], catch_exceptions=False)
    assert result.exit_code == 0
    assert "| metric | A | B | B - A, 95 % interval |" in result.stdout
    written = json.loads(out.read_text())
    assert written["n_common"] == 180
    assert f"Only B right: {written['n_only_b_right']}." in result.stdout


def test_no_file_of_an_evaluation_is_replaced(app: typer.Typer, runs: tuple[str, str]) -> None:
    verdicts = Path(runs[1]) / "verdicts.jsonl"
    before = verdicts.read_bytes()
    with pytest.raises(CustosError, match="that is a file of an evaluation; name a new file"):
        CliRunner().invoke(app, [*runs, "--json", str(verdicts)], catch_exceptions=False)
    assert verdicts.read_bytes() == before
    beside = verdicts.with_name("comparison.json")
    assert CliRunner().invoke(app, [*runs, "--json", str(beside)]).exit_code == 0


def test_refuses_too_few_common_items(app: typer.Typer, runs: tuple[str, str]) -> None:
    with pytest.raises(CustosError, match="share 180 ids, fewer than 500"):
        CliRunner().invoke(app, [*runs, "--min-common", "500"], catch_exceptions=False)


def test_help_shows_an_example(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert "custos compare" in result.stdout
    assert "--json" in result.stdout
