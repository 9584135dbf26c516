import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from judging.judge.card import SHIPPED, shipped_judges


def test_lists_every_shipped_judge_with_its_figures() -> None:
    result = CliRunner().invoke(app, ["judges"])
    assert result.exit_code == 0
    heading, *rows = result.stdout.splitlines()
    assert "accuracy" in heading and "best baseline" in heading
    by_name = {row.split()[0]: row for row in rows if row}
    assert set(shipped_judges()) <= set(by_name)
    assert "hieval-qs" in by_name["embedded-qs"]
    assert "0.935 [0.902, 0.957]" in by_name["embedded-qs"]
    assert "logistic_overlap 0.879" in by_name["embedded-qs"]
    assert "need no training" not in result.stdout, "that regression is fitted on labels"


@pytest.mark.parametrize("name", shipped_judges())
def test_shows_the_figures_and_limits_of_one(name: str) -> None:
    result = CliRunner().invoke(app, ["judges", name])
    assert result.exit_code == 0
    assert result.stdout.startswith(f"# {name}\n")
    assert "accuracy" in result.stdout
    assert "outside what it has seen" in result.stdout
    assert "custos prep" not in result.stdout


def test_an_unknown_judge() -> None:
    result = CliRunner().invoke(app, ["judges", "embedded-xy"])
    assert result.exit_code == 2
    assert "'embedded-xy': no shipped judge; there are embedded-benchmarks" in result.stderr


def test_a_judge_without_a_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "judge.json").write_text("{}")
    monkeypatch.setattr("judging.judge.card.SHIPPED", tmp_path)
    monkeypatch.setattr("cli.judges.list.SHIPPED", tmp_path)
    for arguments, file in ((["judges"], "report.json"), (["judges", "bare"], "README.md")):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 2
        assert f"{file}: this file of the judge is missing" in result.stderr


def test_without_shipped_judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judging.judge.card.SHIPPED", tmp_path)
    result = CliRunner().invoke(app, ["judges"])
    assert result.exit_code == 2
    assert "no judge came with this installation" in result.stderr


@pytest.mark.parametrize("name", shipped_judges())
def test_report_and_card_of_a_shipped_judge_say_the_same(name: str) -> None:
    report, card = (
        json.loads((SHIPPED / name / file).read_text(encoding="utf-8"))
        for file in ("report.json", "reliability.json")
    )
    for data in card["data"].values():
        if data["dataset_sha256"] == report["dataset_sha256"]:
            assert data["metrics"] == report["metrics"]
            both = data["baselines"].keys() & report["baselines"].keys()
            assert {each: data["baselines"][each]["accuracy"] for each in both} == {
                each: report["baselines"][each]["accuracy"] for each in both
            }
