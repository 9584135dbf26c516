"""Access keys: what answers without one, and with one."""

import base64
from typing import Any

import pytest
from fastapi.testclient import TestClient

from serve.app import create_app
from serve.queue.service import Service
from tests.serve.made_up import FakeJudge, row
from tests.serve.sockets import known

KEY = "k" * 32


@pytest.fixture
def judge() -> FakeJudge:
    return FakeJudge()


def basic(key: str) -> str:
    return base64.b64encode(f"me:{key}".encode()).decode()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": f"Bearer {KEY}x"},
        {"Authorization": f"Token {KEY}"},
        {"Authorization": "Basic !"},
        {"Authorization": "Bearer \xff".encode("latin-1")},
        {"Authorization": f"Basic {basic(KEY)}", "Sec-Fetch-Site": "cross-site"},
        {"Authorization": f"Basic {basic(KEY)}", "Sec-Fetch-Site": "same-site"},
        {"Authorization": f"Basic {basic(KEY)}", "Origin": "http://localhost:3000"},
    ],
)
def test_without_a_key_only_health_answers(judge: FakeJudge, headers: Any) -> None:
    with TestClient(create_app(Service({"a": judge}), keys=known("other" * 8, KEY))) as client:
        for path in ("/judges", "/tasks", "/metrics", "/openapi.json", "/nothing", "/"):
            answer = client.get(path, headers=headers)
            assert answer.status_code == 401
            error = answer.json()["error"]
            assert error["type"] == "unauthorized"
            assert "'Authorization: Bearer KEY'" in error["message"]
            assert "CUSTOS_KEY" in error["message"]
            assert error["message"].startswith(("no access key: ", "unknown access key: "))
            assert KEY not in answer.text
            assert "Bearer" in answer.headers["WWW-Authenticate"]
        assert client.post("/judge", json=row(), headers=headers).status_code == 401
        assert client.get("/health").json() == {"status": "ready"}
        assert client.get("/health/live").status_code == 200
        assert client.get("/health/ready").status_code == 200
    assert judge.batches == []


@pytest.mark.parametrize("given", [f"Bearer {KEY}", f"bearer  {KEY} ", f"Basic {basic(KEY)}"])
def test_with_a_key_everything_answers(judge: FakeJudge, given: str) -> None:
    with TestClient(create_app(Service({"a": judge}), keys=known("other" * 8, KEY))) as client:
        client.headers["Authorization"] = given
        assert client.get("/judges").status_code == 200
        assert client.post("/judge", json=row()).status_code == 200
