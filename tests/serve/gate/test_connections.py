"""Connections: how fast an answer comes, and those that mean harm."""

import json
import logging
import os
import resource
import select
import socket
import sys
import time

import httpx
import pytest

from serve.calls.limits import Limits
from serve.gate import connections
from serve.gate.connections import address_group, raise_file_limit
from serve.queue.service import Service
from serve.server import Throttle
from tests.forks import run
from tests.serve.made_up import FakeJudge, row
from tests.serve.sockets import POST, first_line, send_raw, serving, wait_until


def test_an_answer_does_not_wait_for_a_packet_of_the_client(judge: FakeJudge) -> None:
    """Its head and body are packets of their own. Without TCP_NODELAY the second waits 40 ms."""
    seconds = []
    with serving(Service({"a": judge})) as client:
        for _ in range(40):
            start = time.monotonic()
            assert client.get("/health/live").status_code == 200
            seconds.append(time.monotonic() - start)
    assert min(seconds[20:]) < 0.03  # the first answers never wait


def test_slow_headers_end_the_connection(judge: FakeJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADERS_S", 0.2)
    with serving(Service({"a": judge})) as client:
        assert send_raw(client, b"POST /judge HTTP/1.1\r\nHo").recv(100) == b""
        assert send_raw(client, b"").recv(100) == b""
        assert client.post("/judge", json=row()).status_code == 200


BEGIN = b"POST /judge HTTP/1.1\r\nHost: x\r\n"
TRICKS = (
    BEGIN + b"Content-Length: 2, 2\r\n\r\n{}",
    b"POST /judge HTTP/1.1\nHost: x\ncontent-length: 2\n ,2\n\n{}",
    BEGIN + b"X: " + b" " * 40_000 + b"x\r\n\r\n",
    b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % (b"x" * 40_000),
    BEGIN + b"Content-Length: -3\r\n\r\n{}",
    BEGIN + b"Content-Length: 3x\r\n\r\n{}",
    BEGIN + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    BEGIN + b"Transfer-Encoding: gzip\r\n\r\n{}",
    b"POST /judge HTTP/1.1\r\n" + b"X: x\r\n" * 20_000 + b"\r\n",
    BEGIN + b"bad header\r\n\r\n",
    BEGIN + b"Host: y\r\n\r\n",
    b"POST /judge HTTP/9.9\r\nHost: x\r\n\r\n",
    b"GET / /judges HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
)


def test_header_tricks_are_4xx(judge: FakeJudge) -> None:
    with serving(Service({"a": judge}, Limits(body_seconds=1))) as client:
        for head in TRICKS:
            try:
                line = first_line(send_raw(client, head))
            except ConnectionResetError:  # answered and closed before all was sent
                line = "HTTP/1.1 400"
            assert line.startswith("HTTP/1.1 4"), (head[:90], line)
        assert judge.batches == []
        assert client.post("/judge", json=row()).status_code == 200


@pytest.mark.parametrize("num_bytes", [32_768, 32_769])
def test_headers_that_come_as_a_whole_are_limited(judge: FakeJudge, num_bytes: int) -> None:
    """In the first call of a connection, and in one that comes together with others."""
    short = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
    long = short.replace(b"\r\n\r\n", b"\r\nX: %s\r\nConnection: close\r\n\r\n")
    long %= b"x" * (num_bytes - len(long) + 2)
    assert len(long) == num_bytes
    status = 200 if num_bytes <= 32_768 else 400
    with serving(Service({"a": judge})) as client:
        for calls in (long, short + short + long):
            received = read_all(send_raw(client, calls))
            statuses = [int(part[:3]) for part in received.split(b"HTTP/1.1 ")[1:]]
            assert statuses == [200] * calls.count(short) + [status]


@pytest.mark.parametrize("num_headers", [100, 101])
def test_headers_are_few(judge: FakeJudge, num_headers: int) -> None:
    """Each takes the server longer than its bytes take to come: 6,000 in 30 kB took .04 s."""
    names = b"a:\r\n" * (num_headers - 2)
    call = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n" % names
    with serving(Service({"a": judge})) as client:
        status = read_all(send_raw(client, call)).split()[1]
    assert status == (b"200" if num_headers <= 100 else b"400")


def chunked(body: bytes, size: int) -> bytes:
    parts = (body[start : start + size] for start in range(0, len(body), size))
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return POST + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("num_bytes", "size", "status"),
    [
        (900, 1, 200),
        (5_000, 1, 400),
        (100_000, 50, 400),
        (900_000, 1000, 200),
        (9_000_000, 4096, 200),
    ],
)
def test_chunks_are_large_or_few(judge: FakeJudge, num_bytes: int, size: int, status: int) -> None:
    """A chunk takes the server about as long as a kilobyte: 40,000 come in one read."""
    body = json.dumps(row()).encode().ljust(num_bytes)
    with serving(Service({"a": judge})) as client:
        assert int(first_line(send_raw(client, chunked(body, size))).split()[1]) == status
        assert client.post("/judge", json=row()).status_code == 200


@pytest.mark.parametrize("chunks", [b"zz\r\n", b"1\r\n \r\n" * 2000])
@pytest.mark.parametrize("key", [b"", b"Authorization: Bearer kkkkkkkkkkkkkkkkkkkk\r\n"])
def test_a_broken_body_has_one_answer_and_no_traceback(
    judge: FakeJudge, chunks: bytes, key: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The call is being answered when the fault of its body is found."""
    call = POST + key + b"Transfer-Encoding: chunked\r\n\r\n" + chunks
    with serving(Service({"a": judge}), keys=["k" * 20]) as client:
        answer = answer_to(send_raw(client, call))
        assert answer.status_code == 400
        assert answer.json()["error"]["type"] == "invalid_request"
        assert client.get("/health/live").status_code == 200
    assert not [record for record in caplog.records if record.exc_info]


def test_a_refused_head_call_has_an_answer_without_a_body(
    judge: FakeJudge, caplog: pytest.LogCaptureFixture
) -> None:
    head = b"HEAD /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
    long = head.replace(b"\r\n\r\n", b"\r\nX: %s\r\n\r\n" % (b"x" * 40_000))
    with serving(Service({"a": judge})) as client:
        answer = read_all(send_raw(client, long))
        assert answer.startswith(b"HTTP/1.1 400") and answer.endswith(b"\r\n\r\n")
        after = read_all(send_raw(client, head + b"no HTTP\r\n\r\n"))
        assert after.count(b"HTTP/1.1 ") == 2 and after.endswith(b'"field":null}}')
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_bytes_that_come_one_by_one_are_read_together(
    judge: FakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_read = 0
    receive = connections.LimitedConnection.data_received

    def counted(connection: connections.LimitedConnection, data: bytes) -> None:
        nonlocal num_read
        num_read += 1
        receive(connection, data)

    monkeypatch.setattr(connections.LimitedConnection, "data_received", counted)
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: "
    with serving(Service({"a": judge})) as client:
        connection = send_raw(client, head)
        for _ in range(500):
            connection.sendall(b"x")
            time.sleep(0.001)
        connection.sendall(b"\r\n\r\n")
        assert first_line(connection) == "HTTP/1.1 200 OK"
    assert num_read < 50


def test_a_body_of_two_lengths_cannot_smuggle_a_call(judge: FakeJudge) -> None:
    """The second call is inside of the first for who heeds Content-Length."""
    body = b"0\r\n\r\nGET /judges HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = b"POST /judge HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    lengths = b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % len(body)
    with serving(Service({"a": judge}), keys=["k" * 20]) as client:
        received = read_all(send_raw(client, head + lengths + body))
    assert received.startswith(b"HTTP/1.1 400 ")
    assert received.count(b"HTTP/1.1 ") == 1


@pytest.fixture
def wordy(monkeypatch: pytest.MonkeyPatch) -> FakeJudge:
    """A judge whose answers are larger than what a connection holds; little time to read them."""
    monkeypatch.setattr(connections, "WRITE_S", 0.5, raising=False)
    monkeypatch.setattr(FakeJudge, "CRITIQUE", "w" * 200_000)
    return FakeJudge(tasks=("truthful-pair",))


PAIR = {"task": "truthful-pair", "mode": "critique", "question": "q", "responses": ["a", "b"]}

NUM_TEXTS = 40
"""8 MB together."""


def call_for_texts(*headers: bytes) -> bytes:
    body = json.dumps([PAIR] * NUM_TEXTS).encode()
    lines = (b"POST /judge HTTP/1.1", b"Host: localhost", b"Content-Type: application/json")
    return b"\r\n".join((*lines, b"Content-Length: %d" % len(body), *headers, b"", body))


@pytest.mark.parametrize("headers", [(), (b"Connection: close",)])
def test_clients_that_never_read_are_cut_off(wordy: FakeJudge, headers: tuple[bytes, ...]) -> None:
    with serving(Service({"a": wordy})) as client:
        idle = num_sockets()
        held = [send_raw(client, 2 * call_for_texts(*headers)) for _ in range(4)]
        wait_until(lambda: all(map(is_cut_off, held)), 40)
        wait_until(lambda: num_sockets() == idle + len(held))
        assert client.get("/health/ready").status_code == 200
        for connection in held:
            connection.close()


def test_a_slow_reader_gets_its_whole_answer(wordy: FakeJudge) -> None:
    with serving(Service({"a": wordy})) as client:
        connection = send_raw(client, call_for_texts(b"Connection: close"))
        connection.settimeout(30)
        received = bytearray()
        while part := connection.recv(1_000_000):
            received += part
            time.sleep(0.1)
    head, _, content = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    critiques = [verdict["critique"] for verdict in json.loads(content)["verdicts"]]
    assert [len(critique) for critique in critiques] == [200_000] * NUM_TEXTS


def test_an_address_has_only_so_many_connections(
    judge: FakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_REFUSED", 2, raising=False)
    monkeypatch.setattr(connections, "REFUSAL_S", 0.3, raising=False)
    with serving(Service({"a": judge}, Limits(address_connections=4))) as client:
        assert client.get("/health/ready").status_code == 200  # the first, which is kept
        held = [send_raw(client, b"GET") for _ in range(3)]
        told = [send_raw(client, b"") for _ in range(2)]
        ended = send_raw(client, b"")
        assert ended.recv(1) == b""
        told[0].sendall(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = answer_to(told[0])
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        assert answer.headers["Connection"] == "close"
        assert answer.json()["error"]["type"] == "unavailable"
        assert told[1].recv(1) == b""  # it was given little time
        assert client.get("/health/ready").status_code == 200
        with socket.socket() as elsewhere:
            elsewhere.bind(("127.0.0.2", 0))
            elsewhere.connect((client.base_url.host, client.base_url.port))
            elsewhere.sendall(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
            assert first_line(elsewhere) == "HTTP/1.1 200 OK"
        held.pop().close()
        wait_until(lambda: httpx.get(client.base_url.join("/health/live")).status_code == 200)
        for connection in held:
            connection.close()


@pytest.mark.parametrize(
    ("host", "group"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::7", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_addresses_of_one_client_are_one(host: str, group: str) -> None:
    assert address_group(host) == group


def raise_limits() -> None:
    logging.basicConfig()
    for hard in (10_000, 1024):
        resource.setrlimit(resource.RLIMIT_NOFILE, (700, hard))
        found = (raise_file_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))
        sys.stdout.write(f"{found}\n")


def test_as_many_files_are_opened_as_the_process_may() -> None:
    done = run(raise_limits)
    assert done.stdout.splitlines() == ["(2000, 2576, 10000)", "(448, 1024, 1024)"]
    assert done.stderr.count("only 1024 files may be open") == 1


def test_a_flood_of_one_message_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("a.flood")
    throttle = Throttle()
    logger.addFilter(throttle)
    for number in range(1000):
        logger.error("accept failed on socket %d", number)
        logger.error(f"out of files\nsocket {number}")
    assert caplog.messages == ["accept failed on socket 0", "out of files\nsocket 0"]
    throttle._next_at.clear()
    logger.error("accept failed on socket %d", 7)
    assert caplog.messages[2] == "accept failed on socket 7 (999 more before it)"


def is_cut_off(connection: socket.socket) -> bool:
    """Whether the other side has ended both directions of a connection, whatever is unread."""
    poll = select.poll()
    poll.register(connection, 0)
    return bool(poll.poll(0))


def num_sockets() -> int:
    """Open sockets of this process, in which both sides are."""
    links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    return sum(os.path.islink(link) and os.readlink(link).startswith("socket:") for link in links)


def read_all(connection: socket.socket) -> bytes:
    with connection.makefile("rb") as file:
        return file.read()


def answer_to(connection: socket.socket) -> httpx.Response:
    """The answer on a connection that the service then closes."""
    head, _, content = read_all(connection).partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
    return httpx.Response(int(status.split()[1]), headers=headers, content=content)
