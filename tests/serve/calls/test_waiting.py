"""Deadlines, and clients that close the connection."""

import asyncio
import gc
import json
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from fastapi import Request
from fastapi.testclient import TestClient

from serve.calls import waiting
from serve.calls.context import (
    AccessKey,
    CallBytes,
    HeldBytes,
    access_key,
    call_bytes,
    require_open,
)
from serve.calls.errors import ApiError
from serve.calls.waiting import REST, SHORT, Readers, Turns, unless_gone
from serve.pictures.received import Decoders
from serve.queue.service import Service
from serve.requests import parse
from serve.requests.parse import parse_request
from tests.serve.chat.made_up import qa
from tests.serve.made_up import FakeJudge, SlowReader, picture, row
from tests.serve.sockets import POST, first_line, send_raw, serving, wait_until


def test_past_the_deadline_is_504_at_once_and_the_place_is_free(closed: FakeJudge) -> None:
    service = Service({"a": closed})
    with serving(service) as client, ThreadPoolExecutor(1) as pool:
        running = pool.submit(client.post, "/judge", json=row(id="kept"))
        wait_until(lambda: closed.batches != [])
        late = client.post("/judge", json=row(id="late"), headers={"X-Deadline-Ms": "50"})
        assert late.status_code == 504
        assert late.json()["error"]["type"] == "deadline_exceeded"
        assert service.queue().queued["a"] == 0
        closed.gate.set()
        assert running.result().status_code == 200
    assert closed.batches == [["kept"]]


def test_deadlines_that_are_none(client: TestClient) -> None:
    for given in ("0", "-1", "soon", "1.5", "1" * 20, ""):
        answer = client.post("/judge", json=row(), headers={"X-Deadline-Ms": given})
        assert answer.status_code == 422
        assert answer.json()["error"]["field"] == "X-Deadline-Ms"


@pytest.mark.parametrize("path", ["/judge", "/judge/stream", "/v1/chat/completions"])
def test_the_deadline_does_not_wait_for_a_body(judge: FakeJudge, path: str) -> None:
    with serving(Service({"a": judge})) as client:
        head = POST.replace(b"/judge", path.encode()) + b"X-Deadline-Ms: 100\r\n"
        slow = send_raw(client, head + b"Content-Length: 1000\r\n\r\n{")
        assert first_line(slow) == "HTTP/1.1 504 Gateway Timeout"
        slow.close()


def test_each_key_has_room_for_its_part_of_full_memory() -> None:
    held = HeldBytes(1200, caller_share=0.5)

    def call(key: str) -> CallBytes:
        token = access_key.set(AccessKey(key, b"") if key else None)
        try:
            return CallBytes(held)
        finally:
            access_key.reset(token)

    first, second = call("one"), call("two")
    first.take(600)
    second.take(600)
    quiet, loud = call("quiet"), call("one")
    quiet.take(400)  # an even part of three
    with pytest.raises(ApiError):
        quiet.take(1)
    with pytest.raises(ApiError):
        loud.take(1)
    with pytest.raises(ApiError):
        call("").take(1)  # of callers without a key nobody knows how many they are


def test_a_client_that_hangs_up_is_not_graded(closed: FakeJudge) -> None:
    service = Service({"a": closed})
    with serving(service) as client, ThreadPoolExecutor(1) as pool:
        running = pool.submit(client.post, "/judge", json=row(id="kept"))
        wait_until(lambda: closed.batches != [])
        rows = b'{"requests": [%s]}' % b",".join(
            [httpx.Request("POST", "/", json=row()).content] * 3
        )
        leaving = send_raw(client, POST + b"Content-Length: %d\r\n\r\n%s" % (len(rows), rows))
        wait_until(lambda: service.queue().queued["a"] == 3)
        leaving.close()
        wait_until(lambda: service.queue().queued["a"] == 0)
        closed.gate.set()
        assert running.result().status_code == 200
        assert service.queue().counters["abandoned"] == 3
    assert closed.batches == [["kept"]]


def test_a_client_that_hangs_up_on_a_text_ends_it() -> None:
    judge = FakeJudge(tasks=("truthful-pair",), pause_s=0.0)
    service = Service({"a": judge})
    pair = {"task": "truthful-pair", "mode": "critique", "question": "q", "responses": ["a", "b"]}
    judge.endless = True
    with serving(service) as client:
        with client.stream("POST", "/judge/stream", json=pair) as answer:
            assert next(answer.iter_lines()) == "event: critique"
        wait_until(lambda: service.is_idle)
        assert service.queue().counters["abandoned"] == 1


def test_a_stream_that_waits_stays_open_by_comments(
    closed: FakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "HEARTBEAT_S", 0.1, raising=False)
    service = Service({"a": closed})
    chat = qa("The capital of France is Paris.", stream=True)
    with serving(service) as client:
        for path, body, beginning, contents in (
            ("/judge/stream", row(), "event: verdict", '"label":"Correct"'),
            ("/v1/chat/completions", chat, "data: {", "data: [DONE]"),
        ):
            closed.gate.clear()
            with client.stream("POST", path, json=body, timeout=5) as answer:
                assert answer.status_code == 200
                lines = answer.iter_lines()
                assert [next(lines) for _ in range(4)] == [": ping", ""] * 2
                closed.gate.set()
                rest = [line for line in lines if line not in (": ping", "")]
            assert rest[0].startswith(beginning)
            assert any(contents in line for line in rest)


def test_a_deadline_that_ends_an_open_stream_is_its_last_event(
    closed: FakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "HEARTBEAT_S", 0.1, raising=False)
    service = Service({"a": closed})
    with serving(service) as client:
        late = client.post("/judge/stream", json=row(), headers={"X-Deadline-Ms": "500"})
        assert (late.status_code, late.text[:8]) == (200, ": ping\n\n")
        assert '"type":"deadline_exceeded"' in late.text.partition("event: error\n")[2]
        early = client.post("/judge/stream", json=row(), headers={"X-Deadline-Ms": "50"})
        assert early.status_code == 504
        closed.gate.set()


KEYS = {name: f"{name}'s-key-is-long-enough" for name in ("alice", "bob")}


def test_reading_ends_with_its_call_and_holds_up_no_other_key() -> None:
    judge = SlowReader(0.3)
    many = json.dumps([row(question="x" * 25_000)] * 20).encode()
    head = POST + f"Authorization: Bearer {KEYS['alice']}\r\n".encode()
    head += b"Content-Length: %d\r\nX-Deadline-Ms: 3000\r\n\r\n" % len(many)
    with serving(Service({"a": judge}), keys=tuple(KEYS.values())) as client:
        calls = [send_raw(client, head + many) for _ in range(4)]
        wait_until(lambda: judge.num_counted > 0)
        start = time.monotonic()
        bob = {"Authorization": f"Bearer {KEYS['bob']}"}
        answer = client.post("/judge", json=row(question="x" * 25_000), headers=bob)
        assert answer.status_code == 200
        assert time.monotonic() - start < 5  # all that alice sends takes 24 s to read
        for call in calls:
            assert first_line(call) == "HTTP/1.1 504 Gateway Timeout"
            call.close()
        time.sleep(0.9)
        num_counted = judge.num_counted
        time.sleep(0.4)
        assert judge.num_counted == num_counted < 40


def test_a_thread_that_still_reads_does_not_hold_up_the_end() -> None:
    judge = SlowReader()
    judge.reading.clear()
    with serving(Service({"a": judge})) as client:
        long = row(question="x" * 25_000)
        assert client.post("/judge", json=long, headers={"X-Deadline-Ms": "300"}).is_error
        start = time.monotonic()
    assert time.monotonic() - start < 10  # it reads for 20
    judge.reading.set()


def test_a_body_whose_client_leaves_is_not_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    num_read, gate = 0, threading.Event()

    def slowly(*args: Any) -> Any:
        nonlocal num_read
        require_open()
        num_read += 1
        gate.wait(0.05)
        return parse_request(*args)

    monkeypatch.setattr(parse, "parse_request", slowly)
    many = json.dumps([row("x" * 200)] * 200).encode()
    with serving(Service({"a": FakeJudge()})) as client:
        leaving = send_raw(client, POST + b"Content-Length: %d\r\n\r\n%s" % (len(many), many))
        wait_until(lambda: num_read > 0)
        leaving.close()
        time.sleep(0.5)
        assert num_read < 200  # of which each takes .05 s
        last = num_read
        time.sleep(0.2)
        assert num_read == last
        gate.set()
        assert client.post("/judge", json=row()).status_code == 200


def test_many_short_calls_of_one_key_do_not_hold_up_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them keeps the event loop for 20 ms, also those that have come already."""

    def slowly(*args: Any) -> Any:
        time.sleep(0.02)
        return parse_request(*args)

    monkeypatch.setattr(parse, "parse_request", slowly)
    body = json.dumps(row()).encode()
    calls = {
        name: POST + f"Authorization: Bearer {key}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        for name, key in KEYS.items()
    }
    with serving(Service({"a": FakeJudge()}), keys=tuple(KEYS.values())) as client:
        many = [send_raw(client, calls["alice"]) for _ in range(60)]
        for connection in many:
            connection.sendall(body)
        start = time.monotonic()
        assert first_line(send_raw(client, calls["bob"] + body)) == "HTTP/1.1 200 OK"
        assert time.monotonic() - start < 0.6  # all that alice sends takes 1.2 s
        for connection in many:
            assert first_line(connection) == "HTTP/1.1 200 OK"


def test_a_long_call_waits_for_few_turns_of_others() -> None:
    judge = SlowReader(0.2)
    slow, quick = ([row(question="x" * 25_000)] * 20, [row("x" * 25_000)] * 40)
    keys = [f"key-{number}-is-long-enough" for number in range(3)]

    def call(key: str, rows: Any) -> bytes:
        body = json.dumps(rows).encode()
        head = f"Authorization: Bearer {key}\r\nContent-Length: {len(body)}\r\n\r\n"
        return POST + head.encode() + body

    with serving(Service({"a": judge}), keys=keys) as client:
        others = [send_raw(client, call(key, slow)) for key in keys[1:] for _ in range(4)]
        wait_until(lambda: judge.num_counted > 2)
        start = time.monotonic()
        assert first_line(send_raw(client, call(keys[0], quick))) == "HTTP/1.1 200 OK"
        assert time.monotonic() - start < 6  # a turn of each row would take 20 s
        for connection in others:
            connection.close()


def test_after_a_long_text_the_model_has_longer_than_the_text_took() -> None:
    ended: list[float] = []

    def long() -> None:
        time.sleep(0.05)
        ended.append(time.monotonic())

    async def main() -> None:
        readers = Readers()
        await asyncio.gather(*(readers.read(SHORT + 1, long) for _ in range(3)))

    asyncio.run(main())
    _, second, third = sorted(ended)
    assert third - second > (1 + REST) * 0.05 - 0.02  # two are read at once, and then none


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


def test_a_picture_does_not_wait_for_all_pictures_of_another_key() -> None:
    order: list[str] = []

    async def decode(decoders: Decoders, name: str) -> None:
        access_key.set(AccessKey(name, b""))
        await decoders.decode(picture(), None)
        order.append(name)

    async def main() -> None:
        decoders = Decoders(30, num_processes=1)
        async with asyncio.TaskGroup() as group:
            for name in [*["alice"] * 12, "bob"]:
                group.create_task(decode(decoders, name))
        await decoders.close()

    asyncio.run(main())
    assert len(order) == 13
    assert order.index("bob") <= 2


def test_whoever_leaves_takes_no_slot_along() -> None:
    """Cancel one that waits, and one whose slot has come but who does not run yet."""

    async def main() -> None:
        turns = Turns(1)
        first_may_end = asyncio.Event()

        async def work(event: asyncio.Event | None = None) -> None:
            async with turns.slot():
                if event:
                    await event.wait()

        first = asyncio.create_task(work(first_may_end))
        waiting, next_one, last = (asyncio.create_task(work()) for _ in range(3))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        first_may_end.set()
        while not first.done():
            await asyncio.sleep(0)
        next_one.cancel()
        await asyncio.wait_for(last, 10)
        await asyncio.wait_for(work(), 10)

    asyncio.run(main())


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
