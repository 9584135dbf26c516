"""Calls that share a queue: how they end, and what their clients get."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from judging import CustosError, JudgeRequest, Verdict
from serve.calls.errors import ApiError
from serve.calls.limits import Limits
from serve.queue.service import Quotas, Service
from tests.serve.made_up import FakeJudge, graded, requests, row
from tests.serve.sockets import serving, wait_until


class Unreachable(FakeJudge):
    """Its model's server is down."""

    def grade(self, requests: Iterable[JudgeRequest], **options: Any) -> Iterator[Verdict]:
        self.batches.append([request.id for request in requests])
        raise CustosError("http://10.0.0.7:8001/v1: the server answered 503: secret")


def test_a_server_that_is_down_is_asked_once(caplog: pytest.LogCaptureFixture) -> None:
    judge = Unreachable()

    with pytest.raises(ApiError) as caught, closing(Service({"a": judge})) as service:
        asyncio.run(graded(service, requests(8)))
    assert len(judge.batches) == 1
    assert (caught.value.status, caught.value.headers) == (503, {"Retry-After": "5"})
    assert "secret" not in str(caught.value)
    assert "secret" in caplog.text


def test_stopping_refuses_what_waits_and_what_runs() -> None:
    judge = FakeJudge()
    judge.gate.clear()

    async def main() -> Any:
        service = Service({"a": judge})
        first = asyncio.create_task(graded(service, requests(1)))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(graded(service, requests(1)))
        await asyncio.sleep(0.05)
        threading.Timer(0.1, judge.gate.set).start()
        service.stop()
        answers = await asyncio.gather(first, second, return_exceptions=True)
        await asyncio.to_thread(service.close)
        assert service.is_stopped
        return answers

    answers = asyncio.run(main())
    assert [(error.status, error.headers) for error in answers] == [(503, {"Retry-After": "5"})] * 2


def test_places_of_cancelled_calls_are_free() -> None:
    judge = FakeJudge()
    judge.gate.clear()

    async def main() -> None:
        service = Service({"a": judge}, Limits(queue_requests=8))
        running = asyncio.create_task(graded(service, requests(1)))
        while not judge.batches:
            await asyncio.sleep(0.01)
        for _ in range(5):
            call = asyncio.create_task(graded(service, requests(8)))
            while service.queue().queued != {"a": 8}:
                await asyncio.sleep(0.001)
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


def test_calls_of_many_clients_are_graded_together_in_one_thread(closed: FakeJudge) -> None:
    service = Service({"a": closed})
    with serving(service) as client, ThreadPoolExecutor(20) as pool:
        calls = [pool.submit(client.post, "/judge", json=row(id=str(i))) for i in range(20)]
        # How many the first window took depends on how fast they came.
        wait_until(
            lambda: sum([*service.queue().queued.values(), *service.queue().running.values()]) == 20
        )
        assert client.get("/health/live").status_code == 200
        closed.gate.set()
        assert sorted(int(call.result().json()["id"]) for call in calls) == list(range(20))
    assert len(closed.batches) <= 4
    assert closed.threads == {"judge"}


def test_a_full_queue_is_429_with_a_time_to_come_back(closed: FakeJudge) -> None:
    service = Service({"a": closed}, Limits(queue_requests=2))
    with serving(service) as client, ThreadPoolExecutor(3) as pool:
        running = pool.submit(client.post, "/judge", json=row())
        wait_until(lambda: closed.batches != [])
        waiting = [pool.submit(client.post, "/judge", json=row()) for _ in range(2)]
        wait_until(lambda: service.queue().queued["a"] == 2)
        refused = client.post("/judge", json=row())
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        assert refused.json()["error"]["type"] == "overloaded"
        closed.gate.set()
        assert [call.result().status_code for call in (running, *waiting)] == [200] * 3
        assert service.queue().counters["rejected"] == 1


def test_an_allowance_refills_all_the_time() -> None:
    quotas = Quotas(60)
    quotas.take("a", 60, 0.0)
    assert quotas.seconds_to_wait("a", 1, 0.0) == 1
    assert quotas.seconds_to_wait("a", 30, 10.0) == 20
    assert quotas.seconds_to_wait("a", 30, 30.0) == 0
    assert quotas.seconds_to_wait("b", 60, 0.0) == 0
    assert quotas.seconds_to_wait("a", 60, 10_000.0) == 0  # no more than a minute's is saved up
    quotas.take("a", 60, 10_000.0)
    assert quotas.seconds_to_wait("a", 1, 10_000.0) == 1


def test_a_call_with_more_than_a_minutes_requests_is_paid_for_later() -> None:
    quotas = Quotas(60)
    assert quotas.seconds_to_wait("a", 256, 0.0) == 0
    quotas.take("a", 256, 0.0)
    assert quotas.seconds_to_wait("a", 1, 0.0) == 197


@pytest.mark.parametrize("rate", [1, 7, 600])
def test_in_the_long_run_no_more_than_the_rate_gets_through(rate: int) -> None:
    quotas = Quotas(rate)
    taken, now = 0, 0.0
    while now < 3600:
        if wait := quotas.seconds_to_wait("a", 1, now):
            now += wait
        else:
            quotas.take("a", 1, now)
            taken += 1
    assert 59 * rate <= taken <= 61 * rate
