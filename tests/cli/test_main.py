import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from judging import CustosError, Judge

VERBS = ("prep", "bench", "eval", "compare", "grade", "serve", "judges", "recipe", "backbone")
HEAVY = ("torch", "transformers", "peft", "datasets", "matplotlib", "sklearn", "fastapi")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_shows_an_example(verb: str) -> None:
    result = CliRunner().invoke(app, [verb, "--help"])
    assert result.exit_code == 0
    assert f"custos {verb}" in result.stdout.partition("Example:")[2]


def test_help_lists_the_verbs_and_no_arguments_show_it() -> None:
    shown = CliRunner().invoke(app, ["--help"])
    assert shown.exit_code == 0
    assert all(f"│ {verb} " in shown.stdout for verb in VERBS)
    assert "grade" in CliRunner().invoke(app, []).output


def test_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, "custos 0.1.0\n")


def test_help_loads_nothing_heavy() -> None:
    code = f"import sys, cli.main; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


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


def test_ctrl_c_ends_quietly(tmp_path: Path) -> None:
    rows, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows.write_text('{"question": "q", "references": ["a"], "response": "a"}\n')
    code = (
        "import sys, time\n"
        "from judging import Judge\n"
        "def load(source):\n"
        "    print('loading', flush=True)\n"
        "    time.sleep(60)\n"
        "Judge.load = load\n"
        "from cli.main import app\n"
        f"app(['grade', '--judge', 'run', '--in', {str(rows)!r}, '--out', {str(out)!r}])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "loading\n"
    time.sleep(0.1)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (130, "")


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
