"""Who goes before the model next."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from judging import CustosError, JudgeRequest, Verdict
from judging.types import Pass
from serve.errors import ApiError
from serve.limits import Limits
from serve.queue.service import Service
from serve.queue.worker import Job, Scheduler
from tests.serve.made_up import FakeJudge, row


def requests(count: int, **fields: Any) -> list[JudgeRequest]:
    return [JudgeRequest.model_validate(row(id=str(i), **fields)) for i in range(count)]


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


def test_no_judge_waits_for_more_than_a_window_of_another() -> None:
    log: list[str] = []
    busy, quiet = Recorder("busy", log), Recorder("quiet", log)
    busy.gate.clear()

    async def main() -> None:
        service = Service({"busy": busy, "quiet": quiet}, Limits(queue_requests=1000))
        many = requests(400, question="x" * 200)
        crowd = asyncio.create_task(service.grade(many, ["busy"] * 400))
        while not service.queue().running["busy"]:
            await asyncio.sleep(0.001)
        # Its turn is the next, though the other judge's next window has waited for longer.
        few = asyncio.create_task(service.grade(requests(2), ["quiet"] * 2))
        while not service.queue().queued["quiet"]:
            await asyncio.sleep(0.001)
        busy.gate.set()
        await asyncio.gather(crowd, few)
        service.close()

    asyncio.run(main())
    assert log.index("quiet 2") == 1
    assert sum(entry.startswith("busy") for entry in log) >= 5


def test_windows_hold_about_as_many_tokens_as_they_should() -> None:
    log: list[str] = []
    judge = Recorder("a", log)

    async def main() -> None:
        service = Service({"a": judge}, Limits(queue_requests=1000, requests=1000))
        await service.grade(requests(100), ["a"] * 100)
        await service.grade(requests(30, question="x" * 4000), ["a"] * 30)
        service.close()

    asyncio.run(main())
    sizes = [int(entry.split()[1]) for entry in log]
    assert sum(sizes) == 130
    assert max(sizes[-8:]) <= 4  # 4096 tokens hold three or four of 1,050


def test_callers_who_come_back_share_one_window() -> None:
    judge = FakeJudge(pause_s=0.04)

    async def main() -> None:
        service = Service({"a": judge})

        async def caller(number: int) -> None:
            await asyncio.sleep(0.05 * (number >= 6))  # the last two come while a window runs
            for turn in range(5):
                [asked] = requests(1, question=f"{number}/{turn}")
                await service.grade([asked], ["a"])

        await asyncio.gather(*map(caller, range(8)))
        service.close()

    asyncio.run(main())
    sizes = [len(batch) for batch in judge.batches]
    assert sum(sizes) == 40
    assert sizes.count(8) >= 3, sizes  # of four; without waiting six and two would take turns


def test_answers_to_one_question_go_together_and_the_oldest_waits_for_nobody() -> None:
    judge = FakeJudge()
    asked = [f"{question} {'x' * 1000}" for question in "abcdefghij"]
    # Every question is asked four times, far apart.
    rows = [
        JudgeRequest.model_validate(row(id=f"{place}/{question[0]}", question=question))
        for place, question in enumerate(asked * 4)
    ]

    async def main() -> None:
        service = Service({"a": judge}, Limits(queue_requests=1000, requests=1000))
        await service.grade(rows, ["a"] * len(rows))
        service.close()

    asyncio.run(main())
    assert sorted(name for batch in judge.batches for name in batch) == sorted(r.id for r in rows)
    waiting = [r.id for r in rows]
    for batch in judge.batches:
        assert batch[0] == waiting[0]
        waiting = [name for name in waiting if name not in batch]
    windows_of_a = [batch for batch in judge.batches if any("/a" in name for name in batch)]
    assert len(windows_of_a) == 1


def test_a_flood_of_one_question_does_not_hold_up_another() -> None:
    judge = FakeJudge(pause_s=0.001)

    async def main() -> None:
        service = Service({"a": judge}, Limits(queue_requests=1000))
        flood = requests(300, question="x" * 1000)
        other = requests(1, question="another")
        done: list[str] = []

        async def grade(name: str, rows: list[JudgeRequest]) -> None:
            await service.grade(rows, ["a"] * len(rows))
            done.append(name)

        first = asyncio.create_task(grade("first", flood[:100]))
        await asyncio.sleep(0)
        single = asyncio.create_task(grade("single", other))
        await asyncio.sleep(0)
        second = asyncio.create_task(grade("second", flood[100:]))
        await asyncio.gather(first, single, second)
        assert done[-1] == "second"
        service.close()

    asyncio.run(main())


def test_crowds_of_kin_take_half_of_a_window_at_most() -> None:
    judge = FakeJudge()
    long = "x" * 1000  # a window holds fourteen such rows
    # Before every quiet row stands one with a crowd of its kin at the back.
    questions = [f"{kind}{place}" for place in range(10) for kind in ("loud", "quiet")]
    questions += [f"loud{place}" for place in range(10) for _ in range(14)]
    rows = [
        JudgeRequest.model_validate(row(id=f"{name}/{place}", question=f"{name} {long}"))
        for place, name in enumerate(questions)
    ]

    async def main() -> None:
        service = Service({"a": judge}, Limits(queue_requests=1000, requests=1000))
        await service.grade(rows, ["a"] * len(rows))
        service.close()

    asyncio.run(main())
    assert sum(map(len, judge.batches)) == len(rows)
    quiet = [any("quiet" in name for name in batch) for batch in judge.batches]
    # At least seven of the oldest go with every window, and twenty were there before the crowds.
    assert not any(quiet[3:])


def test_what_nobody_waits_for_says_nothing_of_the_speed() -> None:
    windows: list[tuple[str, int]] = []

    async def main() -> None:
        scheduler = Scheduler(
            {"a": FakeJudge()},
            **{"max_requests": 9, "max_tokens": 9999, "window_tokens": 999},
            on_window=lambda name, count, seconds: windows.append((name, count)),
        )
        left, kept = (Job("a", "score", 100, request) for request in requests(2))
        left.dropped = True
        scheduler._run([left])
        await asyncio.to_thread(scheduler._run, [left, kept])
        await kept.future
        scheduler.close()
        await asyncio.sleep(0)

    asyncio.run(main())
    assert windows == [("a", 1)]


class Unreachable(FakeJudge):
    """Its model's server is down."""

    def grade(self, requests: Iterable[JudgeRequest], **options: Any) -> Iterator[Verdict]:
        self.batches.append([request.id for request in requests])
        raise CustosError("http://10.0.0.7:8001/v1: the server answered 503: secret")


def test_a_server_that_is_down_is_asked_once(caplog: pytest.LogCaptureFixture) -> None:
    judge = Unreachable()

    async def main() -> None:
        service = Service({"a": judge})
        try:
            await service.grade(requests(8), ["a"] * 8)
        finally:
            service.close()

    with pytest.raises(ApiError) as caught:
        asyncio.run(main())
    assert len(judge.batches) == 1
    assert (caught.value.status, bool(caught.value.retry_after)) == (503, True)
    assert "secret" not in str(caught.value)
    assert "secret" in caplog.text


class Writer(FakeJudge):
    """Draws a text of many tokens, each taking ``token_s``."""

    def __init__(self, log: list[str], tokens: int, token_s: float) -> None:
        super().__init__("writer", tasks=("truthful-pair",))
        self.log, self.tokens, self.token_s = log, tokens, token_s

    def grade(
        self, requests: Iterable[JudgeRequest], *, on_text: Any = None, **options: Any
    ) -> Iterator[Verdict]:
        batch = list(requests)
        for number in range(self.tokens):
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
    writer, scorer = Writer(log, tokens=60, token_s=0.005), Recorder("score", log)

    async def main() -> None:
        service = Service({"writer": writer, "score": scorer})
        text = asyncio.create_task(service.grade([PAIR], ["writer"]))
        await asyncio.sleep(0.05)
        for _ in range(3):
            await asyncio.wait_for(service.grade(requests(1), ["score"]), 0.2)
            assert not text.done()
        await text
        service.close()

    asyncio.run(main())
    assert log.count("token") == 60
    assert log.count("score 1") == 3


def test_scores_take_half_of_the_time_of_a_text_at_most() -> None:
    log: list[str] = []
    writer = Writer(log, tokens=50, token_s=0.004)
    scorer = FakeJudge("score", pause_s=0.02)

    async def main() -> float:
        service = Service({"writer": writer, "score": scorer}, Limits(queue_requests=10_000))
        start = time.monotonic()
        text = asyncio.create_task(service.grade([PAIR], ["writer"]))
        await asyncio.sleep(0.01)
        scores = [
            asyncio.create_task(service.grade(requests(1, question="x" * 16_400), ["score"]))
            for _ in range(200)
        ]
        await text
        seconds = time.monotonic() - start
        for score in scores:
            score.cancel()
        service.close()
        return seconds

    seconds = asyncio.run(main())
    alone = 50 * 0.004
    assert seconds < 4 * alone  # twice, and room for a busy machine
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
        pieces = [item async for item in service.stream(PAIR.model_copy(), "a")]
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
        verdicts = await service.grade(rows, ["a"] * 64)
        service.close()
        return verdicts

    verdicts = asyncio.run(main())
    assert [i for i, v in enumerate(verdicts) if v.status == "judge_error"] == [0, 17, 18, 63]
    assert [v.id for v in verdicts] == [str(i) for i in range(64)]


def test_closing_refuses_what_waits() -> None:
    judge = FakeJudge()
    judge.gate.clear()

    async def main() -> Any:
        service = Service({"a": judge})
        first = asyncio.create_task(service.grade(requests(1), ["a"]))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(service.grade(requests(1), ["a"]))
        await asyncio.sleep(0.05)
        threading.Timer(0.1, judge.gate.set).start()
        await asyncio.to_thread(service.close)
        return await asyncio.gather(first, second, return_exceptions=True)

    first, second = asyncio.run(main())
    assert first[0].status == "scored"
    assert second.status == 503


def test_places_of_cancelled_calls_are_free() -> None:
    judge = FakeJudge()
    judge.gate.clear()

    async def main() -> None:
        service = Service({"a": judge}, Limits(queue_requests=8))
        running = asyncio.create_task(service.grade(requests(1), ["a"]))
        while not judge.batches:
            await asyncio.sleep(0.01)
        for _ in range(5):
            call = asyncio.create_task(service.grade(requests(8), ["a"] * 8))
            await asyncio.sleep(0.01)
            assert service.queue().queued == {"a": 8}
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert service.queue().queued == {"a": 0}
            assert service.queue().waiting_tokens == 0
        judge.gate.set()
        await running
        service.close()

    asyncio.run(main())
    assert judge.batches == [["0"]]
