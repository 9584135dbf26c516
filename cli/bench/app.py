"""The verbs of ``custos bench``, in the order of its help."""

from __future__ import annotations

import typer

from cli.bench.compare import compare
from cli.bench.example import example
from cli.bench.grade import grade
from cli.bench.hmi import hmi
from cli.bench.lal import lal
from cli.bench.list import list_benchmarks
from cli.bench.respond import respond
from cli.bench.table import table
from cli.bench.tournament import tournament
from cli.plan import labels
from cli.shared.outputs import Verb

app = typer.Typer(no_args_is_help=True, help="Grade benchmarks and print their papers' tables.")
app.command("list", cls=Verb)(list_benchmarks)
for verb in (example, respond, grade, table, compare, tournament, lal, hmi):
    app.command(cls=Verb)(verb)
PLAN = """Say how many items people must label; the same as 'custos plan labels'.

Example: custos bench plan --half-width .03 --items 2000 --sensitivity .9 --specificity .85
"""
app.command("plan", cls=Verb, help=PLAN)(labels)
