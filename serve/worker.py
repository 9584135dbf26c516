"""One thread for all judges: a model takes one call at a time, the event loop none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from serve.errors import ApiError

T = TypeVar("T")


class Worker:
    """Runs functions one after another in a thread of its own.

    Args:
        max_calls: Most calls in hand at once, the running one included.
    """

    def __init__(self, max_calls: int) -> None:
        self.max_calls = max_calls
        self.num_calls = 0
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="judge")

    @property
    def is_full(self) -> bool:
        """Whether a further call would be turned away."""
        return self.num_calls >= self.max_calls

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place in the queue, from before a call's body is read until it is answered.

        Raises:
            ApiError: 429 if there is none.
        """
        if self.is_full:
            raise ApiError(429, f"{self.num_calls} calls are waiting already; try again")
        self.num_calls += 1
        try:
            yield
        finally:
            self.num_calls -= 1

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function after those already waiting, and give its result."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def close(self) -> None:
        """Drop what waits; let what runs finish."""
        self._thread.shutdown(cancel_futures=True)
