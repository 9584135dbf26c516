"""Routes that tell what is served, and routes that are not there."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from serve import app
from serve.app import create_app
from serve.limits import CallLimits, Limits
from serve.middleware.ready import HEALTH_ROUTES
from serve.queue.service import Service
from tests.serve.made_up import FakeJudge, row


def test_unknown_routes_have_the_same_shape(client: TestClient) -> None:
    error = client.post("/chat/completions", json={}).json()["error"]
    assert error["type"] == "not_found"
    assert "GET /openapi.json" in error["message"] and "ends with /v1" in error["message"]
    answer = client.get("/judge")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
    assert answer.json()["error"]["type"] == "method_not_allowed"
    assert answer.json()["error"]["message"] == "this route takes POST"
    assert client.get("/docs").status_code == client.get("/redoc").status_code == 404


def test_what_is_dear_to_describe_is_described_once(
    judge: FakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Counter[str]()

    def counted(name: str) -> Callable[..., Any]:
        work = getattr(app, name)

        def count(*of: Any) -> Any:
            calls[name] += 1
            return work(*of)

        return count

    for name in ("openapi", "describe_task"):
        monkeypatch.setattr(app, name, counted(name))
    with TestClient(create_app(Service({"a": judge}))) as client:
        for path in ("/openapi.json", "/tasks", "/"):
            first, second = client.get(path), client.get(path)
            assert first.status_code == 200
            assert first.content == second.content
    assert calls == {"openapi": 1, "describe_task": 1}


def test_judges_and_health(client: TestClient) -> None:
    assert client.get("/judges").json()["judges"] == [
        {
            "name": name,
            "tasks": {"hieval-qs": []},
            "packages": {"custos": "0.1.0"},
            "measured": [f"judge {name}: not measured on this task (hieval-qs)"],
        }
        for name in ("first", "second")
    ]
    assert client.get("/health/live").json() == {"status": "live"}
    assert client.get("/health/ready").json() == {"status": "ready"}
    for route in HEALTH_ROUTES:
        answer = client.head(route)
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")


def test_the_limits_that_are_told_are_those_that_are_kept(judge: FakeJudge) -> None:
    own = Limits(requests=3, field_chars=30, items=20, images=1, body_bytes=900, deadline_s=9)
    with TestClient(create_app(Service({"a": judge}, own))) as client:
        told = client.get("/judges").json()["limits"]
        assert CallLimits(**told) == own.of_a_call()
        assert {**asdict(own), **told} == asdict(own)

        def status(body: object) -> int:
            return client.post("/judge", json=body).status_code

        request = row("x")
        assert status([request] * told["requests"]) == 200
        assert status([request] * (told["requests"] + 1)) == 422
        for size, expected in ((told["field_chars"], 200), (told["field_chars"] + 1, 422)):
            assert status({**request, "response": "x" * size}) == expected
        for size, expected in ((told["items"], 200), (told["items"] + 1, 422)):
            assert status({**request, "references": ["x"] * size}) == expected
        body = json.dumps(request)
        for size, expected in ((told["body_bytes"], 200), (told["body_bytes"] + 1, 413)):
            answer = client.post(
                "/judge",
                content=body.ljust(size),
                headers={"Content-Type": "application/json"},
            )
            assert answer.status_code == expected
        picture = "data:image/png;base64,eA=="
        refused = client.post("/judge", json={**request, "images": [picture] * 2}).json()
        assert refused["error"]["message"] == f"more than {told['images']} pictures"


def test_the_documentation_names_every_limit_that_is_told() -> None:
    text = (Path(__file__).parents[2] / "docs/serving.md").read_text(encoding="utf-8")
    section = text.split("### What one call may cost")[1].split("\n### ")[0]
    assert [name for name in asdict(CallLimits()) if f"`{name}`" not in section] == []
