"""The former name of the program that loads a service."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from cli.service import load


def test_the_program_gets_the_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").touch()
    options = ["--in", "rows.jsonl", "--json", "load.json", "--rows-per-call", "3"]
    assert CliRunner().invoke(app, ["load", *options]).exit_code == 2
    assert capfd.readouterr().err == "error: rows.jsonl: holds 0 requests, fewer than a call\n"


def test_it_is_in_no_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "CHECKOUT", tmp_path)
    assert CliRunner().invoke(app, ["load"]).exit_code == 2
