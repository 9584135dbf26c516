"""What was asked and answered is in the log if the operator wants it there, whatever the route."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from serve.app import create_app
from serve.chat.contract import CHAT_CONTRACTS
from serve.queue.service import Service
from tests.serve.made_up import FakeJudge, row

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
