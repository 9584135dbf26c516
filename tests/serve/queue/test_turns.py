"""Whose turn the model's thread takes: what interrupts a window, and what callers are charged."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pytest

from judging import JudgeRequest, Verdict
from serve.queue import lanes
from serve.queue import worker as worker_module
from serve.queue.worker import ModelJob, Watchdog
from tests.serve.made_up import FakeJudge, row
from tests.serve.queue.made_up import ended, lanes_of, submitted, worker_of


class OneByOne(FakeJudge):
    """Grades requests one after the other, each in 20 ms, if anybody still wants it."""

    def grade(self, requests: Iterable[JudgeRequest], **options: Any) -> Iterator[Verdict]:
        batch = list(requests)
        self.batches.append([])
        for request in batch:
            if options["is_wanted"](request):
                self.gate.wait()
                time.sleep(0.02)
                self.batches[-1].append(request.id)
            yield self.verdict_on(request, 0.9)


def test_a_window_ends_when_another_caller_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (lanes, worker_module):
        monkeypatch.setattr(module, "SHORT_S", 0.05)
    judge = OneByOne()
    windows: list[int] = []

    async def main() -> None:
        worker = worker_of(judge, on_window=lambda name, count, seconds: windows.append(count))

        def submit(caller: str, names: str) -> list[ModelJob]:
            each = [JudgeRequest.model_validate(row(id=name)) for name in names]
            jobs = [ModelJob("a", "score", 10, request, caller=caller) for request in each]
            worker.submit(caller, jobs)
            return jobs

        judge.gate.clear()
        jobs = submit("many", "abcdefghij")
        while not judge.batches:
            await asyncio.sleep(0.001)
        late = submit("late", "z")
        judge.gate.set()
        await asyncio.wait([job.future for job in late])
        assert not all(job.future.done() for job in jobs)
        await asyncio.wait([job.future for job in jobs])
        ids = [job.future.result().id for job in jobs]
        assert ids == list("abcdefghij")
        await ended(worker)

    asyncio.run(main())
    order = [name for batch in judge.batches for name in batch]
    assert order.index("z") < 5
    assert sorted(order) == sorted("abcdefghijz")  # nothing was graded twice
    assert sum(windows) == 11


class Layered(FakeJudge):
    """Grades a request in as many layers as its response has words, each in 1 ms."""

    def call_between_layers(self, call: Callable[[], None]) -> None:
        self.call = call

    def grade(self, requests: Iterable[JudgeRequest], **options: Any) -> Iterator[Verdict]:
        for request in requests:
            self.batches.append([request.id])
            for _ in request.response.split():
                time.sleep(0.001)
                self.call()
            self.batches[0].append(request.id)
            yield self.verdict_on(request, 0.9)


def test_a_short_job_interrupts_a_long_one_and_no_longer_one_does() -> None:
    judge = Layered()
    times: list[float] = []

    async def main() -> None:
        worker = worker_of(judge, on_window=lambda name, count, seconds: times.append(seconds))

        submit = partial(submitted, worker)
        jobs = [submit("one", "score", "long", 600)]
        while not judge.batches:
            await asyncio.sleep(0.001)
        jobs += [submit("two", "score", "longer", 700), submit("three", "score", "short", 60)]
        await asyncio.wait([jobs[-1].future])
        assert not jobs[0].future.done()
        await asyncio.wait([job.future for job in jobs])
        await ended(worker)

    asyncio.run(main())
    assert judge.batches[0] == ["long", "short", "long", "longer"]
    # What interrupts a window is no part of its time.
    assert times[0] < 0.5 * times[1]
    assert sum(times) < 3 * times[1]


class Decided(FakeJudge):
    """Decides rows by a rule, in no time, but for those that its model reads in 20 ms each."""

    def grade(self, requests: Iterable[JudgeRequest], **options: Any) -> Iterator[Verdict]:
        for request in requests:
            verdict = self.verdict_on(request, 0.9)
            if request.id == "rule":
                verdict = verdict.model_copy(update={"posterior": None})
            else:
                time.sleep(0.02)
            yield verdict


def test_long_rows_that_a_rule_decides_do_not_make_windows_long() -> None:
    lanes = lanes_of(6000)

    async def main() -> None:
        worker = worker_of(Decided(), lanes)
        await asyncio.wait([submitted(worker, "one", "score", "read", 20).future])
        while lanes.short_tokens == 6000:  # the speed is counted after the verdict is given
            await asyncio.sleep(0.001)
        short_tokens = lanes.short_tokens
        for _ in range(5):
            await asyncio.wait([submitted(worker, "two", "score", "rule", 5000).future])
        await asyncio.sleep(0.1)
        assert lanes.short_tokens == short_tokens < 600
        await ended(worker)

    asyncio.run(main())


def test_a_caller_whose_rows_take_longer_than_estimated_has_fewer_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lanes, "SHORT_S", 0.001)  # a row a window
    order: list[str] = []

    class Timed(FakeJudge):
        def grade(self, requests: Iterable[JudgeRequest], **options: Any) -> Iterator[Verdict]:
            for request in requests:
                self.gate.wait()
                time.sleep(0.02 if request.id == "dear" else 0.002)
                order.append(request.id)
                yield self.verdict_on(request, 0.9)

    judge = Timed()

    async def main() -> None:
        worker = worker_of(judge)
        await asyncio.wait([submitted(worker, "first", "score", "first", 10).future])
        judge.gate.clear()
        jobs = [
            submitted(worker, name, "score", name, 10)
            for _ in range(30)
            for name in ("dear", "cheap")
        ]
        judge.gate.set()
        await asyncio.wait([job.future for job in jobs])
        await ended(worker)

    asyncio.run(main())
    until_cheap = order[: len(order) - order[::-1].index("cheap")]
    assert until_cheap.count("dear") < 15


def test_a_rest_of_the_model_is_nobody_s_debt() -> None:
    judge = OneByOne()

    async def main() -> None:
        worker = worker_of(judge, lanes_of(15))
        for _ in range(20):
            await asyncio.wait([submitted(worker, "steady", "score", "steady", 10).future])
            await asyncio.sleep(0.05)
        judge.gate.clear()
        jobs = [submitted(worker, name, "score", name, 10) for name in ["new", "newer"] * 20]
        steady = submitted(worker, "steady", "score", "steady", 10)
        judge.gate.set()
        await asyncio.wait([job.future for job in (*jobs, steady)])
        assert sum(job.ended_at < steady.ended_at for job in jobs) < 10
        await ended(worker)

    asyncio.run(main())


def test_what_a_model_reads_for_a_text_is_interrupted_and_ends_when_nobody_waits() -> None:
    judge = Layered()
    watchdog = Watchdog(0.3)

    async def main() -> None:
        lanes = lanes_of()
        worker = worker_of(judge, lanes, watchdog=watchdog)
        submit = partial(submitted, worker)
        text = submit("one", "text", "text", 900)  # layers of a second, thrice the watchdog's
        while not judge.batches:
            await asyncio.sleep(0.001)
        await asyncio.wait([submit("two", "score", "short", 5).future])
        assert not text.future.done()
        await asyncio.wait([text.future])
        for kind in ("text", "score"):
            dropped = submit("one", kind, f"dropped {kind}", 9000)
            while judge.batches[-1] != [f"dropped {kind}"]:
                await asyncio.sleep(0.001)
            worker.drop([dropped])
            start = time.monotonic()
            await asyncio.wait([submit("two", "score", "after", 5).future])
            assert time.monotonic() - start < 5  # of 9 s
        assert lanes.short_tokens < 9000  # what was dropped tells nothing of the model's speed
        await ended(worker)

    asyncio.run(main())
    assert judge.batches[0] == ["text", "short", "text", "after", "after"]


def test_a_text_waits_for_no_longer_text_of_another_caller() -> None:
    judge = Layered()

    async def main() -> None:
        worker = worker_of(judge)
        submit = partial(submitted, worker)
        jobs = [submit("one", "text", f"long {number}", 400) for number in range(3)]
        while not judge.batches:
            await asyncio.sleep(0.001)
        jobs += [submit("two", "text", name, 60) for name in ("short", "too")]
        jobs += [submit("one", "text", "own", 60)]
        await asyncio.wait([jobs[3].future, jobs[4].future])
        assert not any(job.future.done() for job in jobs[:3])
        await asyncio.wait([job.future for job in jobs])
        await ended(worker)

    asyncio.run(main())
    assert [batch[0] for batch in judge.batches] == [
        *("long 0", "short", "too", "long 1", "long 2", "own")
    ]
