"""Threads in which the service reads long bodies, pictures and prompts beside its event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, TypeVar

from serve.call_context import call_bytes, caller_name
from serve.turns import Turns

T = TypeVar("T")

NUM_READING = 2
"""Texts that are read at once. Between them the event loop gets its turn at the interpreter; it
would wait for all that are read at once."""
NUM_THREADS = 2 * NUM_READING

SHORT = 20_000
"""Characters or bytes that are read on the event loop, which takes less time than to change
threads."""


def started_threads(num_threads: int = NUM_THREADS) -> ThreadPoolExecutor:
    """Return an executor whose threads all run.

    Whoever starts a thread waits until it runs, and it waits its turn for the interpreter. An event
    loop that started threads for its calls would answer nobody meanwhile.
    """
    executor = ThreadPoolExecutor(num_threads, thread_name_prefix="reader")
    all_run = Barrier(num_threads + 1)
    for _ in range(num_threads):
        executor.submit(all_run.wait)
    all_run.wait()
    return executor


class Readers:
    """Reads long texts in threads, a few at a time; callers take turns.

    Used on one event loop.

    Args:
        caller_share: Share of what is read at once that one named caller may have.
    """

    def __init__(self, caller_share: float = 1.0) -> None:
        self._turns = Turns(NUM_READING, max(1, int(caller_share * NUM_READING)))

    async def read(self, length: int, work: Callable[..., T], *args: Any) -> T:
        """Do work that keeps the interpreter busy for as long as a text is long, such as parsing.

        A short text is read at once, so that it never waits for long ones. A thread cannot be
        stopped: if the call is cancelled, its turn and its bytes are taken until the thread ends,
        which is at the next :func:`serve.call_context.require_open`.

        Args:
            length: Characters or bytes of the text.
            work: Reads it; must not wait for others.
            *args: What it is called with.
        """
        if length <= SHORT:
            return work(*args)
        caller, num_held = caller_name(), call_bytes.get()
        await self._turns.take(caller)
        if num_held:
            num_held.hold()

        def end(done: asyncio.Task[T]) -> None:
            if not done.cancelled():
                done.exception()  # asyncio would log the error of a call that is over
            self._turns.give_back(caller)
            if num_held:
                num_held.release()

        reading = asyncio.create_task(asyncio.to_thread(work, *args))
        reading.add_done_callback(end)
        try:
            return await asyncio.shield(reading)
        finally:
            del reading  # it holds its error, which holds this frame, and with it the text
