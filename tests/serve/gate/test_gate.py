"""Ids, security headers, and exceptions that become a 500."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from serve.app import create_app
from serve.calls.limits import Limits
from serve.chat.contract import CHAT_CONTRACTS
from serve.queue.service import Service
from tests.serve.made_up import FakeJudge, SlowReader, row
from tests.serve.sockets import JSON, POST, send_raw, serving, wait_until


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


@pytest.fixture(scope="module")
def local() -> Iterator[httpx.Client]:
    """A client of a service without keys that listens for this machine alone."""
    with serving(Service({"a": FakeJudge()}), only_local=True) as client:
        yield client


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
        ("POST", {"Sec-Fetch-Site": "none"}, 200),
        ("POST", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("POST", {"Sec-Fetch-Site": "same-site"}, 403),
        ("GET", {"Sec-Fetch-Site": "same-site"}, 403),
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


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with serving(Service({"a": FakeJudge()})) as client:
        yield client


@pytest.mark.parametrize("path", ["/judge", "/judge/stream", "/v1/chat/completions"])
@pytest.mark.parametrize(
    "kind",
    ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"],
)
def test_other_kinds_are_refused(http: httpx.Client, path: str, kind: str) -> None:
    answer = http.post(path, content=json.dumps(row()), headers={"Content-Type": kind})
    assert answer.status_code == 415
    error = answer.json()["error"]
    assert (error["type"], error["field"]) == ("unsupported_media_type", "Content-Type")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le"])
def test_every_form_of_unicode_is_read(http: httpx.Client, encoding: str) -> None:
    text = json.dumps(row("In Málaga 西班牙", references=["Málaga 西班牙"]), ensure_ascii=False)
    answer = http.post("/judge", content=text.encode(encoding))
    assert (answer.status_code, answer.json()["label"]) == (200, "Correct")


def test_before_the_judges_are_loaded_everything_but_health_is_503(judge: FakeJudge) -> None:
    service = Service()
    with TestClient(create_app(service)) as client:
        assert client.get("/health/live").status_code == 200
        assert client.get("/health").json() == {"status": "starting"}
        assert client.get("/health/ready").json() == {"status": "starting"}
        answer = client.post("/judge", json=row())
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        service.open({"a": judge})
        assert client.get("/health").status_code == 200
        assert client.get("/health/ready").status_code == 200
        assert client.post("/judge", json=row()).status_code == 200


CONTRACT = CHAT_CONTRACTS.get("qa")
CHAT = {
    "model": "custos/qa",
    "messages": [{"role": "user", "content": CONTRACT.layouts[0].payload(right=True)}],
}


@pytest.mark.parametrize(
    ("path", "body", "asked", "answered"),
    [
        ("/judge", row("It is Paris."), "It is Paris.", '"label":"Correct"'),
        ("/judge/stream", row("It is Paris."), "It is Paris.", '"label":"Correct"'),
        ("/v1/chat/completions", CHAT, "the capital of France", "GRADE: C"),
        ("/v1/chat/completions", {**CHAT, "stream": True}, "the capital of France", '"C"'),
    ],
)
def test_contents_are_logged_only_when_asked(
    path: str, body: Any, asked: str, answered: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    for log_contents in (False, True):
        caplog.clear()
        app = create_app(Service({"a": FakeJudge()}), log_contents=log_contents)
        with TestClient(app) as client:
            answer = client.post(path, json=body, headers={"X-Request-ID": "the-call"})
            assert answer.status_code == 200
            assert client.post(path, json={"refused": "SECRET"}).status_code == 422
        lines = [line for line in caplog.messages if line.startswith("request the-call asked ")]
        assert len(lines) == log_contents
        for line in lines:
            assert asked in line and answered in line
        assert "SECRET" not in caplog.text


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


def test_bodies_of_one_key_leave_room_for_others(closed: FakeJudge) -> None:
    limits = Limits(body_bytes=100_000, held_bytes=300_000, key_queue_share=0.4)
    large = row("Paris" + "x" * 90_000)
    keys = {name: f"{name}'s-key-is-long-enough" for name in ("alice", "bob")}

    service = Service({"a": closed}, limits)
    with serving(service, keys=tuple(keys.values())) as client, ThreadPoolExecutor(2) as pool:

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


def test_an_answer_counts_until_its_client_has_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeJudge, "CRITIQUE", "w" * 200_000)
    judge = FakeJudge(tasks=("truthful-pair",))
    pair = {"task": "truthful-pair", "mode": "critique", "question": "q", "responses": ["a", "b"]}
    keys = {name: f"{name}'s-key-is-long-enough" for name in ("alice", "bob")}
    limits = Limits(held_bytes=50_000_000, key_queue_share=0.3)
    with serving(Service({"a": judge}, limits), keys=tuple(keys.values())) as client:

        def status(name: str) -> int:
            headers = {"Authorization": f"Bearer {keys[name]}"}
            return client.post("/judge", json=pair, headers=headers).status_code

        body = json.dumps([pair] * 100).encode()
        head = f"Authorization: Bearer {keys['alice']}\r\nContent-Length: {len(body)}\r\n\r\n"
        unread = send_raw(client, POST + head.encode() + body)  # more than a connection holds
        wait_until(lambda: status("alice") == 429, 20)
        assert status("bob") == 200
        unread.close()
        wait_until(lambda: status("alice") == 200, 20)


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
