"""A client's wait for its answer: its time limit, and a client that has left."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

from anyio import CancelScope
from fastapi import Request
from starlette.requests import ClientDisconnect

from serve.errors import ApiError
from serve.limits import Limits
from serve.queue.deadline import Deadline

DEADLINE_HEADER = "X-Deadline-Ms"
HEARTBEAT_S = 10.0
"""Longest silence in a streamed answer. Proxies take a longer one for a broken connection."""

T = TypeVar("T")


def deadline_of(request: Request, limits: Limits) -> Deadline:
    """Return the time by which a call that has just arrived must be answered.

    Raises:
        ApiError: 422 if ``X-Deadline-Ms`` is not a positive whole number.
    """
    text = request.headers.get(DEADLINE_HEADER)
    if text is None:
        return Deadline(limits)
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        raise ApiError(422, "expected a positive whole number of milliseconds", DEADLINE_HEADER)
    return Deadline(limits, int(text) / 1000)


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Do some work for a client, and cancel it if the client closes the connection.

    Args:
        request: The client's request; its body must have been read.
        work: What to do.

    Raises:
        ClientDisconnect: If the client has closed the connection.
    """
    task = asyncio.ensure_future(work)
    disconnect = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({task, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientDisconnect
    finally:
        disconnect.cancel()
        if task.cancel():
            await asyncio.wait({task})
        del task  # it holds its error, which holds this frame, and with it the body


async def with_heartbeat(parts: AsyncGenerator[T]) -> AsyncGenerator[T | None]:
    """Yield the parts of an answer, and ``None`` whenever ``HEARTBEAT_S`` have passed without."""
    async with aclosing(parts):
        while True:
            coming = asyncio.ensure_future(anext(parts))
            try:
                while not (await asyncio.wait({coming}, timeout=HEARTBEAT_S))[0]:
                    yield None
                part = coming.result()
            except StopAsyncIteration:
                return
            finally:
                if coming.cancel():
                    # Where a client hangs up, anyio would cancel this wait too.
                    with CancelScope(shield=True):
                        await asyncio.wait({coming})
            yield part


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
