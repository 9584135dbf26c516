"""The verbs of ``custos prep``, in the order of its help."""

from __future__ import annotations

import typer

from cli.prep import charthal_construct
from cli.prep.construct.app import app as construct_app
from cli.prep.critiques import critiques
from cli.prep.error_types import error_types
from cli.prep.mix import mix
from cli.prep.sources.evouna import evouna
from cli.prep.sources.hieval import hieval
from cli.prep.sources.truthful import truthful
from cli.prep.sources.truthfulqa import truthfulqa
from cli.prep.synthetic import (
    benchmark_answers,
    chartom,
    charts,
    claims,
    hard,
    objective,
    pairs,
    synthetic,
    twins,
)
from cli.prep.table import table
from cli.shared.error_line import CommandGroup
from cli.shared.output_folders import Verb

app = typer.Typer(no_args_is_help=True, help="Turn raw data into train, val, cal and test files.")
for verb in (
    *(
        table,
        evouna,
        truthfulqa,
        hieval,
        synthetic,
        claims,
        objective,
        hard,
        charts,
        twins,
        chartom,
        pairs,
    ),
    *(critiques, error_types, truthful, benchmark_answers, mix),
):
    app.command(cls=Verb)(verb)
app.add_typer(
    charthal_construct.app,
    name="charthal-construct",
    cls=CommandGroup,
    epilog="Example: custos prep charthal-construct sheet data/mine --out anna.csv",
)
app.add_typer(
    construct_app,
    name="construct",
    cls=CommandGroup,
    epilog="Example: custos prep construct step simplevqa-check --in rows.jsonl "
    "--base-url http://127.0.0.1:8000/v1 --model model-a --out data/checked",
)
