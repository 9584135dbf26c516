"""The ``custos`` command."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cli import bench, prep, prep_charthal, recipe
from cli.backbone import backbone
from cli.compare import compare
from cli.doctor import doctor
from cli.eval import evaluate
from cli.grade import grade
from cli.judges import judges
from cli.load import load
from cli.prep_chartom import chartom
from cli.prep_charts import charts, twins
from cli.prep_critiques import critiques, truthful
from cli.prep_error_types import error_types
from cli.prep_pairs import pairs
from cli.serve import serve
from judging.errors import CustosError


class Verbs(TyperGroup):
    """A group of commands that puts the user's mistakes on one line, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command; exit code 2 on a ``CustosError`` or an ``OSError``."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # whoever read the output has enough, which is no mistake
            raise
        except (CustosError, OSError) as error:
            typer.echo(f"error: {' '.join(_told(error).split())}", err=True)
            raise typer.Exit(2) from None


def _told(error: CustosError | OSError) -> str:
    """What an error says, a system's with its file in front as ours have it."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    help="Train, measure and serve judge models that grade answers the way people do.",
    epilog="Example: custos grade --judge embedded-qs --in answers.jsonl --out verdicts.jsonl",
)
app.add_typer(prep.app, name="prep", epilog="Example: custos prep synthetic --out data --rows 2000")
prep.app.command()(charts)
prep.app.command()(twins)
prep.app.command()(chartom)
prep.app.add_typer(
    prep_charthal.app,
    name="charthal-construct",
    epilog="Example: custos prep charthal-construct sheet data/mine --out anna.csv",
)
prep.app.command()(pairs)
prep.app.command()(critiques)
prep.app.command()(error_types)
prep.app.command()(truthful)
app.add_typer(
    bench.app,
    name="bench",
    epilog="Example: custos bench table charthal --graded gpt.eval.json --json table.json",
)
app.add_typer(recipe.app, name="recipe", epilog="Example: custos recipe copy embedded/demo my.yaml")
app.command("eval")(evaluate)
app.command()(compare)
app.command()(grade)
app.command()(serve)
app.command()(judges)
app.command()(load)
app.command()(doctor)
app.command()(backbone)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"custos {version('custos')}")
        raise typer.Exit


@app.callback()
def options(
    wants_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Train, measure and serve judge models that grade answers the way people do."""
