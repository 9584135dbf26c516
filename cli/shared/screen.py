"""What commands print: columns, tables, progress bars, and rows that could not be used."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import TextColumn
from rich.table import Table

from judging.errors import CustosError
from judging.files.records import write_records
from judging.log_lines import one_line
from judging.progress import ProgressBar
from judging.types import FAILURES

if TYPE_CHECKING:
    from clients.chat import JobProgress, OnProgress, Prices, Usage

WIDTH_IN_FILES = 160
"""Columns of a table that is piped or written to a file, where rich would wrap it at 80."""
MAX_BAD_ROWS_SHOWN = 10
MAX_ROWS_NAMED = 5


def in_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Write one line per row, its cells padded to the width of their columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def wide_console() -> Console:
    """Make a console that does not break long lines, and prints brackets as they are."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    if not console.is_terminal:
        console.width = WIDTH_IN_FILES
    return console


def show_counts(heading: str, counted: str, counts: Mapping[str, int]) -> None:
    """Print a table with a name and a number on every line."""
    table = Table(heading)
    table.add_column(counted, justify="right")
    for name, count in counts.items():
        table.add_row(name, str(count))
    Console(highlight=False).print(table)


def interval_table(title: str, intervals: Mapping[str, Any]) -> Table:
    """Build a table with one estimate and its interval on every line."""
    from benchmarks.framework.estimates import estimates
    from benchmarks.framework.report.page import interval_cells

    table = Table("", "value", "95 % interval", "n", title=title)
    for path, estimate in estimates(intervals):
        table.add_row(" / ".join(path), *interval_cells(estimate))
    return table


@contextmanager
def counting_bar(description: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar; give a function to call with the number of things that are done."""
    with ProgressBar() as progress:
        bar = progress.add_task(description, total=total)
        yield lambda num_done: progress.update(bar, completed=num_done)


@contextmanager
def job_bar(prices: Prices | None = None) -> Iterator[OnProgress]:
    """Show how far a job of chat requests is, with tokens, their cost and failed items."""
    columns = (TextColumn("{task.fields[spent]}"), TextColumn("{task.fields[failed]}"))
    with ProgressBar(*columns) as progress:
        bar = progress.add_task("asking", total=None, spent="", failed="")

        def show(now: JobProgress) -> None:
            progress.update(
                bar,
                total=now.num_items,
                completed=now.num_done,
                spent=spent_text(now.usage, prices),
                failed=f"{now.num_failed} failed" if now.num_failed else "",
            )

        yield show


def spent_text(usage: Usage, prices: Prices | None) -> str:
    """Write out tokens and, with prices, their cost."""
    tokens = f"{usage.prompt_tokens + usage.completion_tokens:,} tokens"
    return tokens if prices is None else f"{tokens}, cost {prices.cost(usage):.4f}"


def show_spent(account: Mapping[str, Any]) -> None:
    """Print the tokens and the cost of ``JobResult.account``."""
    usage, cost = account["usage"], account["cost"]
    tokens = f"{usage['prompt_tokens']:,} prompt and {usage['completion_tokens']:,} completion"
    typer.echo(f"tokens: {tokens}{'' if cost is None else f', cost {cost:.4f}'}")
    if account["uncounted"]:
        typer.echo(f"answers whose tokens the server did not count: {account['uncounted']}")


def show_problems(source: Path, problems: Mapping[int, str]) -> None:
    """Print bad rows to standard error, one line for all rows with the same message."""
    rows_by_message: dict[str, list[int]] = {}
    for row, message in problems.items():
        rows_by_message.setdefault(message, []).append(row)
    for message, rows in itertools.islice(rows_by_message.items(), MAX_BAD_ROWS_SHOWN):
        name = f"row {rows[0]}"
        if len(rows) > 1:
            shown = ", ".join(map(str, rows[:MAX_ROWS_NAMED]))
            shown += ", ..." if len(rows) > MAX_ROWS_NAMED else ""
            is_span = rows == list(range(rows[0], rows[0] + len(rows)))
            span = f"{rows[0]}-{rows[-1]}" if is_span else shown
            name = f"rows {span} ({len(rows)} rows)"
        typer.echo(one_line(f"{source} {name}: {message}"), err=True)
    others = list(rows_by_message.values())[MAX_BAD_ROWS_SHOWN:]
    if others:
        typer.echo(f"and {sum(map(len, others))} more bad rows", err=True)


def show_skipped(reasons: Iterable[object]) -> None:
    """Print why the first of the skipped rows were skipped, and how many more there are."""
    messages = list(map(str, reasons))
    for message in messages[:MAX_BAD_ROWS_SHOWN]:
        typer.echo(one_line(f"skipped: {message}"), err=True)
    if len(messages) > MAX_BAD_ROWS_SHOWN:
        typer.echo(f"skipped: {len(messages) - MAX_BAD_ROWS_SHOWN} more bad rows", err=True)


def check_skipped(source: Path | str, messages: Sequence[str], *, allow_dropped: bool) -> None:
    """Print why rows were skipped; refuse to go on with any, unless it is allowed."""
    if messages and not allow_dropped:
        raise CustosError(
            f"{source}: {len(messages)} rows cannot be used (the first: {messages[0]}); "
            "--allow-dropped leaves them out"
        )
    show_skipped(messages)


def write_problems(path: Path, problems: Mapping[int, str]) -> None:
    """Write ``{"row", "message"}`` lines; without problems, remove an earlier run's file."""
    if problems:
        write_records(path, ({"row": row, "message": problems[row]} for row in sorted(problems)))
    else:
        path.unlink(missing_ok=True)


def fail_without_verdict(source: Path, statuses: Collection[str]) -> None:
    """Exit with status 1 if no row got a verdict, as the rows' statuses say."""
    if set(statuses) <= FAILURES:
        typer.echo(f"error: {source}: no row got a verdict", err=True)
        raise typer.Exit(1)
