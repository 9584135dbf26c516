"""Threads beside the event loop."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from serve.threads import SHORT, in_turn, read, started_threads


def test_an_executor_has_all_its_threads_from_the_start() -> None:
    before = threading.active_count()
    with started_threads(5) as executor:
        assert threading.active_count() == before + 5
        meeting = threading.Barrier(5)  # which a missing thread would leave waiting
        list(executor.map(lambda _: meeting.wait(10), range(5)))
        assert threading.active_count() == before + 5


def test_work_that_keeps_the_interpreter_busy_is_done_two_at_a_time() -> None:
    running, most, two_run = 0, 0, threading.Barrier(2)
    lock = threading.Lock()

    def work(number: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        two_run.wait(10)
        with lock:
            running -= 1
        return number

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda number: in_turn(work, number), range(8))) == list(range(8))
    assert most == 2


def test_a_failure_gives_the_turn_back() -> None:
    def fail() -> None:
        raise ValueError

    for _ in range(3):
        try:
            in_turn(fail)
        except ValueError:
            continue
    assert in_turn(len, "done") == 4


def test_a_short_text_does_not_wait_for_long_ones() -> None:
    """Two long texts hold both turns until the short one has been read."""
    short_is_read, reading = threading.Event(), threading.Semaphore(0)

    def long() -> bool:
        reading.release()
        return short_is_read.wait(10)

    async def calls() -> list[bool]:
        tasks = [asyncio.create_task(read(SHORT + 1, long)) for _ in range(3)]
        for _ in range(2):
            await asyncio.to_thread(reading.acquire)
        assert await read(SHORT, len, "done") == 4
        short_is_read.set()
        return await asyncio.gather(*tasks)

    assert asyncio.run(calls()) == [True] * 3
