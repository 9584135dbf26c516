"""Mistakes on one line, values that no command takes, where a command writes, what it prints."""

import errno
import io
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
import torch
from typer.main import get_command
from typer.testing import CliRunner

from cli import grade
from cli.main import app
from cli.shared.outputs import Verb, claim, own, spare
from cli.shared.screen import in_columns, job_bar, show_problems, show_skipped
from clients.chat import JobProgress, Prices, Usage
from judging.errors import CustosError
from judging.judge import Judge
from tests.cli.test_main import EVERY_VERB
from train.launch.front import known_error

MAY_BE_EMPTY = {("custos doctor", "--key")}
"""No key at all."""
SERVE = ("serve", "--judge", "x=run", "--port", "0")


def refusal(*words: str) -> str:
    """The one line that a command prints which is refused."""
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 2, result.exception
    [line] = result.stderr.splitlines()
    return line


def fails_to_load(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(source: str) -> Judge:
        raise error

    monkeypatch.setattr(Judge, "load", fail)


def fails_to_read(monkeypatch: pytest.MonkeyPatch, folder: Path, error: Exception) -> list[str]:
    """A command whose rows cannot be read."""

    def read(*_: object) -> None:
        raise error

    monkeypatch.setattr(grade, "read_requests", read)
    (folder / "a.jsonl").write_text('{"question": "a"}\n', encoding="utf-8")
    return ["grade", "--in", str(folder / "a.jsonl"), "--out", str(folder / "b.jsonl")]


def prep(out: Path) -> str:
    command = ["prep", "synthetic", "--worlds", "open", "--rows", "40", "--out", str(out)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code in (0, 2)
    return result.stderr if result.exit_code else ""


@pytest.mark.usefixtures("forking_python")
def test_a_users_mistake_is_one_line(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("custos")), "grade", "--judge", "embedded"]
    command += ["--in", str(tmp_path / "none.jsonl"), "--out", str(tmp_path / "out.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {tmp_path / 'none.jsonl'}: no such file\n"
    assert list(tmp_path.iterdir()) == []
    line = refusal("prep", "evouna", "--source", "none", "--out", str(tmp_path))
    assert line.startswith("error: none: ")


def test_a_mistake_cannot_command_the_terminal(tmp_path: Path) -> None:
    """Rows, replies and names of files come from anybody."""
    path = tmp_path / "a\x1b[2J\u202eb.jsonl"
    line = refusal("eval", "j", "--data", str(path), "--out", str(tmp_path / "out"))
    assert line == f"error: {tmp_path}/a\\x1b[2J\\u202eb.jsonl: no such file"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (CustosError("'run'\n  is damaged"), "'run' is damaged"),
        (PermissionError(13, "Permission denied", "/a/b"), "/a/b: Permission denied"),
        (OSError("the disk\nis full"), "the disk is full"),
    ],
)
def test_an_error_that_is_expected_is_one_line(
    monkeypatch: pytest.MonkeyPatch, fault: Exception, said: str
) -> None:
    fails_to_load(monkeypatch, fault)
    assert refusal(*SERVE) == f"error: {said}"


def test_a_full_disk_has_a_way_out_also_where_the_output_goes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    full_disk = (errno.ENOSPC, os.strerror(errno.ENOSPC))
    fails_to_load(monkeypatch, OSError(*full_disk, "FILE"))
    named = refusal(*SERVE)
    assert named.startswith(f"error: FILE: {full_disk[1]}; make room")
    with Path("/dev/full").open("wb", buffering=0) as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(cast(Any, full), write_through=True))
        status = get_command(app).main(["tasks"], prog_name="custos", standalone_mode=False)
    assert (status, capsys.readouterr().err) == (2, f"{named.replace('FILE', 'standard output')}\n")
    fails_to_load(monkeypatch, OSError(*full_disk))  # not of the output, which takes more
    assert refusal(*SERVE) == named.replace("FILE: ", "")


@pytest.mark.parametrize("error", [BrokenPipeError(errno.EPIPE, "Broken"), RuntimeError("a bug")])
def test_a_reader_that_has_enough_and_faults_of_ours_are_no_mistakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    fails_to_load(monkeypatch, error)
    for command in (SERVE, fails_to_read(monkeypatch, tmp_path, error)):
        result = CliRunner().invoke(app, list(command))
        assert (result.exit_code, result.stderr) == (1, "")
        assert isinstance(error, OSError) or result.exception is error


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        pa.ArrowMemoryError("realloc of size 4096000000 failed"),
        RuntimeError("unable to mmap 5 bytes from file <x>: Cannot allocate memory (12)"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 5 bytes."),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
    ],
)
def test_too_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    line = refusal(*fails_to_read(monkeypatch, tmp_path, error))
    assert line.startswith("error: out of memory")
    assert str(known_error(error)).startswith("out of memory")


def test_no_value_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse an empty path, which would be the current folder."""
    monkeypatch.chdir(tmp_path)
    for verb, command in EVERY_VERB.items():
        arguments: list[str] = []
        for parameter in command.params:
            if parameter.param_type_name == "argument":
                call, name = [*arguments, ""], str(parameter.metavar or parameter.name.upper())
                arguments.append("x")
            else:
                call, name = [parameter.opts[0], ""], parameter.opts[0]
            if not getattr(parameter, "is_flag", False) and (verb, name) not in MAY_BE_EMPTY:
                line = refusal(*verb.split()[1:], *call)
                assert line == f"error: {name} '': is empty; give a value", verb
    assert refusal("grade", "--judge", "a", "--judge=").startswith("error: --judge '': is empty")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_every_number_is_finite(
    number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    checked = 0
    for verb, command in EVERY_VERB.items():
        monkeypatch.setattr(command, "callback", lambda **_: pytest.fail("the number was taken"))
        for option in command.params:
            name = option.opts[0]
            context = command.make_context(verb, [name, number], resilient_parsing=True)
            value = context.params.get(option.name)
            if isinstance(value, float) and not math.isfinite(value):
                with pytest.raises(CustosError, match=f"^{name} '{number}': expected a finite num"):
                    command.invoke(context)
                checked += 1
    assert checked > 10


@pytest.mark.parametrize(
    "option", [("--data", "a\udcff.jsonl"), ("--data", "x", "--map", "\udcff=gold")]
)
def test_names_that_are_not_utf_8_are_said_at_once(tmp_path: Path, option: tuple[str, ...]) -> None:
    """Refuse a file of an old system: the report that names it failed, after the grading."""
    line = refusal("eval", "j", *option, "--out", str(tmp_path / "out"))
    assert line.startswith("error: '") and "' is not UTF-8 text; rename" in line


def test_folders_are_made_inside_the_current_one_and_elsewhere_must_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert prep(tmp_path / "data") == ""
    out = tmp_path / "my projcets/here/data"
    assert f"there is no folder {tmp_path / 'my projcets'}; " in prep(out)
    assert f"mkdir -p '{out.parent}'\n" in prep(out)
    assert not (tmp_path / "my projcets").exists()
    monkeypatch.chdir(tmp_path)
    assert prep(Path("runs/demo/data")) == ""
    assert (tmp_path / "runs/demo/data/train.jsonl").exists()


def test_a_file_in_the_place_of_a_folder_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refuse the output at the start; the finished work was lost at the end."""
    monkeypatch.chdir(tmp_path)
    Path("mine").write_text("text")
    inside = f"error: --out 'mine/data': {tmp_path / 'mine'} is no folder that you may write to; "
    assert prep(Path("mine/data")).startswith(inside)
    for command in ("prep synthetic --rows 4", "eval j --data x", "attack j --data x"):
        line = refusal(*command.split(), "--out", "mine")
        assert line == "error: --out 'mine': is a file; name a folder"
    assert Path("mine").read_text() == "text"


def test_a_folder_that_may_not_be_written_to_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ask the system (root may write anywhere); a folder in it may be one to write to."""
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) == mounted)
    assert f"{tmp_path} is no folder that you may write to" in prep(tmp_path / "data")
    assert prep(mounted) == ""


@pytest.mark.parametrize(
    ("place", "message"), [("mine", "is a folder"), (os.devnull, "is no regular file")]
)
def test_a_folder_in_the_place_of_a_file_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, message: str
) -> None:
    """Refuse the output before anything is read; the finished work was lost at the end."""
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    for verb, command in EVERY_VERB.items():
        for option in command.params:
            text = option.help or ""
            if not text.startswith("Write ") or option.is_flag:
                continue
            assert option.callback is not None and isinstance(command, Verb), (verb, option.name)
            if " folder" not in text:
                line = refusal(*verb.split()[1:], option.opts[0], place)
                assert line == f"error: {option.opts[0]} '{place}': {message}; name a file"


@pytest.mark.parametrize(
    "option", [("--out", "LOOP"), ("--out", "LOOP/b.jsonl"), ("--csv", "LOOP")]
)
def test_an_output_link_that_loops(tmp_path: Path, option: tuple[str, str]) -> None:
    loop, source = tmp_path / "loop.csv", tmp_path / "a.jsonl"
    loop.symlink_to(loop)
    source.write_text('{"question": "a"}\n', encoding="utf-8")
    name, value = option
    options = {"--out": str(tmp_path / "b.jsonl"), name: value.replace("LOOP", str(loop))}
    words = [word for pair in options.items() for word in pair]
    assert str(loop) in refusal("grade", "--in", str(source), *words)
    assert loop.is_symlink()


@pytest.mark.parametrize(
    "command",
    [
        "table truthfulvqa --graded a.json --json a.json",
        "table truthfulvqa m=a.json --markdown link.json",
        "table truthfulvqa m=link.json n=b.json --html ./a.json",
        "table truthfulvqa m=b.json --json new.json --html new.json",
        "compare truthfulvqa a.json b.json --json b.json",
        "lal --results a.json --json a.json",
    ],
)
def test_no_command_writes_over_a_file_that_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.json", "b.json"):
        Path(name).write_text("[]")
    Path("link.json").symlink_to("a.json")
    line = refusal("bench", *command.split())
    assert line.endswith("that is another file of this command; name a new file")
    assert Path("a.json").read_text() == Path("b.json").read_text() == "[]"
    assert not Path("new.json").exists()


@pytest.mark.parametrize(
    "command",
    [
        "bench table truthfulvqa --graded a.json",
        "bench table truthfulvqa m=a.json n=b.json",
        "bench compare truthfulvqa a.json b.json",
        "bench lal --results a.json",
        "prep construct statistics --in a.json",
    ],
)
def test_figures_replace_no_file_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.json", "b.json"):
        Path(name).write_text("[]")
    for mine in ('{"question": "a"}\n{"question": "b"}\n', "[1]", "[" * 100_000):
        Path("mine.json").write_text(mine)
        line = refusal(*command.split(), "--json", "mine.json")
        assert "--json 'mine.json': exists and is no earlier output" in line
        assert Path("mine.json").read_text() == mine


def test_only_what_the_same_command_wrote_is_claimed(tmp_path: Path) -> None:
    """Rows by their keys, a folder by its report; what is empty, and what is new, always."""
    rows, folder = tmp_path / "rows.jsonl", tmp_path / "out"
    folder.mkdir()
    for text, is_own in (("", True), ('{"a": 1, "b": 2}\n', True), ('{"a": 1}\n', False)):
        rows.write_text(text)
        (folder / "report.json").write_text(text)
        (folder / "notes.md").write_text("mine")
        for out, names, report in ((rows, (), None), (folder, ("notes.md",), "report.json")):
            if is_own and (text or not names):
                claim(out, own(("a", "b"), report), names=names)
            else:
                with pytest.raises(CustosError, match=r"\(notes.md\)" if names else "rows.jsonl"):
                    claim(out, own(("a", "b"), report), names=names)
    claim(tmp_path / "new.jsonl")
    with pytest.raises(CustosError, match="exists already"):
        claim(rows)
    with pytest.raises(CustosError, match="notes.md lies there"):
        spare([folder / "notes.md"], folder, ["notes.md"])


def test_cells_stand_below_each_other_without_trailing_blanks() -> None:
    rows = [("name", "n"), ("a", "12"), ("longest", "")]
    assert in_columns(rows) == ["name     n", "a        12", "longest"]


def test_rows_with_one_message_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    problems = dict.fromkeys(range(1, 13), "wrong task") | {13: "no picture"}
    problems |= dict.fromkeys(range(20, 40, 2), "empty")
    show_problems(Path("a.csv"), problems)
    assert capsys.readouterr().err.splitlines() == [
        "a.csv rows 1-12 (12 rows): wrong task",
        "a.csv row 13: no picture",
        "a.csv rows 20, 22, 24, 26, 28, ... (10 rows): empty",
    ]


def test_only_the_first_messages_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    show_problems(Path("a.csv"), {row: f"message {row % 12}" for row in range(24)})
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 11
    assert lines[-1] == "and 4 more bad rows"


def test_messages_cannot_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show_problems(Path("a.csv"), {1: "no field 'a\x1b[2J\nrow 2'"})
    show_skipped(["row 3 \x9b2J"])
    assert capsys.readouterr().err.splitlines() == [
        r"a.csv row 1: no field 'a\x1b[2J\nrow 2'",
        r"skipped: row 3 \x9b2J",
    ]


def test_a_job_shows_tokens_cost_and_failures(capsys: pytest.CaptureFixture[str]) -> None:
    with job_bar(Prices(prompt=1.0, completion=10.0)) as show:
        show(JobProgress(10, 4, 0, Usage()))
        usage = Usage(prompt_tokens=1000, completion_tokens=100)
        show(JobProgress(10, 10, 2, usage))
    shown = capsys.readouterr()
    assert "asking" in shown.err
    assert "10/10 1,100 tokens, cost 0.0020 2 failed" in " ".join(shown.err.split())
    assert shown.out == ""
