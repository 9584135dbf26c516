"""Calls without a known key, of which an address may make only so many; over sockets."""

import socket

import httpx
import pytest
from starlette.requests import HTTPConnection

from serve.middleware import wrong_keys
from serve.queue.service import Service
from tests.serve.made_up import FakeJudge, row
from tests.serve.sockets import first_line, serving

KEY = "k" * 32


@pytest.fixture
def few_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wrong_keys, "MAX_TRIES", 5)


@pytest.mark.usefixtures("few_tries")
def test_many_wrong_keys_are_refused_and_known_ones_are_not(judge: FakeJudge) -> None:
    with serving(Service({"a": judge}), keys=[KEY]) as client:
        answers = [call(client, f"wrong {number}") for number in range(9)]
        assert [answer.status_code for answer in answers] == [401] * 5 + [429] * 4
        for answer in answers[5:]:
            assert answer.headers["Retry-After"] == "12"  # a minute for 5
            assert answer.json()["error"]["type"] == "overloaded"
            assert "'Authorization: Bearer KEY'" in answer.json()["error"]["message"]
        assert call(client, KEY).status_code == 200
        assert client.get("/health").status_code == 200
        with socket.socket() as elsewhere:
            elsewhere.bind(("127.0.0.2", 0))
            elsewhere.connect((client.base_url.host, client.base_url.port))
            elsewhere.sendall(b"GET /judges HTTP/1.1\r\nHost: x\r\n\r\n")
            assert first_line(elsewhere) == "HTTP/1.1 401 Unauthorized"


@pytest.mark.usefixtures("few_tries")
def test_tries_come_back(judge: FakeJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(wrong_keys, "monotonic", lambda: now)
    answers = wrong_keys.WrongKeys()
    monkeypatch.setattr(wrong_keys, "MAX_ADDRESSES", 3)

    def statuses(host: str, number: int) -> list[int]:
        conn = HTTPConnection({"type": "http", "client": (host, 1), "headers": []})
        return [answers.answer(conn, Exception("x")).status_code for _ in range(number)]

    assert statuses("192.0.2.1", 7) == [401] * 5 + [429] * 2
    now += 12
    assert statuses("192.0.2.1", 2) == [401, 429]
    now += 60
    assert statuses("192.0.2.1", 6) == [401] * 5 + [429]
    for number in range(3):  # as many others make the service forget it
        assert statuses(f"192.0.2.{2 + number}", 1) == [401]
    assert statuses("192.0.2.1", 1) == [401]


def call(client: httpx.Client, key: str) -> httpx.Response:
    return client.post("/judge", json=row(), headers={"Authorization": f"Bearer {key}"})
