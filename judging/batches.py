"""Batches of a stream, and a stream whose next item is made meanwhile."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


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
