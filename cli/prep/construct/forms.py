"""``custos prep construct forms``: the forms that there are."""

from __future__ import annotations

import typer

from cli.shared.tables import wide_console


def forms() -> None:
    """List the forms: what people decide, and the columns that they fill in.

    Example: custos prep construct forms
    """
    from rich.table import Table

    from data_prep.construction.forms.base import FORMS

    table = Table("form", "what people decide", "columns", "people per row")
    for entry in FORMS:
        columns = ", ".join(column.name for column in entry.entries)
        table.add_row(entry.name, entry.summary, columns, str(entry.per_row))
    wide_console().print(table)
    typer.echo("custos prep construct sheet NAME --in ROWS --out FILE writes a sheet.")
