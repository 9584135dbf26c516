"""``custos prep construct steps``: the steps that there are."""

from __future__ import annotations

import typer

from cli.shared.tables import wide_console


def steps() -> None:
    """List the steps: what each does, and which fields it needs of a row.

    Example: custos prep construct steps
    """
    from rich.table import Table

    from data_prep.construction.steps.base import STEPS

    table = Table("step", "what it does", "fields of a row")
    for entry in STEPS:
        fields = [name for name in entry.row_type.model_fields if name != "id"]
        table.add_row(entry.name, entry.summary, ", ".join(fields))
    wide_console().print(table)
    typer.echo("custos prep construct step NAME --help says how to run one.")
