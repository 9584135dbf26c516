"""Bodies that are too large, too slow, or too many."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from fastapi.testclient import TestClient

from serve.limits import Limits
from serve.queue.service import Service
from tests.serve.made_up import FakeJudge, SlowReader, refused, row
from tests.serve.sockets import JSON, POST, first_line, send_raw, serving, wait_until

LIMITS = Limits()


def test_the_largest_body(client: TestClient) -> None:
    body = b'{"question": ' + b" " * (LIMITS.body_bytes - 14) + b"3"
    assert len(body) == LIMITS.body_bytes
    assert refused(client, body)[0] == "body"
    assert "larger than 20,000,000 bytes" in refused(client, body + b" ", 413)[1]


@pytest.mark.parametrize("chunked", [True, False])
def test_too_large_a_body_is_answered(judge: FakeJudge, chunked: bool) -> None:
    limits = Limits(body_bytes=2_000_000)

    def chunks() -> Iterator[bytes]:
        for _ in range(21):
            yield b" " * 100_000

    with serving(Service({"a": judge}, limits)) as client:
        content = chunks() if chunked else b"".join(chunks())
        answer = client.post("/judge", headers=JSON, content=content)
        assert answer.status_code == 413
        assert answer.json()["error"]["type"] == "too_large"
        assert client.post("/judge", json=row()).status_code == 200


def test_bodies_in_hand_are_bounded_together(closed: FakeJudge) -> None:
    limits = Limits(body_bytes=100_000, held_bytes=150_000)
    service = Service({"a": closed}, limits)
    large = row("Paris" + "x" * 90_000)
    with serving(service) as client, ThreadPoolExecutor(1) as pool:
        held = pool.submit(client.post, "/judge", json=large)
        wait_until(lambda: closed.batches != [])
        assert client.post("/judge", json=large).status_code == 429
        closed.gate.set()
        assert held.result().status_code == 200
        assert client.post("/judge", json=large).status_code == 200


def test_bodies_of_one_key_leave_room_for_others(closed: FakeJudge) -> None:
    limits = Limits(body_bytes=100_000, held_bytes=300_000, key_queue_share=0.4)
    large = row("Paris" + "x" * 90_000)
    keys = {name: f"{name}'s-key-is-long-enough" for name in ("alice", "bob")}

    service = Service({"a": closed}, limits)
    with (
        serving(service, keys=tuple(keys.values())) as client,
        ThreadPoolExecutor(2) as pool,
    ):

        def ask(name: str) -> httpx.Response:
            headers = {"Authorization": f"Bearer {keys[name]}"}
            return client.post("/judge", json=large, headers=headers)

        held = [pool.submit(ask, "alice")]
        wait_until(lambda: closed.batches != [])
        second = ask("alice")
        assert second.status_code == 429
        assert "bodies of this key" in second.json()["error"]["message"]
        held.append(pool.submit(ask, "bob"))
        wait_until(lambda: service.queue().queued == {"a": 1})
        closed.gate.set()
        assert [call.result().status_code for call in held] == [200, 200]
        assert ask("alice").status_code == 200


@pytest.mark.parametrize("where", ["reading", "gate"])
def test_bytes_count_until_nothing_holds_them(where: str) -> None:
    """A thread still reads the body, or the model its text, when the deadline is over."""
    judge = SlowReader()
    gate: threading.Event = getattr(judge, where)
    gate.clear()
    large = row(question="x" * 90_000)
    with serving(Service({"a": judge}, Limits(held_bytes=150_000))) as client:
        late = client.post("/judge", json=large, headers={"X-Deadline-Ms": "500"})
        assert late.status_code == 504
        assert client.post("/judge", json=large).status_code == 429
        gate.set()
        wait_until(lambda: client.post("/judge", json=large).status_code == 200, 10)


def test_a_slow_body_is_408(judge: FakeJudge) -> None:
    with serving(Service({"a": judge}, Limits(body_seconds=0.2))) as client:
        start = time.monotonic()
        slow = send_raw(client, POST + b"Content-Length: 100\r\n\r\n{")
        assert first_line(slow) == "HTTP/1.1 408 Request Timeout"
        assert time.monotonic() - start < 15
        assert client.post("/judge", json=row()).status_code == 200
