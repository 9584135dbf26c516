"""Threads in which the service reads long bodies, pictures and prompts beside its event loop."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BoundedSemaphore
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

NUM_THREADS = 40
"""More than calls that wait for pictures from other servers, so that these hold up no others."""

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
