"""Ids, security headers, and exceptions that become a 500."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from serve.queue.service import Service
from tests.serve.made_up import FakeJudge, row
from tests.serve.sockets import first_line, send_raw, serving


def test_request_ids(client: TestClient) -> None:
    given = client.get("/judges", headers={"X-Request-ID": "Call_7.a-b"})
    assert given.headers["X-Request-ID"] == "Call_7.a-b"
    for bad in ("", "a b", "x" * 129):
        made = client.get("/nothing", headers={"X-Request-ID": bad}).headers["X-Request-ID"]
        assert len(made) == 32
    first, second = (client.get("/judges").headers["X-Request-ID"] for _ in range(2))
    assert first != second


def test_security_headers_and_timings(client: TestClient) -> None:
    answer = client.post("/judge", json=row())
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-store"
    assert float(answer.headers["X-Queue-Ms"]) >= 0
    assert float(answer.headers["X-Inference-Ms"]) > 0
    assert answer.headers["X-Not-Measured"].endswith(" on hieval-qs")
    assert client.get("/nothing").headers["X-Frame-Options"] == "DENY"


def test_a_fault_of_the_service_is_a_500_without_internals(
    client: TestClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(judges: Any, request: Any) -> str:
        raise RuntimeError("secret of /root/.ssh")

    monkeypatch.setattr("serve.requests.parse.choose_judge", broken)
    answer = client.post("/judge", json=row(), headers={"X-Request-ID": "call-8"})
    assert answer.status_code == 500
    assert answer.headers["X-Request-ID"] == "call-8"
    assert answer.json()["error"]["type"] == "internal"
    assert "call-8" in answer.json()["error"]["message"]
    assert "secret" not in answer.text
    assert "secret" in caplog.text


def test_a_long_method_makes_no_long_log(
    judge: FakeJudge, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="custos.serve")
    with serving(Service({"a": judge})) as client:
        method = b"X" * 20_000
        assert first_line(send_raw(client, method + b" /judge HTTP/1.1\r\nHost: x\r\n\r\n"))
    [line] = [message for message in caplog.messages if " XXX" in message]
    assert len(line) < 150
