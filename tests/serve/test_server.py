"""The service behind a real socket: overload, deadlines, clients that leave, bad callers."""

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from judging import CustosError
from serve import server
from serve.limits import Limits
from serve.middleware.other_sites import is_loopback
from serve.queue.service import Service
from serve.server import bind, read_keys
from tests.serve.made_up import FakeJudge, row
from tests.serve.sockets import serving, wait_until


@pytest.fixture
def judge() -> FakeJudge:
    return FakeJudge()


@pytest.fixture
def closed() -> Iterator[FakeJudge]:
    """A judge that waits until its gate is opened."""
    judge = FakeJudge()
    judge.gate.clear()
    yield judge
    judge.gate.set()


@pytest.fixture(scope="module")
def local() -> Iterator[httpx.Client]:
    """A client of a service without keys that listens for this machine alone."""
    with serving(Service({"a": FakeJudge()}), only_local=True) as client:
        yield client


def raw(client: httpx.Client, sent: bytes) -> socket.socket:
    """Send bytes as they are."""
    connection = socket.create_connection((client.base_url.host, client.base_url.port or 0))
    connection.settimeout(10)
    connection.sendall(sent)
    return connection


def first_line(connection: socket.socket) -> str:
    return connection.makefile("rb").readline().decode().strip()


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {}, 200),
        ("POST", {"Host": "localhost:8000"}, 200),
        ("POST", {"Host": "[::1]:8000"}, 200),
        ("POST", {"Host": "evil.test"}, 403),
        ("POST", {"Host": "127.0.0.1.evil.test:8000"}, 403),
        ("POST", {"Host": "[::1"}, 403),
        ("POST", {"Sec-Fetch-Site": "same-origin"}, 200),
        ("POST", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("POST", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
        ("POST", {"Origin": "https://evil.test"}, 403),
        ("POST", {"Origin": "null"}, 403),
        ("POST", {"Host": "localhost:8000", "Origin": "http://localhost:8000"}, 200),
        ("GET", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("GET", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
    ],
)
def test_pages_of_other_sites_cannot_use_an_open_service(
    local: httpx.Client, method: str, headers: dict[str, str], status: int
) -> None:
    path, body = ("/judge", json.dumps(row())) if method == "POST" else ("/", None)
    answer = local.request(method, path, content=body, headers=headers)
    assert answer.status_code == status, answer.text
    if status == 403:
        assert answer.json()["error"]["type"] == "forbidden"


def test_with_a_key_any_name_and_page_will_do(judge: FakeJudge) -> None:
    with serving(Service({"a": judge}), keys=["k" * 16]) as client:
        headers = {"Authorization": f"Bearer {'k' * 16}", "Host": "a.test", "Origin": "http://b"}
        assert client.post("/judge", json=row(), headers=headers).status_code == 200


def test_grades_over_a_socket(judge: FakeJudge) -> None:
    with serving(Service({"a": judge})) as client:
        answer = client.post("/judge", json={"requests": [row("Paris"), row("Rome")]})
        assert [v["label"] for v in answer.json()["verdicts"]] == ["Correct", "Wrong"]
        assert answer.headers["X-Request-ID"]


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


def test_a_long_queue_in_tokens_is_429_but_an_empty_one_takes_any_call(closed: FakeJudge) -> None:
    service = Service({"a": closed}, Limits(queue_tokens=500))
    long = row("x" * 4000)
    with serving(service) as client, ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(client.post, "/judge", json=long)]
        wait_until(lambda: closed.batches != [])
        calls.append(pool.submit(client.post, "/judge", json=long))
        wait_until(lambda: service.queue().queued["a"] == 1)
        assert client.post("/judge", json=long).status_code == 429
        closed.gate.set()
        assert [call.result().status_code for call in calls] == [200, 200]


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


@pytest.mark.parametrize("given", ["0", "-1", "soon", "1.5", "1" * 20, ""])
def test_deadlines_that_are_none(judge: FakeJudge, given: str) -> None:
    with serving(Service({"a": judge})) as client:
        answer = client.post("/judge", json=row(), headers={"X-Deadline-Ms": given})
        assert answer.status_code == 422
        assert answer.json()["error"]["field"] == "X-Deadline-Ms"


def test_a_client_that_hangs_up_is_not_graded(closed: FakeJudge) -> None:
    service = Service({"a": closed})
    with serving(service) as client, ThreadPoolExecutor(1) as pool:
        running = pool.submit(client.post, "/judge", json=row(id="kept"))
        wait_until(lambda: closed.batches != [])
        rows = b'{"requests": [%s]}' % b",".join(
            [httpx.Request("POST", "/", json=row()).content] * 3
        )
        leaving = raw(
            client,
            b"POST /judge HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(rows), rows),
        )
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


def test_a_poisoned_request_fails_alone(closed: FakeJudge) -> None:
    service = Service({"a": closed})
    with serving(service) as client, ThreadPoolExecutor(9) as pool:
        calls = [pool.submit(client.post, "/judge", json=row())]
        wait_until(lambda: closed.batches != [])
        calls += [
            pool.submit(client.post, "/judge", json=row("break" if i == 3 else "Paris"))
            for i in range(8)
        ]
        wait_until(lambda: service.queue().queued["a"] == 8)
        closed.gate.set()
        verdicts = [call.result().json() for call in calls]
    statuses = sorted(verdict["status"] for verdict in verdicts)
    assert statuses == ["judge_error"] + ["scored"] * 8


@pytest.mark.parametrize("chunked", [True, False])
def test_too_large_a_body_is_answered(judge: FakeJudge, chunked: bool) -> None:
    limits = Limits(body_bytes=2_000_000)

    def chunks() -> Iterator[bytes]:
        for _ in range(21):
            yield b" " * 100_000

    with serving(Service({"a": judge}, limits)) as client:
        answer = client.post("/judge", content=chunks() if chunked else b"".join(chunks()))
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


def test_a_slow_body_is_408(judge: FakeJudge) -> None:
    with serving(Service({"a": judge}, Limits(body_seconds=0.2))) as client:
        start = time.monotonic()
        slow = raw(client, b"POST /judge HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        assert first_line(slow) == "HTTP/1.1 408 Request Timeout"
        assert time.monotonic() - start < 5
        assert client.post("/judge", json=row()).status_code == 200


def test_slow_headers_end_the_connection(judge: FakeJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEADERS_S", 0.2)
    with serving(Service({"a": judge})) as client:
        assert raw(client, b"POST /judge HTTP/1.1\r\nHo").recv(100) == b""
        assert raw(client, b"").recv(100) == b""
        assert client.post("/judge", json=row()).status_code == 200


@pytest.mark.parametrize(
    "head",
    [
        b"POST /judge HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n{}",
        b"POST /judge HTTP/1.1\r\nHost: x\r\nContent-Length: -3\r\n\r\n{}",
        b"POST /judge HTTP/1.1\r\nHost: x\r\nContent-Length: 3x\r\n\r\n{}",
        b"POST /judge HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
        b"POST /judge HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n{}",
        b"POST /judge HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"POST /judge HTTP/1.1\r\n" + b"X: x\r\n" * 20_000 + b"\r\n",
        b"POST /judge HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n",
        b"POST /judge HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"POST /judge HTTP/9.9\r\nHost: x\r\n\r\n",
        b"GET / /judges HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ],
)
def test_header_tricks_are_4xx(judge: FakeJudge, head: bytes) -> None:
    with serving(Service({"a": judge}, Limits(body_seconds=1))) as client:
        try:
            line = first_line(raw(client, head))
        except ConnectionResetError:  # answered and closed before all was sent
            line = "HTTP/1.1 400"
        assert line.startswith("HTTP/1.1 4"), line
        assert client.post("/judge", json=row()).status_code == 200
    assert judge.batches == [[""]]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "", "192.168.0.1", "127.0.0.1.example.org", "example.org", "2130706433"],
)
def test_other_hosts_need_a_key(host: str) -> None:
    with pytest.raises(CustosError, match="could call without a key"):
        bind(host, 0)


def test_a_guarded_service_may_be_reached_from_elsewhere() -> None:
    with bind("0.0.0.0", 0, is_guarded=True) as listener:
        assert listener.getsockname()[1]


def test_a_taken_port() -> None:
    with bind("127.0.0.1", 0) as listener:
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(CustosError, match=f"cannot listen on 127.0.0.1 port {port}"):
            bind("127.0.0.1", port)


def test_keys_come_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = "a" * 16, "b" * 40
    monkeypatch.setenv("CUSTOS_API_KEYS", f" {one},{two} ,")
    assert read_keys(None) == (one, two)
    monkeypatch.delenv("CUSTOS_API_KEYS")
    assert read_keys(None) == ()
    file = tmp_path / "keys"
    file.write_text(f"{two}\n\n{one}\n")
    assert read_keys(file) == (two, one)
    for content in ("", "short\n"):
        file.write_text(content)
        with pytest.raises(CustosError, match="holds no key|at least 16 characters"):
            read_keys(file)
    with pytest.raises(CustosError, match="cannot be read"):
        read_keys(tmp_path / "missing")
