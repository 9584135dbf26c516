"""A model that writes records, and steps over rows: against a server with faults."""

import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from clients.chat import Reply
from clients.messages import ChatItem
from data_prep.construction.model_writer import Request, load_rows, run_step
from data_prep.construction.steps.base import NOT_JSON, OTHER_SCHEMA, STEPS, StepReply, read_reply
from data_prep.errors import UnusableText
from judging.types import Message
from tests.cli.prep.made_up import write_rows
from tests.clients.fake_server import FakeServer, Say, Seen, completion
from tests.data_prep.construction.made_up import lines, reply, say, writer


class Number(BaseModel):
    value: int
    note: str = "unset"


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


def test_the_manifest_describes_the_files(fake: FakeServer, tmp_path: Path) -> None:
    fake.answer = answer
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
    assert (manifest["reused"], manifest["decoding"]) == (0, {})
    assert manifest["cost"] > 0


STEP = STEPS.get("simplevqa-atomic")
GOOD = {"original_question": "q?", "atomic_question": "What is it?"}


def test_a_wrong_schema_is_mended_once(fake: FakeServer, tmp_path: Path) -> None:
    def answer(seen: Seen) -> Say:
        turns = seen.body["messages"]
        number = turns[1]["content"].split()[3]
        if number == "0" and len(turns) == 2:
            return say(atomic="What is it?")
        if number == "1" or (number == "2" and len(turns) == 2):
            return Say(body=completion('{"original_question": "q?", "atomic'))
        if number == "3":
            return Say(body=cut_off(GOOD))
        return say(**GOOD)

    fake.answer = answer
    asked = [{"id": str(n), "question": f"When was {n} built?", "answer": "1"} for n in range(5)]
    rows = load_rows(write_rows(tmp_path / "in.jsonl", asked), STEP.row_type)
    manifest = run_step(STEP, rows, writer(fake, tmp_path / "out"))
    assert manifest["counts"] == {"in": 5, "out": 3}
    assert manifest["rejected"] == {"cut off": 1, "not JSON": 1}
    rejects = lines(tmp_path / "out" / "rejects.jsonl")
    assert [(row["id"], row["reason"]) for row in rejects] == [("1", "not JSON"), ("3", "cut off")]
    assert len(fake.seen) == 5 + 3
    assert manifest["usage"]["prompt_tokens"] == 800
    mended = next(
        seen.body["messages"]
        for seen in fake.seen
        if len(seen.body["messages"]) == 4 and "When was 0 " in seen.body["messages"][1]["content"]
    )
    assert json.loads(mended[2]["content"]) == {"atomic": "What is it?"}
    assert "field 'original_question'" in mended[3]["content"]
    again = run_step(STEP, rows, writer(fake, tmp_path / "out"))
    assert len(fake.seen) == 5 + 3
    assert (again["reused"], again["cost"]) == (8, manifest["cost"])


def cut_off(fields: dict[str, Any]) -> str:
    body = json.loads(completion(json.dumps(fields)))
    body["choices"][0]["finish_reason"] = "length"
    return json.dumps(body)


class Answer(StepReply):
    value: int
    note: str = ""


@pytest.mark.parametrize(
    "text",
    [
        '{"value": 3}',
        '```json\n{"value": 3}\n```',
        'Here it is: {"value": 3}. I hope that helps.',
        '<think>maybe {"value": 4}</think>\n{"value": 3}',
    ],
)
def test_the_object_is_found_in_what_stands_around_it(text: str) -> None:
    assert read_reply(reply(text), Answer) == Answer(value=3)


def test_a_run_of_braces_is_read_once() -> None:
    started = time.process_time()
    with pytest.raises(UnusableText, match="there is no JSON object"):
        read_reply(reply("{" * 100_000), Answer)
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *((text, NOT_JSON) for text in ("", "} {", '{"value": 3', '{"value": }')),
        ('{"value": "many"}', OTHER_SCHEMA),
        ('{"value": 3, "price": 1}', OTHER_SCHEMA),
    ],
)
def test_other_replies_can_be_mended(text: str, reason: str) -> None:
    with pytest.raises(UnusableText) as error:
        read_reply(reply(text), Answer)
    assert (error.value.reason, error.value.mendable) == (reason, True)


def test_every_step_sends_its_schema_and_keeps_unknown_fields() -> None:
    assert len(STEPS.names()) >= 8
    for step in STEPS:
        assert step.name.split("-")[0] in ("charthal", "simplevqa", "truthfulvqa")
        schema = step.reply_type.model_json_schema()
        assert schema["additionalProperties"] is False
        row = step.row_type.model_construct(id="1", source="web")
        assert row.with_fields(more=1) == {"id": "1", "source": "web", "more": 1}
