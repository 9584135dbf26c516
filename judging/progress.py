"""How far a long job is, and the batches and groups of a stream that it takes."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
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
Key = TypeVar("Key")


class ProgressBar(Progress):
    """A bar on standard error with counts and the remaining time; in a log, a line a minute.

    ``columns`` are shown before the remaining time.
    """

    def __init__(self, *columns: ProgressColumn) -> None:
        description = TextColumn("{task.description}")
        others = (MofNCompleteColumn(), *columns, TimeRemainingColumn())
        super().__init__(description, BarColumn(), *others, console=Console(stderr=True))
        self._line_columns = (description, *others)
        self._last_line = monotonic()

    def update(self, task_id: TaskID, **changes: Any) -> None:
        """Show how far a task is."""
        super().update(task_id, **changes)
        if not self.console.is_terminal and monotonic() - self._last_line >= LINE_EVERY:
            self._last_line = monotonic()
            self.console.print(self.line(task_id), soft_wrap=True, highlight=False, markup=False)

    def line(self, task_id: TaskID) -> str:
        """Tell what the bar says of a task, without the bar."""
        [task] = [task for task in self.tasks if task.id == task_id]
        *texts, time_left = (str(column(task)).strip() for column in self._line_columns)
        if time_left.strip("-:"):  # known
            texts.append(f"{time_left} left")
        return "  ".join(filter(None, texts))


def progress_over(items: Iterable[Item], description: str, total: int | None) -> Iterator[Item]:
    """Yield items and show how many are done: one counts when the next is asked for.

    ``total`` is their number, if it is known.
    """
    with ProgressBar() as bar:
        task = bar.add_task(description, total=total)
        for number, item in enumerate(items, 1):
            yield item
            bar.update(task, completed=number)


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Group items by a key, in the order of their first ones."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def in_batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield the items in lists of a size; the last list may be shorter."""
    stream = iter(items)
    while batch := list(itertools.islice(stream, size)):
        yield batch


def made_ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items in order while a thread makes the next; errors come in their item's place.

    No item is being made any more when the iterator has been closed.
    """
    stream, end = iter(items), object()
    with ThreadPoolExecutor(1, "ahead") as thread:
        made = thread.submit(next, stream, end)
        while (item := made.result()) is not end:
            made = thread.submit(next, stream, end)
            yield item  # type: ignore[misc]  # it is not the end
