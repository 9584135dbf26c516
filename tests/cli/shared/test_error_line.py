"""The user's mistakes on one line."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from judging.errors import CustosError
from judging.judge import Judge


def test_a_users_mistake_is_one_line(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("custos")), "grade", "--judge", "embedded"]
    command += ["--in", str(tmp_path / "none.jsonl"), "--out", str(tmp_path / "out.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"error: {tmp_path / 'none.jsonl'}: no such file\n"
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_mistake_in_a_sub_command_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = CliRunner().invoke(app, ["prep", "evouna", "--source", "none", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: none: ")

    def fail(source: str) -> Judge:
        raise CustosError(f"'{source}'\n  is damaged")

    monkeypatch.setattr(Judge, "load", fail)
    result = CliRunner().invoke(app, ["serve", "--judge", "x=run", "--port", "0"])
    assert (result.exit_code, result.stderr) == (2, "error: 'run' is damaged\n")


def test_a_mistake_cannot_command_the_terminal(tmp_path: Path) -> None:
    """Rows, replies and names of files come from anybody."""
    path = tmp_path / "a\x1b[2J\u202eb.jsonl"
    arguments = ["eval", "j", "--data", str(path), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, arguments)
    assert result.stderr == f"error: {tmp_path}/a\\x1b[2J\\u202eb.jsonl: no such file\n"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (PermissionError(13, "Permission denied", "/a/b"), "/a/b: Permission denied"),
        (OSError("the disk\nis full"), "the disk is full"),
    ],
    ids=["with a file", "without"],
)
def test_what_the_system_refuses_is_one_line(
    monkeypatch: pytest.MonkeyPatch, fault: OSError, said: str
) -> None:
    def fail(source: str) -> Judge:
        raise fault

    monkeypatch.setattr(Judge, "load", fail)
    result = CliRunner().invoke(app, ["serve", "--judge", "x=run", "--port", "0"])
    assert (result.exit_code, result.stderr) == (2, f"error: {said}\n")


def test_a_reader_that_has_enough_is_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: str) -> Judge:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(Judge, "load", fail)
    result = CliRunner().invoke(app, ["serve", "--judge", "x=run", "--port", "0"])
    assert (result.exit_code, result.stderr) == (1, "")


def test_other_faults_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: str) -> Judge:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Judge, "load", fail)
    result = CliRunner().invoke(app, ["serve", "--judge", "x=run", "--port", "0"])
    assert result.exit_code == 1
    assert isinstance(result.exception, RuntimeError)
