from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli import judges
from cli.main import app
from judging.card import shipped_judges


def test_lists_every_shipped_judge_with_its_figures_and_limits() -> None:
    result = CliRunner().invoke(app, ["judges"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    for name in shipped_judges():
        assert name in result.stdout
    assert "accuracy" in result.stdout
    assert "outside what it has seen" in result.stdout
    assert "custos prep" not in result.stdout


def test_a_judge_without_a_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "judge.json").write_text("{}")
    monkeypatch.setattr("judging.card.SHIPPED", tmp_path)
    monkeypatch.setattr(judges, "SHIPPED", tmp_path)
    result = CliRunner().invoke(app, ["judges"])
    assert result.exit_code == 2
    assert "the judge's card is missing" in result.stderr
