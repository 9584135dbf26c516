"""A model that writes records: requests, rejects, and the files of the folder."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from clients.chat import Prices, Reply
from clients.connection import ModelServer
from clients.jobs import JobProgress
from clients.messages import ChatItem, Decoding
from data_prep.construction.model_writer import ModelWriter, Request
from data_prep.errors import UnusableText
from judging.messages import Message
from tests.clients.fake_server import FakeServer, Say, Seen, completion


class Number(BaseModel):
    value: int
    note: str = "unset"


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    with FakeServer().running() as server:
        server.answer = answer
        yield server


def answer(seen: Seen) -> Say:
    return Say(500, "no") if "fail" in seen.text else Say(body=completion(seen.text))


def read(reply: Reply) -> Number:
    if not reply.text.isdigit():
        raise UnusableText("no number", f"got '{reply.text}'")
    return Number(value=int(reply.text))


def requests(*texts: str) -> list[Request[Number]]:
    return [
        Request(ChatItem(id=text, messages=(Message(role="user", text=text),)), read)
        for text in texts
    ]


def writer(fake: FakeServer, out: Path, **fields: Any) -> ModelWriter:
    return ModelWriter(
        ModelServer(fake.url, "writer", first_wait=0.01, tries=1),
        Decoding(max_tokens=5),
        Prices(prompt=1.0, completion=10.0),
        out,
        source={"name": "numbers"},
        command="custos prep numbers",
        **fields,
    )


def test_records_and_rejects_come_in_the_order_of_the_requests(
    fake: FakeServer, tmp_path: Path
) -> None:
    outcome = writer(fake, tmp_path).ask(requests("7", "fail", "three", "5"))
    assert [record.value for record in outcome.records] == [7, 5]
    assert [(reject.id, reject.reason) for reject in outcome.rejects] == [
        ("fail", "request failed"),
        ("three", "no number"),
    ]
    assert outcome.rejects[1].detail == "got 'three'"


def test_the_manifest_describes_the_files(fake: FakeServer, tmp_path: Path) -> None:
    model_writer = writer(fake, tmp_path)
    outcome = model_writer.ask(requests("7", "three"))
    files: dict[str, Iterable[BaseModel | Mapping[str, Any]]] = {
        "numbers.jsonl": outcome.records,
        "lines.jsonl": [{"a": 1}],
    }
    manifest = model_writer.write(outcome, files, {"counts": {"odd": 1}})
    assert manifest == json.loads((tmp_path / "manifest.json").read_text())
    assert list(manifest)[:4] == ["source", "model", "decoding", "outputs"]
    assert list(manifest)[-2:] == ["version", "command"]
    for name, sha256 in manifest["outputs"].items():
        assert sha256 == hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    assert set(manifest["outputs"]) == {"numbers.jsonl", "lines.jsonl", "rejects.jsonl"}
    assert (tmp_path / "numbers.jsonl").read_text() == '{"value":7}\n'
    assert (tmp_path / "lines.jsonl").read_text() == '{"a": 1}\n'
    assert (manifest["counts"], manifest["rejected"]) == ({"odd": 1}, {"no number": 1})
    assert (manifest["reused"], manifest["decoding"]) == (0, {"max_tokens": 5})
    assert manifest["cost"] > 0


def test_a_second_run_asks_only_for_what_failed(fake: FakeServer, tmp_path: Path) -> None:
    writer(fake, tmp_path).ask(requests("7", "fail", "three"))
    num_requests = len(fake.seen)
    fake.answer = lambda seen: Say(body=completion("8"))
    progress: list[JobProgress] = []
    outcome = writer(fake, tmp_path, on_progress=progress.append).ask(
        requests("7", "fail", "three")
    )
    assert [seen.text for seen in fake.seen[num_requests:]] == ["fail"]
    assert [record.value for record in outcome.records] == [7, 8]
    assert outcome.job.num_reused == 2
    assert progress[-1].num_done == 3


def test_files_that_cannot_be_written_leave_no_manifest(fake: FakeServer, tmp_path: Path) -> None:
    model_writer = writer(fake, tmp_path)
    outcome = model_writer.ask(requests("7"))
    model_writer.write(outcome, {"numbers.jsonl": outcome.records}, {})

    def broken() -> Iterator[dict[str, str]]:
        yield {"half": "written"}
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        model_writer.write(outcome, {"numbers.jsonl": broken()}, {})
    assert not (tmp_path / "manifest.json").exists()
    assert (tmp_path / "numbers.jsonl").read_text() == '{"value":7}\n'
