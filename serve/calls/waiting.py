"""What calls wait for: their turn at slots and threads, and an answer, until their deadline."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager
from threading import Barrier
from typing import Any, TypeVar

from anyio import CancelScope
from fastapi import Request
from starlette.requests import ClientDisconnect

from serve.calls.context import call_bytes, caller_name
from serve.calls.errors import ApiError
from serve.calls.limits import Limits

T = TypeVar("T")

NUM_READING = 2
"""Texts that are read at once. They are few, because the event loop waits for all of them before it
gets its turn at the interpreter."""
REST = 7
"""Rest after a long text before its turn ends, as a multiple of the time it took to read. A parser
lets no other thread run, and the model asks for the interpreter thousands of times a second."""
MOST_REST_S = 1.0
"""Longest rest in seconds."""
SHORT = 20_000
"""Most characters or bytes that are read on the event loop, because to change threads would take
longer."""
DEADLINE_HEADER = "X-Deadline-Ms"
HEARTBEAT_S = 10.0
"""Longest silence in a streamed answer; proxies take longer ones for a broken connection."""


class Turns:
    """Slots for work. While none is free, callers take turns; each caller's oldest goes first.

    One named caller holds at most ``caller_slots``; default all. Used on one event loop.
    """

    def __init__(self, num_slots: int, caller_slots: int | None = None) -> None:
        self._num_free = num_slots
        self._caller_slots = caller_slots or num_slots
        self._num_held = Counter[str]()
        # The caller whose turn is next comes first.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a slot for the call while the block runs."""
        caller = caller_name()
        await self.take(caller)
        try:
            yield
        finally:
            self.give_back(caller)

    async def take(self, caller: str) -> None:
        """Wait for a slot and hold it for a caller, until :meth:`give_back`."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        self._pass_on()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the slot has come already
                self.give_back(caller)
            raise

    def give_back(self, caller: str) -> None:
        """Free a slot of a caller, and give it to whoever is next."""
        self._num_held[caller] -= 1
        if not self._num_held[caller]:
            del self._num_held[caller]
        self._num_free += 1
        self._pass_on()

    def _pass_on(self) -> None:
        """Give free slots to whoever is next."""
        for caller in list(self._waiting):
            if not self._num_free:
                return
            if caller and self._num_held[caller] >= self._caller_slots:
                continue
            turns = self._waiting.pop(caller)
            while turns and turns[0].cancelled():
                turns.popleft()
            if turns:
                self._num_free -= 1
                self._num_held[caller] += 1
                turns.popleft().set_result(None)
            if turns:
                self._waiting[caller] = turns


def started_threads(num_threads: int = 2 * NUM_READING) -> ThreadPoolExecutor:
    """Start an executor whose threads all run.

    Whoever starts a thread waits until it runs, and first it must get the interpreter. An event
    loop that started threads during calls would answer nobody meanwhile.
    """
    executor = ThreadPoolExecutor(num_threads, thread_name_prefix="reader")
    all_run = Barrier(num_threads + 1)
    for _ in range(num_threads):
        executor.submit(all_run.wait)
    all_run.wait()
    return executor


class Readers:
    """Reader of long texts in threads, a few at a time; callers take turns.

    A turn lasts longer than the reading (``REST``), so that the model gets its part of the time.
    One named caller may have ``caller_share`` of what is read at once. Used on one event loop.
    """

    def __init__(self, caller_share: float = 1.0) -> None:
        self._turns = Turns(NUM_READING, max(1, int(caller_share * NUM_READING)))
        self._next_call = Turns(1)

    async def turn(self) -> None:
        """Wait for the call's turn, to begin or to go on with its body.

        Callers take turns, so one that makes hundreds of short calls does not keep another waiting
        for all of them. The next turn begins when the event loop has looked after all else.
        """
        caller = caller_name()
        await self._next_call.take(caller)
        asyncio.get_running_loop().call_soon(self._next_call.give_back, caller)

    async def read(self, length: int, work: Callable[..., T], *args: Any) -> T:
        """Do work on a text, such as parsing, that keeps the interpreter busy.

        A text of at most ``SHORT`` characters or bytes is read at once, so that it never waits for
        long ones. The work must not wait for others. A thread cannot be stopped: if the call is
        cancelled, its turn and its bytes are taken until the thread ends, which is at the next
        :func:`serve.calls.context.require_open`.
        """
        if length <= SHORT:
            return work(*args)
        caller, num_held = caller_name(), call_bytes.get()
        await self._turns.take(caller)
        if num_held:
            num_held.hold()
        loop = asyncio.get_running_loop()
        start = loop.time()

        def end(done: asyncio.Task[T]) -> None:
            if not done.cancelled():
                done.exception()  # else asyncio would log the error of a call that is over
            rest_s = min(REST * (loop.time() - start), MOST_REST_S)
            loop.call_later(rest_s, self._turns.give_back, caller)
            if num_held:
                num_held.release()

        reading = asyncio.create_task(asyncio.to_thread(work, *args))
        reading.add_done_callback(end)
        try:
            return await asyncio.shield(reading)
        finally:
            del reading  # it holds its error, which holds this frame, and with it the text


class Deadline:
    """The end of the time that a call may take, counted from its arrival.

    Made on the event loop when the call arrives. Clients may ask for fewer ``seconds`` than the
    limit.
    """

    def __init__(self, limits: Limits, seconds: float | None = None) -> None:
        self.seconds = min(seconds or limits.deadline_s, limits.deadline_s)
        self.end = asyncio.get_running_loop().time() + self.seconds

    @classmethod
    def of_call(cls, request: Request, limits: Limits) -> Deadline:
        """Read the deadline of a call that has just arrived.

        Raises ``ApiError`` 422 if ``X-Deadline-Ms`` is not a positive whole number.
        """
        text = request.headers.get(DEADLINE_HEADER)
        if text is not None and not re.fullmatch(r"[1-9][0-9]{0,8}", text):
            raise ApiError(422, "expected a positive whole number of milliseconds", DEADLINE_HEADER)
        return cls(limits, int(text) / 1000 if text else None)

    @asynccontextmanager
    async def within(self) -> AsyncIterator[None]:
        """Cancel the block when the time is over, and raise ``ApiError`` 504."""
        try:
            async with asyncio.timeout_at(self.end) as timeout:
                yield
        except TimeoutError:
            if not timeout.expired():
                raise
            message = f"not answered within {self.seconds:g} seconds; the deadline is over"
            raise ApiError(504, message) from None


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Do some work for a client whose body was read; cancel it if the client closes the connection.

    Raises ``ClientDisconnect`` if it did.
    """

    async def disconnected() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    task = asyncio.ensure_future(work)
    disconnect = asyncio.ensure_future(disconnected())
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
    """Yield the parts of an answer, and ``None`` after every ``HEARTBEAT_S`` without one."""
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


async def with_first_part(parts: AsyncGenerator[T]) -> AsyncGenerator[T]:
    """Wait for the first part of an answer, so that an error before it still has its status."""
    first = await anext(parts)

    async def all_parts() -> AsyncGenerator[T]:
        async with aclosing(parts):
            yield first
            async for part in parts:
                yield part

    return all_parts()
