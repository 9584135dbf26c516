"""Writers for a fake server, and replies in JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from clients.chat import Prices, Reply
from clients.connection import ModelServer
from clients.messages import Decoding
from data_prep.construction.model_writer import ModelWriter
from tests.clients.fake_server import FakeServer, Say, completion


def writer(fake: FakeServer, out: Path, model: str = "writer", **server: Any) -> ModelWriter:
    given = {"first_wait": 0.01, "longest_wait": 0.05, "tries": 3} | server
    return ModelWriter(
        ModelServer(fake.url, model, **given),
        Decoding(),
        Prices(prompt=1.0, completion=10.0),
        out,
        source={"name": "rows.jsonl"},
        command="custos prep construct",
    )


def say(**fields: Any) -> Say:
    return Say(body=completion(json.dumps(fields, ensure_ascii=False)))


def reply(text: str | dict[str, Any], finish_reason: str = "stop") -> Reply:
    written = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    return Reply(text=written, finish_reason=finish_reason)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
