"""Threads in which the service reads long bodies, pictures and prompts beside its event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BoundedSemaphore
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

NUM_THREADS = 40
"""More than calls that wait for pictures from other servers, so that these hold up no others."""

SHORT = 20_000
"""Characters or bytes that are read on the event loop, which takes less time than to change
threads."""

_TURNS = BoundedSemaphore(2)


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


def in_turn(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do work that keeps the interpreter busy, such as reading a long text: two at a time.

    The event loop gets its turn between them. It would wait for all that ran at once.
    """
    with _TURNS:
        return work(*args, **kwargs)


async def read(length: int, work: Callable[..., T], *args: Any) -> T:
    """Do work that keeps the interpreter busy for as long as a text is long, such as parsing it.

    A short text is read at once, so that it never waits for long ones.

    Args:
        length: Characters or bytes of the text.
        work: Reads it; must not wait for others.
        *args: What it is called with.
    """
    if length <= SHORT:
        return work(*args)
    return await asyncio.to_thread(in_turn, work, *args)
