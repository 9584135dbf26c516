"""The ``custos`` command, assembled from its verbs."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from cli.backbone import backbone, backbones
from cli.bench.app import app as bench_app
from cli.demo import demo
from cli.grade import grade
from cli.judges.card import card
from cli.judges.export import export
from cli.judges.list import judges
from cli.judges.push import push
from cli.measuring.attack import attack
from cli.measuring.calibrate import calibrate
from cli.measuring.compare import compare
from cli.measuring.eval import evaluate
from cli.measuring.review import review
from cli.prep.app import app as prep_app
from cli.service.doctor import doctor
from cli.service.load import UNREAD, load
from cli.service.serve import serve
from cli.shared.error_line import CommandGroup, Verbs
from cli.shared.output_folders import Verb
from cli.tasks import tasks
from cli.training import plan, recipe
from cli.training.sweep import sweep
from cli.training.train import train

app = typer.Typer(
    cls=Verbs,
    rich_markup_mode=None,  # Its columns cut examples of options at 80 characters.
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    help="Train, measure and serve judge models that grade answers the way people do.",
    epilog="Example: custos grade --judge embedded-qs --in answers.jsonl --out verdicts.jsonl",
)
app.add_typer(
    prep_app,
    name="prep",
    cls=CommandGroup,
    epilog="Example: custos prep synthetic --out data --rows 2000",
)
app.add_typer(
    bench_app,
    name="bench",
    cls=CommandGroup,
    epilog="Example: custos bench table charthal --graded gpt.eval.json --json table.json",
)
app.add_typer(
    recipe.app,
    name="recipe",
    cls=CommandGroup,
    epilog="Example: custos recipe copy embedded/demo my.yaml",
)
app.add_typer(
    plan.app, name="plan", cls=plan.Plans, epilog="Example: custos plan labels --margin .02"
)
app.command("eval", cls=Verb)(evaluate)
for verb in (
    *(train, sweep, attack, compare, demo, grade, serve, judges, tasks, doctor),
    *(backbone, backbones, calibrate, card, export, push, review),
):
    app.command(cls=Verb)(verb)
app.command(hidden=True, context_settings=UNREAD, add_help_option=False)(load)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
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
