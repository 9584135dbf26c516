"""The backbone from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
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
