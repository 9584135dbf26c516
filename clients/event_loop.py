"""Coroutines, run from code that is not asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from anyio.from_thread import start_blocking_portal

ResultT = TypeVar("ResultT")


def run_coroutine(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine to its end, in another thread if this one runs a loop, as in a notebook.

    What interrupts this thread cancels the coroutine.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with start_blocking_portal() as other_thread:
        result: ResultT = other_thread.call(lambda: work)
        return result
