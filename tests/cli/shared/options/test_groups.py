from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from cli.shared.options import with_groups


@dataclass(frozen=True)
class Colours:
    """Two colours."""

    red: Annotated[int, typer.Option(help="Red.")]
    green: Annotated[int, typer.Option("--verdant", min=0, help="Green.")] = 3


app = typer.Typer()


@app.command()
@with_groups
def paint(
    name: Annotated[str, typer.Argument()],
    is_wet: Annotated[bool, typer.Option("--wet")] = False,
    *,
    colours: Colours,
) -> None:
    """Paint."""
    typer.echo(f"{name} {is_wet} {colours.red} {colours.green}")


@pytest.mark.parametrize(
    ("arguments", "painted"),
    [
        (["wall", "--red", "2"], "wall False 2 3"),
        (["wall", "--verdant", "0", "--red", "2", "--wet"], "wall True 2 0"),
    ],
)
def test_fields_of_a_group_are_options(arguments: list[str], painted: str) -> None:
    assert CliRunner().invoke(app, arguments).stdout == f"{painted}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["wall"], "Missing option '--red'"),
        (["wall", "--red", "1", "--verdant", "-1"], "--verdant"),
    ],
)
def test_fields_are_checked_as_options_are(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_group_itself_is_no_option() -> None:
    assert "colours" not in CliRunner().invoke(app, ["--help"]).stdout
