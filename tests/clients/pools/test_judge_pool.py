"""Several services as one grader, over sockets: slow, killed, refused and unlike ones."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

import pytest

from clients import pool as pools
from clients.connection import ServerRefusal
from clients.pool import COOL_OFF, JudgePool
from judging import CustosError, JudgeRequest
from tests.clients.fake_server import FakeServer, Say, Seen

CARD = {"name": "qs", "tasks": {"hieval-qs": ["plain/any"]}, "backbone": "b"}
FAST = 0.02
"""Seconds of a call to a healthy service."""


def requests(count: int) -> list[JudgeRequest]:
    return [
        JudgeRequest(id=str(n), question="Which?", references=("a",), responses=("a",))
        for n in range(count)
    ]


def service(server: FakeServer, seconds: float = FAST, card: Mapping[str, object] = CARD) -> str:
    """Have a server answer as a service does; its verdicts name it."""

    def answer(seen: Seen) -> Say:
        if seen.path == "/judges":
            return Say(body=json.dumps({"judges": [card]}))
        verdicts = [
            {"id": row["id"], "status": "scored", "label": "Correct", "message": server.url}
            for row in seen.body["requests"]
        ]
        return Say(body=json.dumps({"verdicts": verdicts}), delay=seconds)

    server.answer = answer
    return server.url.removesuffix("/v1")


@pytest.fixture
def servers() -> Iterator[list[FakeServer]]:
    with ExitStack() as stack:
        yield [stack.enter_context(FakeServer().running()) for _ in range(3)]


def graded(pool: JudgePool, count: int) -> tuple[Counter[str | None], float]:
    """Grade rows; return how many verdicts each server gave, and the seconds."""
    start = time.monotonic()
    verdicts = list(pool.grade(requests(count)))
    assert [verdict.id for verdict in verdicts] == [str(n) for n in range(count)]
    assert all(verdict.label == "Correct" for verdict in verdicts)
    return Counter(verdict.message for verdict in verdicts), time.monotonic() - start


def test_a_pool_grades_in_a_notebook_whose_thread_runs_a_loop(servers: list[FakeServer]) -> None:
    urls = [service(server) for server in servers]

    async def cell() -> int:
        return len(list(JudgePool.connect(urls).grade(requests(10))))

    assert asyncio.run(cell()) == 10


def test_one_request_is_no_list_of_them() -> None:
    [one] = requests(1)
    with pytest.raises(TypeError, match=r"give one request as \[request\]"):
        list(JudgePool(["http://judge.test"]).grade(one))  # type: ignore[arg-type]


def rows_seen(server: FakeServer) -> Counter[str]:
    """How often a server was asked for each row."""
    bodies = [seen.body for seen in server.seen if seen.path == "/judge"]
    return Counter(row["id"] for body in bodies for row in body["requests"])


def test_work_is_shared_and_nothing_is_asked_twice(servers: list[FakeServer]) -> None:
    pool = JudgePool.connect([service(server) for server in servers], concurrency=16)
    shares, _ = graded(pool, 240)
    assert len(shares) == 3 and min(shares.values()) >= 40
    asked = sum((rows_seen(server) for server in servers), Counter[str]())
    assert asked == Counter(str(n) for n in range(240))


def test_a_service_ten_times_as_slow_costs_no_time(servers: list[FakeServer]) -> None:
    urls = [service(server, 8.0 if i == 0 else 0.8) for i, server in enumerate(servers)]
    pool = JudgePool.connect(urls, concurrency=16)
    shares, _ = graded(pool, 120)
    # An even share is 40 rows. What it was sent first, 16 rows, others give verdicts on sooner.
    assert shares[servers[0].url] <= 16
    servers[0].seen.clear()
    graded(pool, 60)
    assert len(servers[0].seen) <= 2, "a slow service gets fewer calls at a time"


def test_a_service_that_hangs_keeps_nothing(servers: list[FakeServer]) -> None:
    urls = [service(server, 60 if i == 0 else FAST) for i, server in enumerate(servers)]
    shares, seconds = graded(JudgePool.connect(urls, concurrency=16), 120)
    assert servers[0].url not in shares and seconds < 30


def test_services_that_are_busy_with_others_are_asked_for_longer(
    servers: list[FakeServer],
) -> None:
    urls = [service(server) for server in servers[:2]]
    pool = JudgePool.connect(urls)
    for server in servers[:2]:
        server.answer = busy_at_first(server, 20)
    graded(pool, 100)


def busy_at_first(server: FakeServer, calls: int) -> Callable[[Seen], Say | str]:
    answer = server.answer

    def answer_or_refuse(seen: Seen) -> Say | str:
        num_calls = sum(seen.path == "/judge" for seen in server.seen)
        if seen.path == "/judge" and num_calls <= calls:
            return Say(429, "{}", {"Retry-After": "0.05"})
        return answer(seen)

    return answer_or_refuse


def test_a_pool_learns_once_how_many_rows_a_service_takes(
    servers: list[FakeServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "WINDOW", 32)
    urls = [service(server) for server in servers[:2]]
    for server in servers[:2]:
        server.answer = too_much_above(server, 4)
    pool = JudgePool.connect(urls)
    graded(pool, 64)
    for server in servers:
        server.seen.clear()
    graded(pool, 64)
    calls = [seen.body for server in servers for seen in server.seen if seen.path == "/judge"]
    assert max(len(body["requests"]) for body in calls) <= 4


def too_much_above(server: FakeServer, rows: int) -> Callable[[Seen], Say | str]:
    answer = server.answer

    def answer_or_refuse(seen: Seen) -> Say | str:
        if seen.path == "/judge" and len(seen.body["requests"]) > rows:
            return Say(504, "{}")
        return answer(seen)

    return answer_or_refuse


def kill_after(server: FakeServer, calls: int) -> Callable[[Seen], Say | str]:
    answer = server.answer

    def answer_or_die(seen: Seen) -> Say | str:
        if sum(seen.path == "/judge" for seen in server.seen) > calls:
            server.kill()
            return "reset"
        return answer(seen)

    return answer_or_die


def test_a_service_killed_while_it_grades_costs_no_request(servers: list[FakeServer]) -> None:
    urls = [service(server) for server in servers]
    servers[1].answer = kill_after(servers[1], 3)
    pool = JudgePool.connect(urls, concurrency=16)
    shares, _ = graded(pool, 240)
    assert 0 < shares[servers[1].url] <= 12
    # It is left out of the next rows, which take no longer for it.
    before = len(servers[1].seen)
    shares, _ = graded(pool, 240)
    assert servers[1].url not in shares and len(servers[1].seen) == before


def test_a_service_that_was_down_is_used_once_it_is_back(
    servers: list[FakeServer], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    urls = [service(server) for server in servers]
    healthy = servers[2].answer
    servers[2].answer = lambda seen: Say(status=503)
    pool = JudgePool.connect(urls, concurrency=16)
    assert caplog.messages[0].startswith(f"{urls[2]}: left out for 30 s: {urls[2]}: no list of")
    shares, _ = graded(pool, 48)
    assert servers[2].url not in shares
    servers[2].answer = healthy
    monkeypatch.setattr(pools, "monotonic", lambda: time.monotonic() + COOL_OFF)
    shares, _ = graded(pool, 240)
    assert shares[servers[2].url] >= 40


def test_a_service_that_failed_a_moment_ago_is_asked_when_no_other_is_left(
    servers: list[FakeServer],
) -> None:
    first, second = servers[:2]
    urls = [service(first), service(second)]
    healthy = first.answer, second.answer
    first.answer = lambda seen: Say(status=503)
    pool = JudgePool.connect(urls, concurrency=16)
    shares, _ = graded(pool, 48)
    assert first.url not in shares
    first.answer, second.answer = healthy[0], kill_after(second, len(second.seen) + 3)
    shares, _ = graded(pool, 240)
    assert shares[first.url] > 200 and shares[second.url] > 0


def test_errors_are_told_when_none_answers(servers: list[FakeServer]) -> None:
    urls = [service(server) for server in servers]
    pool = JudgePool.connect(urls, concurrency=16)
    for server in servers:
        server.answer = lambda seen: Say(status=401)
    with pytest.raises(ServerRefusal, match=r"no service answers: .*set CUSTOS_KEY"):
        list(pool.grade(requests(20)))
    with pytest.raises(ServerRefusal, match="no service answers"):
        JudgePool.connect(urls)


def test_unlike_services_are_refused(servers: list[FakeServer]) -> None:
    urls = [service(server, card={**CARD, "server": server.url}) for server in servers]
    JudgePool.connect(urls)  # they differ in the address of their model alone
    service(servers[2], card={**CARD, "measured": [{"n": "1"}]})
    JudgePool.connect(urls)  # nor does what was measured change a verdict
    service(servers[2], card={**CARD, "packages": {"custos": "0.0.9"}})
    with pytest.raises(
        CustosError, match=r"different judges \(.*: packages .* and \{'custos': '0.0.9'\}\)"
    ):
        JudgePool.connect(urls)
    service(servers[2], card={**CARD, "name": "another"})
    with pytest.raises(CustosError, match=rf"different judges \({CARD['name']} and another\)"):
        JudgePool.connect(urls)
    with pytest.raises(CustosError, match="given twice"):
        JudgePool.connect([urls[0], urls[0]])


def test_keys_of_kept_verdicts_do_not_depend_on_the_order(servers: list[FakeServer]) -> None:
    urls = [service(server) for server in servers]
    there, back = JudgePool.connect(urls), JudgePool.connect(urls[::-1])
    [request] = requests(1)
    assert there.name == back.name and there.fingerprint(request) == back.fingerprint(request)
