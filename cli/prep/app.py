"""The verbs of ``custos prep`` and ``custos prep construct``, in the order of their help."""

from __future__ import annotations

import typer

from cli.prep import asking, labelling, sheets, sources, synthetic, tables
from cli.shared.outputs import CommandGroup, Verb

app = typer.Typer(no_args_is_help=True, help="Turn raw data into train, val, cal and test files.")
for verb in (
    *(tables.table, sources.evouna, sources.truthfulqa, sources.hieval),
    *(synthetic.synthetic, synthetic.claims, synthetic.objective, synthetic.criterion),
    *(synthetic.hard, synthetic.omissions, synthetic.languages),
    *(synthetic.charts, synthetic.twins, synthetic.chartom, synthetic.pairs),
    *(asking.critiques, tables.error_types, sources.truthful, synthetic.benchmark_answers),
    tables.mix,
):
    app.command(cls=Verb)(verb)
charthal_app = typer.Typer(
    no_args_is_help=True,
    help="Have a model write ChartHal-style questions about charts, and people check them.",
)
app.add_typer(
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
app.add_typer(
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
