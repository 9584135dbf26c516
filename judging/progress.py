"""How far a long job is: a bar on a terminal, a line a minute where there is none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import monotonic
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

LINE_EVERY = 60.0
"""Seconds between two lines where there is no terminal: a log of a cluster keeps every line."""

Item = TypeVar("Item")


class ProgressBar(Progress):
    """A bar on standard error with counts and the remaining time; lines where it is no terminal.

    Args:
        columns: Shown before the remaining time.
    """

    def __init__(self, *columns: ProgressColumn) -> None:
        description = TextColumn("{task.description}")
        others = (MofNCompleteColumn(), *columns, TimeRemainingColumn())
        super().__init__(description, BarColumn(), *others, console=Console(stderr=True))
        self._in_lines = (description, *others)
        self._last_line = monotonic()

    def update(self, task_id: TaskID, **changes: Any) -> None:
        """Show how far a task is."""
        super().update(task_id, **changes)
        if not self.console.is_terminal and monotonic() - self._last_line >= LINE_EVERY:
            self._last_line = monotonic()
            self.console.print(self.line(task_id), soft_wrap=True, highlight=False, markup=False)

    def line(self, task_id: TaskID) -> str:
        """Return what the bar says of a task, without the bar."""
        [task] = [task for task in self.tasks if task.id == task_id]
        *said, left = (str(column(task)).strip() for column in self._in_lines)
        return "  ".join([*filter(None, said), f"{left} left" if left.strip("-:") else ""]).rstrip()


def progress_over(items: Iterable[Item], description: str, total: int | None) -> Iterator[Item]:
    """Yield items and show how many are done.

    Args:
        items: What is to be done; one counts as done when the next is asked for.
        description: What is being done.
        total: Number of items, if it is known.
    """
    with ProgressBar() as bar:
        task = bar.add_task(description, total=total)
        for number, item in enumerate(items, 1):
            yield item
            bar.update(task, completed=number)
