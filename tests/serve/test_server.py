"""Addresses, access keys, and connections that mean harm."""

import pytest

from judging import CustosError
from serve import server
from serve.limits import Limits
from serve.queue.service import Service
from serve.server import bind
from tests.serve.made_up import FakeJudge, row
from tests.serve.sockets import first_line, send_raw, serving


def test_slow_headers_end_the_connection(judge: FakeJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEADERS_S", 0.2)
    with serving(Service({"a": judge})) as client:
        assert send_raw(client, b"POST /judge HTTP/1.1\r\nHo").recv(100) == b""
        assert send_raw(client, b"").recv(100) == b""
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
            line = first_line(send_raw(client, head))
        except ConnectionResetError:  # answered and closed before all was sent
            line = "HTTP/1.1 400"
        assert line.startswith("HTTP/1.1 4"), line
        assert client.post("/judge", json=row()).status_code == 200
    assert judge.batches == [[""]]


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
