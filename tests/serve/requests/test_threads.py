"""Threads beside the event loop."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from contextlib import suppress
from types import SimpleNamespace
from typing import cast

import pytest
from fastapi import Request

from serve.call_context import CallBytes, HeldBytes, access_key, call_bytes, require_open
from serve.keys import AccessKey
from serve.requests.waiting import unless_gone
from serve.threads import SHORT, Readers, started_threads


def test_an_executor_has_all_its_threads_from_the_start() -> None:
    before = threading.active_count()
    with started_threads(5) as executor:
        assert threading.active_count() == before + 5
        meeting = threading.Barrier(5)  # which a missing thread would leave waiting
        list(executor.map(lambda _: meeting.wait(10), range(5)))
        assert threading.active_count() == before + 5


def test_two_long_texts_are_read_at_a_time() -> None:
    """The others wait; a short one does not."""
    gate, started = threading.Event(), threading.Semaphore(0)

    def long() -> bool:
        started.release()
        return gate.wait(10)

    async def main() -> list[bool]:
        readers = Readers()
        tasks = [asyncio.create_task(readers.read(SHORT + 1, long)) for _ in range(5)]
        for _ in range(2):
            await asyncio.to_thread(started.acquire)
        await asyncio.sleep(0.05)
        assert not started.acquire(blocking=False)
        assert await readers.read(SHORT, len, "done") == 4
        gate.set()
        return await asyncio.gather(*tasks)

    assert asyncio.run(main()) == [True] * 5


def test_a_failure_gives_the_turn_back() -> None:
    def fail() -> None:
        raise ValueError("wrong")

    async def main() -> None:
        readers = Readers()
        for _ in range(5):
            with pytest.raises(ValueError, match="wrong"):
                await readers.read(SHORT + 1, fail)
        assert await readers.read(SHORT + 1, len, "done") == 4

    asyncio.run(asyncio.wait_for(main(), 20))


def test_what_was_read_in_vain_is_freed_at_once() -> None:
    """Not when Python next looks for cycles, with as many bodies in memory as came until then."""

    class Text(str):
        __slots__ = ("__weakref__",)

    def fail(text: str) -> None:
        raise ValueError(text)

    async def no_message() -> None:
        await asyncio.sleep(60)

    async def main() -> None:
        readers, request = Readers(), SimpleNamespace(receive=no_message)
        text = Text("x")
        freed = weakref.ref(text)
        with suppress(ValueError):
            await readers.read(SHORT + 1, fail, text)
        with suppress(ValueError):
            await unless_gone(cast(Request, request), readers.read(SHORT, fail, text))
        del text
        await asyncio.sleep(0)
        assert freed() is None

    gc.disable()
    try:
        asyncio.run(asyncio.wait_for(main(), 20))
    finally:
        gc.enable()


def test_who_leaves_is_answered_at_once_but_the_turn_and_the_bytes_are_taken(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gate, started, held = threading.Event(), threading.Semaphore(0), HeldBytes(1000)

    def long() -> None:
        started.release()
        gate.wait(10)
        require_open()
        pytest.fail("goes on though nobody waits")

    async def call(readers: Readers) -> None:
        num_held = CallBytes(held)
        call_bytes.set(num_held)
        num_held.take(100)
        try:
            async with asyncio.timeout(0.1):
                await readers.read(SHORT + 1, long)
        finally:
            num_held.end()

    async def main() -> None:
        readers = Readers()
        calls = [asyncio.create_task(call(readers)) for _ in range(4)]
        results = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 5)
        assert set(map(type, results)) == {TimeoutError}
        assert held.num_bytes == 200  # the other two never began
        gate.set()
        assert await readers.read(SHORT + 1, len, "done") == 4
        while held.num_bytes:
            await asyncio.sleep(0.001)
        assert started._value == 2

    asyncio.run(asyncio.wait_for(main(), 20))
    gc.collect()
    assert not caplog.records, "the error that nobody waits for"


def test_one_key_leaves_a_turn_to_the_others() -> None:
    gate = threading.Event()

    async def call(readers: Readers, name: str) -> bool:
        access_key.set(AccessKey(name, b""))
        return await readers.read(SHORT + 1, gate.wait, 10)

    async def main() -> None:
        readers = Readers(0.5)
        crowd = [asyncio.create_task(call(readers, "alice")) for _ in range(9)]
        await asyncio.sleep(0.05)
        access_key.set(AccessKey("bob", b""))
        assert await asyncio.wait_for(readers.read(SHORT + 1, len, "done"), 5) == 4
        gate.set()
        assert all(await asyncio.gather(*crowd))

    asyncio.run(asyncio.wait_for(main(), 20))
