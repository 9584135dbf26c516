"""Progress bars on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.progress import TextColumn

from judging.progress import ProgressBar

if TYPE_CHECKING:
    from clients.chat import Prices, Usage
    from clients.jobs import JobProgress, OnProgress


@contextmanager
def counting_bar(description: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar; give a function to call with the number of things that are done."""
    with ProgressBar() as progress:
        bar = progress.add_task(description, total=total)
        yield lambda num_done: progress.update(bar, completed=num_done)


@contextmanager
def job_bar(prices: Prices | None = None) -> Iterator[OnProgress]:
    """Show how far a job of chat requests is, with tokens, their cost and failed items.

    Gives what ``clients.jobs.run_job`` calls with its progress.
    """
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
    """Return tokens and, with prices, their cost as a text."""
    tokens = f"{usage.prompt_tokens + usage.completion_tokens:,} tokens"
    return tokens if prices is None else f"{tokens}, cost {prices.cost(usage):.4f}"


def show_spent(account: Mapping[str, Any]) -> None:
    """Print the tokens and the cost of ``JobResult.account``."""
    usage, cost = account["usage"], account["cost"]
    tokens = f"{usage['prompt_tokens']:,} prompt and {usage['completion_tokens']:,} completion"
    typer.echo(f"tokens: {tokens}{'' if cost is None else f', cost {cost:.4f}'}")
    if account["uncounted"]:
        typer.echo(f"answers whose tokens the server did not count: {account['uncounted']}")
