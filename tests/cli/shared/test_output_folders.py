"""Values that no command takes, and which folders a command makes for its output."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from cli.shared.outputs import Verb
from judging.errors import CustosError
from tests.cli.test_main import EVERY_VERB

MAY_BE_EMPTY = {("custos doctor", "--key")}
"""No key at all."""


def prep(out: Path) -> str:
    command = ["prep", "synthetic", "--worlds", "open", "--rows", "40", "--out", str(out)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code in (0, 2)
    return result.stderr if result.exit_code else ""


@pytest.mark.parametrize("verb", EVERY_VERB)
def test_no_value_is_empty(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse an empty path, which would be the current folder."""
    monkeypatch.chdir(tmp_path)
    arguments: list[str] = []
    for parameter in EVERY_VERB[verb].params:
        if parameter.param_type_name == "argument":
            call, name = [*arguments, ""], ""
            arguments.append("x")
        else:
            call, name = [parameter.opts[0], ""], parameter.opts[0]
        if getattr(parameter, "is_flag", False) or (verb, name) in MAY_BE_EMPTY:
            continue
        done = CliRunner().invoke(app, [*verb.split()[1:], *call])
        assert done.exit_code == 2
        assert done.stderr.startswith(f"error: {name}")
        assert done.stderr.endswith(" '': is empty; give a value\n")
    assert not list(tmp_path.iterdir())


def test_an_empty_value_is_named_by_its_option() -> None:
    for call, name in (
        (["grade", "--judge", "a", "--judge="], "--judge"),
        (["train", "", "--out", "a"], "RECIPE|TASK"),
        (["train", "a", "optim.epochs=1", ""], "KEY=VALUE"),
        (["compare", "a", ""], "B"),
    ):
        assert CliRunner().invoke(app, call).stderr == f"error: {name} '': is empty; give a value\n"


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
            if isinstance(context.params.get(option.name), float) and not math.isfinite(
                context.params[option.name]
            ):
                with pytest.raises(CustosError, match=f"^{name} '{number}': expected a finite num"):
                    command.invoke(context)
                checked += 1
    assert checked > 10


def test_folders_are_made_inside_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert prep(Path("runs/demo/data")) == ""
    assert (tmp_path / "runs/demo/data/train.jsonl").exists()


def test_elsewhere_the_folder_around_the_output_must_exist(tmp_path: Path) -> None:
    assert prep(tmp_path / "data") == ""
    out = tmp_path / "my projcets/here/data"
    assert prep(out) == (
        f"error: --out '{out}': there is no folder {tmp_path / 'my projcets'}; correct the path, "
        f"or make it with: mkdir -p '{out.parent}'\n"
    )
    assert not (tmp_path / "my projcets").exists()


def test_a_file_in_the_place_of_a_folder_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refuse the output at the start; the finished work was lost at the end."""
    monkeypatch.chdir(tmp_path)
    Path("mine").write_text("text")
    assert prep(Path("mine")) == "error: --out 'mine': is a file; name a folder\n"
    assert prep(Path("mine/data")) == (
        f"error: --out 'mine/data': {tmp_path / 'mine'} is no folder that you may write to; "
        "name another place\n"
    )
    for command in (("eval", "j", "--data", "x"), ("attack", "j", "--data", "x")):
        done = CliRunner().invoke(app, [*command, "--out", "mine"])
        assert done.stderr == "error: --out 'mine': is a file; name a folder\n"
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


@pytest.mark.parametrize("verb", EVERY_VERB)
def test_the_rule_holds_for_every_output(verb: str) -> None:
    for option in EVERY_VERB[verb].params:
        if (option.help or "").startswith("Write ") and not option.is_flag:
            assert option.callback is not None, option.name
            assert isinstance(EVERY_VERB[verb], Verb)


@pytest.mark.parametrize("verb", EVERY_VERB)
@pytest.mark.parametrize(
    ("place", "message"), [("mine", "is a folder"), (os.devnull, "is no regular file")]
)
def test_a_folder_in_the_place_of_a_file_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, place: str, message: str
) -> None:
    """Refuse the output before anything is read; the finished work was lost at the end."""
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    for option in EVERY_VERB[verb].params:
        text = option.help or ""
        if text.startswith("Write ") and " folder" not in text and not option.is_flag:
            name = option.opts[0]
            done = CliRunner().invoke(app, [*verb.split()[1:], name, place])
            assert done.exit_code == 2
            assert done.stderr == f"error: {name} '{place}': {message}; name a file\n"


@pytest.mark.parametrize(
    "command",
    [
        ("table", "truthfulvqa", "--graded", "a.json", "--json", "a.json"),
        ("table", "truthfulvqa", "m=a.json", "--markdown", "link.json"),
        ("table", "truthfulvqa", "m=link.json", "n=b.json", "--html", "./a.json"),
        ("table", "truthfulvqa", "m=b.json", "--json", "new.json", "--html", "new.json"),
        ("compare", "truthfulvqa", "a.json", "b.json", "--json", "b.json"),
        ("lal", "--results", "a.json", "--json", "a.json"),
    ],
)
def test_no_command_writes_over_a_file_that_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.json", "b.json"):
        Path(name).write_text("[]")
    Path("link.json").symlink_to("a.json")
    done = CliRunner().invoke(app, ["bench", *command])
    assert done.exit_code == 2
    assert done.stderr.endswith("that is another file of this command; name a new file\n")
    assert Path("a.json").read_text() == Path("b.json").read_text() == "[]"
    assert not Path("new.json").exists()


@pytest.mark.parametrize(
    "option", [("--data", "a\udcff.jsonl"), ("--data", "x", "--map", "\udcff=gold")]
)
def test_names_that_are_not_utf_8_are_said_at_once(tmp_path: Path, option: tuple[str, ...]) -> None:
    """Refuse a file of an old system: the report that names it failed, after the grading."""
    done = CliRunner().invoke(app, ["eval", "j", *option, "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert done.stderr.startswith("error: '") and "' is not UTF-8 text; rename" in done.stderr
