"""The backbone from the command line."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from cli.main import app


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
