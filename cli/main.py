"""The ``custos`` command, assembled from its verbs."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from cli import plan
from cli.attack import attack
from cli.bench.app import app as bench_app
from cli.demo import demo
from cli.eval import calibrate, compare, evaluate
from cli.grade import grade
from cli.judges import backbone, backbones, card, export, judges, push
from cli.prep import asking, labelling, sheets, sources, synthetic, tables
from cli.review import review
from cli.service.doctor import doctor
from cli.service.serve import serve
from cli.shared.outputs import CommandGroup, Verb, Verbs
from cli.tasks import tasks
from cli.train import app as recipe_app
from cli.train import sweep, train

prep_app = typer.Typer(
    no_args_is_help=True, help="Turn raw data into train, val, cal and test files."
)
for verb in (
    *(tables.table, sources.evouna, sources.truthfulqa, sources.hieval),
    *(synthetic.synthetic, synthetic.claims, synthetic.objective, synthetic.criterion),
    *(synthetic.hard, synthetic.omissions, synthetic.yes_no, synthetic.languages),
    *(synthetic.charts, synthetic.twins, synthetic.chartom, synthetic.pairs),
    *(asking.critiques, tables.error_types, sources.truthful, synthetic.benchmark_answers),
    tables.mix,
):
    prep_app.command(cls=Verb)(verb)
charthal_app = typer.Typer(
    no_args_is_help=True,
    help="Have a model write ChartHal-style questions about charts, and people check them.",
)
prep_app.add_typer(
    charthal_app,
    name="charthal-construct",
    cls=CommandGroup,
    epilog="Example: custos prep charthal-construct sheet data/mine --out anna.csv",
)
charthal_app.command("generate", cls=Verb)(asking.charthal_generate)
charthal_app.command("sheet", cls=Verb)(sheets.charthal_sheet)
charthal_app.command("collect", cls=Verb)(sheets.charthal_collect)
construct_app = typer.Typer(
    no_args_is_help=True,
    help="Build a benchmark or a training set with models and people, step by step.",
)
prep_app.add_typer(
    construct_app,
    name="construct",
    cls=CommandGroup,
    epilog="Example: custos prep construct step simplevqa-check --in rows.jsonl "
    "--base-url http://127.0.0.1:8000/v1 --model model-a --out data/checked",
)
for verb in (
    *(sheets.steps, asking.step, asking.respond, asking.verdicts, sheets.screen, sheets.pair),
    *(sheets.statistics, sheets.forms, sheets.sheet, sheets.collect),
    *(labelling.labelling, labelling.labelled),
):
    construct_app.command(cls=Verb)(verb)

app = typer.Typer(
    cls=Verbs,
    rich_markup_mode=None,  # Its columns cut examples of options at 80 characters.
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    epilog="Example: custos grade --judge embedded-qs --in answers.jsonl --out verdicts.jsonl",
)
for group, name, example in (
    (prep_app, "prep", "prep synthetic --out data --rows 2000"),
    (bench_app, "bench", "bench table charthal --graded gpt.eval.json --json table.json"),
    (recipe_app, "recipe", "recipe copy embedded/demo my.yaml"),
):
    app.add_typer(group, name=name, cls=CommandGroup, epilog=f"Example: custos {example}")
app.add_typer(
    plan.app, name="plan", cls=plan.Plans, epilog="Example: custos plan labels --margin .02"
)
app.command("eval", cls=Verb)(evaluate)
for verb in (
    *(train, sweep, attack, compare, demo, grade, serve, judges, tasks, doctor),
    *(backbone, backbones, calibrate, card, export, push, review),
):
    app.command(cls=Verb)(verb)


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
