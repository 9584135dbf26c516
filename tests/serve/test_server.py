"""The service behind a real socket."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest
import uvicorn

from judging import CustosError
from serve.app import create_app
from serve.calls import MAX_BODY_BYTES
from serve.server import bind, is_loopback, url
from tests.serve.made_up import FakeJudge, row


@contextmanager
def serving(judge: FakeJudge, max_calls: int = 64) -> Iterator[httpx.Client]:
    """The app under uvicorn on a free port."""
    app = create_app({"fake": judge}, max_calls=max_calls)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    with bind("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            with httpx.Client(base_url=url(listener), timeout=20) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join()


def test_grades_over_a_socket() -> None:
    with serving(FakeJudge()) as client:
        answer = client.post("/judge", json={"requests": [row("Paris"), row("Rome")]})
        assert [v["label"] for v in answer.json()["verdicts"]] == ["Correct", "Wrong"]
        assert answer.headers["X-Request-ID"]


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("waited in vain")


def test_the_loop_answers_while_the_judge_works_in_its_one_thread() -> None:
    judge = FakeJudge()
    judge.gate.clear()
    with serving(judge) as client, ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(client.post, "/judge", json=row(id=str(i))) for i in range(3)]
        try:
            wait_until(lambda: judge.batches != [])
            assert client.get("/health/live").status_code == 200
            assert len(judge.batches) == 1
        finally:
            judge.gate.set()
        assert sorted(call.result().json()["id"] for call in calls) == ["0", "1", "2"]
    assert judge.threads == {"judge_0"}


def test_a_full_queue_turns_calls_away() -> None:
    judge = FakeJudge()
    judge.gate.clear()
    with serving(judge, max_calls=2) as client, ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(client.post, "/judge", json=row()) for _ in range(2)]
        try:
            wait_until(lambda: client.get("/health/ready").status_code == 503)
            turned_away = client.post("/judge", json=row())
        finally:
            judge.gate.set()
        assert turned_away.status_code == 429
        assert turned_away.headers["Retry-After"] == "1"
        assert turned_away.json()["error"]["type"] == "overloaded"
        assert [call.result().status_code for call in calls] == [200, 200]
        assert client.get("/health/ready").status_code == 200
        assert client.post("/judge", json=row()).status_code == 200


@pytest.mark.parametrize("chunked", [True, False])
def test_too_large_a_body_is_answered(chunked: bool) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(MAX_BODY_BYTES // 100_000 + 1):
            yield b" " * 100_000

    with serving(FakeJudge()) as client:
        answer = client.post("/judge", content=chunks() if chunked else b"".join(chunks()))
        assert answer.status_code == 413
        assert answer.json()["error"]["type"] == "too_large"
        assert client.post("/judge", json=row()).status_code == 200


def test_a_client_that_leaves_midway_frees_its_place() -> None:
    with serving(FakeJudge(), max_calls=1) as client:
        address = (client.base_url.host, client.base_url.port or 0)
        with socket.create_connection(address) as leaving:
            leaving.sendall(b"POST /judge HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
            wait_until(lambda: client.get("/health/ready").status_code == 503)
            assert client.post("/judge", json=row()).status_code == 429
        wait_until(lambda: client.get("/health/ready").status_code == 200)
        assert client.post("/judge", json=row()).status_code == 200


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "", "192.168.0.1", "127.0.0.1.example.org", "example.org", "2130706433"],
)
def test_other_hosts_are_refused(host: str) -> None:
    with pytest.raises(CustosError, match="there are no access keys yet"):
        bind(host, 0)


def test_a_taken_port() -> None:
    with bind("127.0.0.1", 0) as listener:
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(CustosError, match=f"cannot listen on 127.0.0.1 port {port}"):
            bind("127.0.0.1", port)
