"""Batches of a stream."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def in_batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield the items in lists of a size; the last list may be shorter."""
    stream = iter(items)
    while batch := list(itertools.islice(stream, size)):
        yield batch
