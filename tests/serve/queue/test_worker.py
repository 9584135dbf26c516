"""The model thread: who has its turn when, and what becomes of work that fails or is dropped."""

import asyncio
import logging
import signal
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

import pytest

from judging import JudgeRequest, Verdict
from judging.types import Pass
from serve.calls.limits import Limits
from serve.calls.waiting import Deadline
from serve.queue.lanes import Lanes
from serve.queue.service import Service
from serve.queue.worker import ModelJob, Watchdog, Worker
from tests.forks import forked
from tests.serve.made_up import FakeJudge, graded, requests
from tests.serve.queue.made_up import ended


class Recorder(FakeJudge):
    """Writes down, in a list shared by several judges, what was graded and when."""

    def __init__(self, name: str, log: list[str], **options: Any) -> None:
        super().__init__(name, **options)
        self.log = log

    def grade(self, requests: Iterable[JudgeRequest], **options: Any) -> Iterator[Verdict]:
        batch = list(requests)
        self.gate.wait()
        self.log.append(f"{self.name} {len(batch)}")
        for request in batch:
            yield self.verdict_on(request, 0.9)


class Writer(FakeJudge):
    """Draws a text of many tokens, each taking ``token_s``; the last comes once it may."""

    def __init__(self, log: list[str], tokens: int, token_s: float) -> None:
        super().__init__("writer", tasks=("truthful-pair",))
        self.log, self.tokens, self.token_s = log, tokens, token_s
        self.may_end = threading.Event()
        self.may_end.set()

    def grade(
        self, requests: Iterable[JudgeRequest], *, on_text: Any = None, **options: Any
    ) -> Iterator[Verdict]:
        batch = list(requests)
        for number in count():
            if number >= self.tokens and self.may_end.is_set():
                break
            time.sleep(self.token_s)
            self.log.append("token")
            for request in batch:
                on_text(request, Pass(), f"{number} ")
        for request in batch:
            yield self.verdict_on(request, 0.9)


PAIR = JudgeRequest(
    task="truthful-pair", mode="critique", question="Which?", responses=("one", "two")
)


def test_scores_go_between_the_tokens_of_a_text_and_the_text_goes_on() -> None:
    log: list[str] = []
    writer, scorer = Writer(log, tokens=20, token_s=0.005), Recorder("score", log)
    writer.may_end.clear()

    async def main() -> None:
        service = Service({"writer": writer, "score": scorer})
        text = asyncio.create_task(graded(service, [PAIR], "writer"))
        while not log:
            await asyncio.sleep(0.001)
        try:
            for _ in range(3):
                await asyncio.wait_for(graded(service, requests(1), "score"), 20)
                assert not text.done()
        finally:
            writer.may_end.set()
        await text
        service.close()

    asyncio.run(main())
    assert log.count("token") >= 20
    assert log.count("score 1") == 3


class NotingWatchdog(Watchdog):
    """Notes whether it waits for progress, and ends nothing."""

    is_waiting = False

    def beat(self) -> None:
        self.is_waiting = True

    def rest(self) -> None:
        self.is_waiting = False


def test_a_text_that_scores_have_interrupted_is_watched_on() -> None:
    log: list[str] = []
    watchdog = NotingWatchdog(0)
    waiting_after_scores: list[bool] = []

    class Watched(Writer):
        def grade(self, requests: Iterable[JudgeRequest], **options: Any) -> Iterator[Verdict]:
            on_text = options.pop("on_text")

            def noting(*piece: Any) -> None:
                on_text(*piece)
                if "score 1" in log and not waiting_after_scores:
                    waiting_after_scores.append(watchdog.is_waiting)
                    self.may_end.set()

            return super().grade(requests, on_text=noting, **options)

    async def main() -> None:
        writer, scorer = Watched(log, tokens=2, token_s=0.005), Recorder("score", log)
        writer.may_end.clear()
        lanes = Lanes[ModelJob](["writer", "score"], max_jobs=9, max_tokens=9999, window_tokens=999)
        worker = Worker({"writer": writer, "score": scorer}, lanes, lambda *window: None, watchdog)
        text = ModelJob("writer", "text", 100, PAIR)
        worker.submit("", [text])
        while not log:
            await asyncio.sleep(0.001)
        score = ModelJob("score", "score", 100, requests(1)[0])
        worker.submit("", [score])
        await asyncio.wait([text.future, score.future], timeout=20)
        while not worker.is_idle:
            await asyncio.sleep(0.001)
        worker.stop()
        await asyncio.to_thread(worker.close)

    asyncio.run(main())
    assert waiting_after_scores == [True]
    assert not watchdog.is_waiting


def test_scores_take_half_of_the_time_of_a_text_at_most() -> None:
    log: list[str] = []
    writer = Writer(log, tokens=50, token_s=0.01)
    scorer = FakeJudge("score", pause_s=0.05)

    async def main() -> float:
        service = Service({"writer": writer, "score": scorer}, Limits(queue_requests=10_000))
        start = time.monotonic()
        text = asyncio.create_task(graded(service, [PAIR], "writer"))
        await asyncio.sleep(0.01)
        scores = [
            asyncio.create_task(graded(service, requests(1, question="x" * 16_400), "score"))
            for _ in range(200)
        ]
        await text
        seconds = time.monotonic() - start
        for score in scores:
            score.cancel()
        service.close()
        return seconds

    seconds = asyncio.run(main())
    alone = 50 * 0.01
    assert seconds < 10 * alone  # twice, and room for a busy machine; the scores take 20 times
    assert len(scorer.batches) >= 5


class Brittle(FakeJudge):
    """Breaks on the second piece of a text when it is drawn in company."""

    def grade(
        self, requests: Iterable[JudgeRequest], *, on_text: Any = None, **options: Any
    ) -> Iterator[Verdict]:
        batch = list(requests)
        for number, piece in enumerate(("one ", "two ", "three")):
            if number == 1 and len(batch) > 1:
                raise RuntimeError("too many")
            for request in batch:
                on_text(request, Pass(), piece)
        for request in batch:
            yield self.verdict_on(request, 0.9)


def test_a_text_that_is_drawn_again_is_not_told_twice() -> None:
    judge = Brittle(tasks=("truthful-pair",))

    async def heard(service: Service) -> str:
        checked = service.checked(PAIR.model_copy(), "a")
        pieces = [item async for item in service.stream(checked, Deadline(service.limits))]
        assert isinstance(pieces[-1], Verdict)
        assert pieces[-1].status == "scored"
        return "".join(piece for piece in pieces if isinstance(piece, str))

    async def main() -> list[str]:
        service = Service({"a": judge})
        texts = await asyncio.gather(*(heard(service) for _ in range(4)))
        service.close()
        return texts

    assert asyncio.run(main()) == ["one two three"] * 4


def test_each_poisoned_request_is_found() -> None:
    judge = FakeJudge()

    async def main() -> tuple[Verdict, ...]:
        service = Service({"a": judge})
        rows = requests(64)
        for place in (0, 17, 18, 63):
            rows[place] = rows[place].model_copy(update={"responses": ("break",)})
        verdicts = await graded(service, rows)
        service.close()
        return verdicts

    verdicts = asyncio.run(main())
    assert [i for i, v in enumerate(verdicts) if v.status == "judge_error"] == [0, 17, 18, 63]
    assert [v.id for v in verdicts] == [str(i) for i in range(64)]


class Failing(FakeJudge):
    """Fails with every batch of two or more, as late as its gate allows."""

    def grade(self, requests: Iterable[JudgeRequest], **options: Any) -> Iterator[Verdict]:
        batch = list(requests)
        self.batches.append([request.id for request in batch])
        self.gate.wait()
        if len(batch) > 1:
            raise RuntimeError("too many")
        yield from (self.verdict_on(request, 0.9) for request in batch)


def test_dropped_jobs_are_not_run_and_not_counted() -> None:
    judge = Failing()
    windows: list[tuple[str, int]] = []

    async def main() -> None:
        limits = {"max_jobs": 9, "max_tokens": 9999, "window_tokens": 999}
        worker = Worker(
            {"a": judge},
            Lanes(["a"], **limits),
            lambda name, count, seconds: windows.append((name, count)),
            Watchdog(0),
        )

        async def run_and_drop(names: str, dropped: str) -> None:
            """Drop jobs while the window that they are in fails."""
            judge.gate.clear()
            jobs = [ModelJob("a", "score", 100, request) for request in requests(len(names))]
            num_batches = len(judge.batches)
            worker.submit("", jobs)
            while len(judge.batches) == num_batches:
                await asyncio.sleep(0.001)
            gone = [job for name, job in zip(names, jobs, strict=True) if name in dropped]
            worker.drop(gone)
            judge.gate.set()
            await asyncio.wait([job.future for job in jobs])
            while not worker.is_idle:
                await asyncio.sleep(0.001)
            assert [job.future.cancelled() for job in jobs] == [job in gone for job in jobs]

        await run_and_drop("ab", "ab")
        await run_and_drop("abc", "b")
        await ended(worker)

    asyncio.run(main())
    assert [len(batch) for batch in judge.batches] == [2, 3, 1, 1]
    assert windows == [("a", 2)]


class Memory:
    """Memory of a forward pass."""


class SmallJudge(FakeJudge):
    """Has the memory for two rows at once, unless that of an earlier window is held still."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[weakref.ref[Memory]] = []

    def grade(self, requests: Iterable[JudgeRequest], **options: Any) -> Iterator[Verdict]:
        batch = list(requests)
        is_free = all(memory() is None for memory in self.held)
        memory = Memory()
        self.held.append(weakref.ref(memory))
        if len(batch) > 2 or not is_free:
            raise MemoryError("out of memory")
        yield from super().grade(batch)


@pytest.mark.parametrize("num_rows", [3, 8])
def test_what_a_failed_window_held_is_free_for_its_halves(num_rows: int) -> None:
    """Let go of the error first: its traceback holds all variables of the code that failed."""

    async def main() -> tuple[Verdict, ...]:
        service = Service({"a": SmallJudge()})
        verdicts = await graded(service, requests(num_rows))
        service.close()
        return verdicts

    verdicts = asyncio.run(main())
    assert [verdict.status for verdict in verdicts] == ["scored"] * num_rows


def make_no_progress(longest: float, seconds: float) -> None:
    """Work for some seconds of this process's own time without a sign of progress."""
    logging.basicConfig()
    watchdog = Watchdog(longest)
    watchdog.beat()
    sys.stdout.write("works\n")
    sys.stdout.flush()
    for _ in range(round(seconds / 0.02)):
        time.sleep(0.02)
    watchdog.rest()


def test_time_in_which_the_process_is_stopped_does_not_count() -> None:
    with forked(make_no_progress, 1.0, 0.2) as process:
        process.wait_for("works")
        process.send_signal(signal.SIGSTOP)
        time.sleep(1.2)
        process.send_signal(signal.SIGCONT)
        assert process.wait(60) == 0


def test_no_progress_ends_the_process_and_says_where_it_was() -> None:
    with forked(make_no_progress, 0.5, 30.0) as process:
        assert process.wait(60) == 1
        assert "make_no_progress" in process.stderr


def test_a_rest_and_a_beat_end_the_wait_for_progress() -> None:
    watchdog = Watchdog(60)
    watchdog.beat()
    assert not watchdog.is_stalled
    watchdog._waited = 40
    assert watchdog.is_stalled
    watchdog.beat()
    assert not watchdog.is_stalled
    watchdog._waited = 40
    watchdog.rest()
    assert not watchdog.is_stalled
