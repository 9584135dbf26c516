import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from cli.main import app

VERBS = ("prep", "bench", "eval", "compare", "grade", "serve", "judges", "recipe", "backbone")
OUTPUTS = ("json_out", "markdown_out", "html_out")
"""Files that are written only if they are named."""
HEAVY = ("torch", "transformers", "peft", "datasets", "matplotlib", "sklearn", "scipy", "fastapi")


def verbs(command: Any, path: str = "custos") -> Iterator[tuple[str, Any]]:
    """Yield every verb with its name in full."""
    for name, child in getattr(command, "commands", {}).items():
        if child.hidden:
            continue
        if hasattr(child, "commands"):
            yield from verbs(child, f"{path} {name}")
        else:
            yield f"{path} {name}", child


EVERY_VERB = dict(verbs(get_command(app)))
EVERY_GROUP = {
    f"custos {name}": group
    for name, group in get_command(app).commands.items()  # type: ignore[attr-defined]
    if hasattr(group, "commands")
}


@pytest.mark.parametrize("verb", EVERY_VERB)
def test_every_verb_explains_itself_with_an_example(verb: str) -> None:
    summary, *_, example = EVERY_VERB[verb].help.strip().split("\n\n")
    assert summary[0].isupper() and summary.endswith(".")
    assert example.startswith(f"Example: {verb}")


@pytest.mark.parametrize("verb", EVERY_VERB)
def test_every_option_says_what_it_does_and_its_default(verb: str) -> None:
    for option in EVERY_VERB[verb].params:
        if option.name == "help":
            continue
        assert option.help and option.help[0].isalpha(), option.name
        has_default = option.default is not None or option.required or option.name == "key"
        reason = f"{option.name} does not say what it stands for when it is left out"
        assert has_default or "Default:" in option.help or option.name in OUTPUTS, reason


def test_the_options_of_an_example_exist() -> None:
    for verb, command in EVERY_VERB.items():
        words = " ".join(command.help.split("Example: ")[1].split()).removeprefix(verb).split()
        names = {name for option in command.params for name in option.opts}
        assert {word for word in words if word.startswith("--")} <= names, verb


@pytest.mark.parametrize("verb", EVERY_VERB)
def test_a_seed_below_0_is_refused_at_once(verb: str) -> None:
    """Random numbers of NumPy take none, and those of Python take -1 for 1."""
    if any(option.name == "seed" for option in EVERY_VERB[verb].params):
        result = CliRunner().invoke(app, [*verb.split()[1:], "--seed", "-1"])
        assert result.exit_code == 2
        message = " ".join(result.stderr.replace("│", " ").split())
        assert "'--seed'" in message and "greater than or equal to 0" in message


def test_help_lists_the_verbs_and_no_arguments_show_it() -> None:
    shown = CliRunner().invoke(app, ["--help"])
    assert shown.exit_code == 0
    assert all(f"\n  {verb} " in shown.stdout for verb in VERBS)
    assert "grade" in CliRunner().invoke(app, []).output


@pytest.mark.parametrize("verb", ["", *EVERY_GROUP, *EVERY_VERB])
def test_help_cuts_nothing_on_80_columns(verb: str) -> None:
    shown = CliRunner().invoke(app, [*verb.split()[1:], "--help"], env={"COLUMNS": "80"}).stdout
    letters = "".join(shown.split())  # lines end after spaces and hyphens
    command = EVERY_VERB.get(verb) or EVERY_GROUP.get(verb, get_command(app))
    children = getattr(command, "commands", {}).values()
    texts = [c.help.partition("\n\n")[0].rstrip(".") for c in children if not c.hidden]
    texts += [option.help or "" for option in command.params]
    assert [text for text in texts if "".join(text.split()) not in letters] == []


def test_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, "custos 0.1.0\n")


def test_help_loads_nothing_heavy() -> None:
    code = f"import sys, cli.main; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_ctrl_c_ends_quietly(tmp_path: Path) -> None:
    rows, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows.write_text('{"question": "q", "references": ["a"], "response": "a"}\n')
    code = (
        "import sys, time\n"
        "from judging.judge import Judge\n"
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


@pytest.mark.parametrize(
    ("command", "suggestion"),
    [
        ("gradee", "grade"),
        ("task", "tasks"),
        ("prep evona", "evouna"),
        ("bench tabel", "table"),
        ("serve --prot 80", "--port"),
        ("grade --judeg x", "--judge"),
        ("tasks --jsn", "--json"),
    ],
)
def test_what_is_misspelt_suggests_the_nearest(command: str, suggestion: str) -> None:
    result = CliRunner().invoke(app, command.split())
    assert result.exit_code != 0
    assert suggestion in result.stderr.partition("Error")[2]
