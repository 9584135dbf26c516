"""Reference of the command line, from what ``--help`` of every command shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from typer.core import TyperGroup
from typer.main import get_command

from cli.main import app

INTRODUCTION = """\
# Commands

This page is made from the text that `--help` prints, so it cannot be out of date. An option may be
left out unless its default is *required*. A command that did its work ends with exit status 0, and
with 1 if rows failed or a check was not passed. If something that you gave it cannot be used, it
says so on one line of standard error and ends with status 2.
"""

RANGE = re.compile(r"\bx[<>]=|<=x\b")
"""The limits of a number, as the help prints them."""

Command = Any
"""A command of Typer. It carries its own copy of click, whose names are not public."""


def commands() -> Iterator[tuple[str, Command]]:
    """Yield the full name of every command and group, with the command, in the help's order."""
    yield from _walk("custos", get_command(app))


def commands_page() -> str:
    """Return the Markdown of the page."""
    parts = [INTRODUCTION]
    for name, command in commands():
        parts += [f"{'#' * min(4, 1 + len(name.split()))} {name}\n", *_description(name, command)]
    return "\n".join(parts)


def option_names(command: Command) -> set[str]:
    """Return every spelling of every option of a command, ``--help`` included."""
    return {"--help"} | {
        spelling
        for parameter in command.params
        if parameter.param_type_name == "option"
        for spelling in (*parameter.opts, *parameter.secondary_opts)
    }


def _walk(name: str, command: Command) -> Iterator[tuple[str, Command]]:
    if command.hidden:
        return
    yield name, command
    if isinstance(command, TyperGroup):
        for verb, child in command.commands.items():
            yield from _walk(f"{name} {verb}", child)


def _description(name: str, command: Command) -> Iterator[str]:
    text = command.help or ""
    if command.epilog:
        text += f"\n\n{command.epilog}"
    for paragraph in text.split("\n\n"):
        joined = " ".join(paragraph.split())
        example = re.fullmatch(r"Example: (.*)", joined)
        yield f"```sh\n{example[1]}\n```\n" if example else f"{_plain(joined)}\n"
    context = command.make_context(name, [], resilient_parsing=True)
    records = [parameter.get_help_record(context) for parameter in command.params]
    rows = [_row(*record) for record in records if record]
    if rows:
        yield "\n".join(("| option | meaning | default |", "|---|---|---|", *rows, ""))


def _row(heading: str, help_text: str) -> str:
    """Return a table row of what ``--help`` prints to the left and to the right."""
    meaning, _, notes = help_text.partition("  [")
    default, limits = "", ""
    for note in notes.removesuffix("]").split("; "):
        if RANGE.search(note):
            limits = f" ({note.replace('<=', ' ≤ ').replace('>=', ' ≥ ')})"
        elif note:
            default = note.removeprefix("default: ")
    spelling = heading.replace(" range>", ">")
    return f"| `{spelling}` | {_plain(meaning + limits)} | {_plain(default)} |"


def _plain(text: str) -> str:
    """Escape what Markdown would read as markup; code stays code."""
    return text.replace("<", "&lt;").replace("|", "\\|").replace("*", "\\*")
