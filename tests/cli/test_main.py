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


def test_every_verb_and_option_explains_itself_with_an_example_that_works() -> None:
    for verb, command in EVERY_VERB.items():
        summary, *_, example = command.help.strip().split("\n\n")
        assert summary[0].isupper() and summary.endswith("."), verb
        assert example.startswith(f"Example: {verb}"), verb
        words = " ".join(command.help.split("Example: ")[1].split()).removeprefix(verb).split()
        names = {name for option in command.params for name in option.opts}
        assert {word for word in words if word.startswith("--")} <= names, verb
        for option in command.params:
            if option.name == "help":
                continue
            assert option.help and option.help[0].isalpha(), (verb, option.name)
            has_default = option.default is not None or option.required or option.name == "key"
            is_explained = "Default:" in option.help or option.name in OUTPUTS
            assert has_default or is_explained, (verb, option.name)


def test_a_seed_below_0_is_refused_at_once() -> None:
    """Random numbers of NumPy take none, and those of Python take -1 for 1."""
    seeded = [verb for verb, c in EVERY_VERB.items() if any(o.name == "seed" for o in c.params)]
    assert len(seeded) > 10
    for verb in seeded:
        result = CliRunner().invoke(app, [*verb.split()[1:], "--seed", "-1"])
        message = " ".join(result.stderr.replace("│", " ").split())
        assert result.exit_code == 2 and "'--seed'" in message, verb
        assert "greater than or equal to 0" in message, verb


def test_help_lists_the_verbs_and_no_arguments_show_it() -> None:
    shown = CliRunner().invoke(app, ["--help"])
    assert shown.exit_code == 0
    assert all(f"\n  {verb} " in shown.stdout for verb in VERBS)
    assert "grade" in CliRunner().invoke(app, []).output


def test_help_cuts_nothing_on_80_columns() -> None:
    for verb in ("", *EVERY_GROUP, *EVERY_VERB):
        shown = CliRunner().invoke(app, [*verb.split()[1:], "--help"], env={"COLUMNS": "80"}).stdout
        letters = "".join(shown.split())  # lines end after spaces and hyphens
        command = EVERY_VERB.get(verb) or EVERY_GROUP.get(verb, get_command(app))
        children = getattr(command, "commands", {}).values()
        texts = [c.help.partition("\n\n")[0].rstrip(".") for c in children if not c.hidden]
        texts += [option.help or "" for option in command.params]
        assert [text for text in texts if "".join(text.split()) not in letters] == [], verb


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
