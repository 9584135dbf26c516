"""The verbs of ``custos prep construct``, in the order of a construction."""

from __future__ import annotations

import typer

from cli.prep.construct.collect import collect
from cli.prep.construct.forms import forms
from cli.prep.construct.pair import pair
from cli.prep.construct.respond import respond
from cli.prep.construct.screen import screen
from cli.prep.construct.sheet import sheet
from cli.prep.construct.statistics import statistics
from cli.prep.construct.step import step
from cli.prep.construct.steps import steps
from cli.prep.construct.verdicts import verdicts
from cli.shared.output_folders import Verb

app = typer.Typer(
    no_args_is_help=True,
    help="Build a benchmark or a training set with models and people, step by step.",
)
for verb in (steps, step, respond, verdicts, screen, pair, statistics, forms, sheet, collect):
    app.command(cls=Verb)(verb)
