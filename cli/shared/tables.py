"""Tables on the screen, readable in pipes and files too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

WIDTH_IN_FILES = 160
"""Columns of a table that is piped or written to a file, where rich would wrap it at 80."""


def wide_console() -> Console:
    """Return a console that does not break long lines, and prints brackets as they are."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    if not console.is_terminal:
        console.width = WIDTH_IN_FILES
    return console


def count_table(heading: str, counted: str, counts: Mapping[str, int]) -> Table:
    """Return a table with a name and a number on every line."""
    table = Table(heading)
    table.add_column(counted, justify="right")
    for name, count in counts.items():
        table.add_row(name, str(count))
    return table


def interval_table(title: str, intervals: Mapping[str, Any]) -> Table:
    """Return a table with one estimate and its interval on every line."""
    from benchmarks.framework.estimates import estimates
    from benchmarks.framework.report.text import interval_cells

    table = Table("", "value", "95 % interval", "n", title=title)
    for path, estimate in estimates(intervals):
        table.add_row(" / ".join(path), *interval_cells(estimate))
    return table
