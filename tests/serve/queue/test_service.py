"""Calls that share a queue: how they end, and what their clients get."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from judging import CustosError, JudgeRequest, Verdict
from serve.errors import ApiError
from serve.limits import Limits
from serve.queue.service import Service
from tests.serve.made_up import FakeJudge, row


def requests(count: int, **fields: Any) -> list[JudgeRequest]:
    return [JudgeRequest.model_validate(row(id=str(i), **fields)) for i in range(count)]


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
