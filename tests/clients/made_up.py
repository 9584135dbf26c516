"""Settings and requests for the tests of this folder."""

from __future__ import annotations

from typing import Any

from clients.connection import ModelServer
from judging import JudgeRequest
from judging.scoring.engine import Sampling
from tests.clients.fake_server import FakeServer

SHORT = Sampling(max_new_tokens=12, temperature=0)


def server(fake: FakeServer, **options: Any) -> ModelServer:
    given: dict[str, Any] = {"model": "m", "first_wait": 0.01, "tries": 2, "deadline": 120.0}
    return ModelServer(fake.url, **(given | options))


def pair(**fields: Any) -> JudgeRequest:
    given = {
        "task": "truthful-pair",
        "question": "Is the lighthouse green?",
        "response_a": "Yes, it is green.",
        "response_b": "No; it is brown.",
    }
    return JudgeRequest.model_validate(given | fields)
