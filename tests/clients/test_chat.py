"""One request: what is sent, what is tried again, what is shown."""

import asyncio
import base64
import json
import logging
import time
import traceback
from email.utils import formatdate
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from clients.chat import ChatClient, ModelServer, Prices, Reply, ServerRefusal, Usage
from clients.messages import ChatItem, Decoding, item_key
from judging.errors import CustosError
from judging.messages import Message
from tests.clients.fake_server import RESET, FakeServer, Say, Seen, completion

KEY = "sk-do-not-show-me-0123456789"


def item(id: str = "q1", text: str = "Hello?", images: tuple[str, ...] = ()) -> ChatItem:
    return ChatItem(id=id, messages=(Message(role="user", text=text, images=images),))


def server(fake: FakeServer, **options: Any) -> ModelServer:
    given: dict[str, Any] = {"api_key": KEY, "first_wait": 0.01, "tries": 3, "deadline": 20.0}
    return ModelServer(fake.url, "m", **(given | options))


def ask(to: ModelServer, what: ChatItem | None = None, **decoding: Any) -> Reply:
    async def once() -> Reply:
        async with ChatClient(to, Decoding(**decoding)) as client:
            return await client.complete(what or item())

    return asyncio.run(once())


def test_a_request_and_its_reply(fake: FakeServer) -> None:
    reply = ask(server(fake), temperature=0, top_p=0.9, max_tokens=64, seed=7)
    assert reply == Reply(
        text="Hello.",
        finish_reason="stop",
        usage=Usage(prompt_tokens=100, completion_tokens=10),
    )
    assert Prices(prompt=2.0, completion=10.0).cost(reply.usage or Usage()) == pytest.approx(3e-4)
    [seen] = fake.seen
    assert seen.body == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hello?"}],
        **{"temperature": 0, "top_p": 0.9, "max_tokens": 64, "seed": 7},
    }
    assert seen.headers["authorization"] == f"Bearer {KEY}"


def test_what_is_not_set_is_not_sent(fake: FakeServer) -> None:
    ask(server(fake, api_key=""))
    [seen] = fake.seen
    assert seen.body.keys() == {"model", "messages"}
    assert "authorization" not in seen.headers


@pytest.mark.parametrize("model", ["gpt-5-mini", "o4-mini", "openai/o3"])
def test_models_that_know_only_the_newer_name_of_the_limit(fake: FakeServer, model: str) -> None:
    ask(ModelServer(fake.url, model), max_tokens=9)
    assert fake.seen[0].body["max_completion_tokens"] == 9
    assert "max_tokens" not in fake.seen[0].body


def test_pictures_go_as_data_urls_before_the_text(fake: FakeServer, tmp_path: Path) -> None:
    path = tmp_path / "misnamed.jpg"
    Image.new("RGB", (3, 2), "red").save(path, format="PNG")
    url = "https://example.org/a.png"
    ask(server(fake), item(images=(str(path), url)))
    first, second, text = fake.seen[0].body["messages"][0]["content"]
    header, _, payload = first["image_url"]["url"].partition(",")
    assert header == "data:image/png;base64"
    assert Image.open(BytesIO(base64.b64decode(payload))).size == (3, 2)
    assert second["image_url"]["url"] == url
    assert text == {"type": "text", "text": "Hello?"}


def test_an_unreadable_picture_names_item_and_file(fake: FakeServer, tmp_path: Path) -> None:
    path = tmp_path / "text.png"
    path.write_text("no picture")
    with pytest.raises(CustosError, match=r"item 'q1': '.*text\.png' is not a readable picture"):
        ask(server(fake), item(images=(str(path),)))
    assert fake.seen == []


@pytest.mark.parametrize(
    "fault",
    [
        *(Say(status, "later") for status in (408, 409, 429, 500, 503)),
        RESET,
        Say(body="{"),
        Say(body='{"choices": []}'),
        Say(body='{"error": {"message": "busy"}}'),
    ],
    ids=lambda fault: fault if isinstance(fault, str) else f"{fault.status}-{fault.body[:12]}",
)
def test_faults_that_pass(fake: FakeServer, fault: Say | str) -> None:
    fake.faults.extend([fault, fault])
    assert ask(server(fake)).text == "Hello."
    assert len(fake.seen) == 3


def test_a_passed_deadline_passes(fake: FakeServer) -> None:
    fake.faults.append(Say(body=completion("late"), delay=60))
    assert ask(server(fake, deadline=2)).text == "Hello."
    assert len(fake.seen) == 2


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Say(500, "out of\n memory"), r"item 'q1': the server answered 500: out of memory \(3"),
        (RESET, r"item 'q1': \w+ .*\(3 tries\)"),
        (Say(body="{"), r"item 'q1': the answer is not a chat completion: \{ \(3 tries\)"),
        (Say(delay=9), r"item 'q1': no answer within 0\.2 s \(3 tries\)"),
    ],
)
def test_faults_that_stay(fake: FakeServer, fault: Say | str, message: str) -> None:
    fake.answer = lambda seen: fault
    with pytest.raises(CustosError, match=message):
        ask(server(fake, deadline=0.2))
    assert len(fake.seen) == 3


@pytest.mark.parametrize(
    "fault", [Say(400, "bad"), Say(422, "bad"), Say(503, "bad", {"x-should-retry": "false"})]
)
def test_a_refused_request_is_not_repeated(fake: FakeServer, fault: Say) -> None:
    fake.faults.append(fault)
    with pytest.raises(CustosError, match=rf"item 'q1': the server answered {fault.status}: bad$"):
        ask(server(fake))
    assert len(fake.seen) == 1


def test_nobody_listens() -> None:
    to = ModelServer("http://127.0.0.1:9/v1", "m", first_wait=0.01, tries=2)
    with pytest.raises(CustosError, match=r"item 'q1': ConnectError .* \(2 tries\)"):
        ask(to)


def test_retry_after_in_seconds(fake: FakeServer) -> None:
    fake.faults.append(Say(429, "slow down", {"Retry-After": "0.5"}))
    ask(server(fake))
    first, second = fake.seen
    assert 0.5 <= second.at - first.at < 30


def test_retry_after_as_a_date(fake: FakeServer) -> None:
    def later(seen: Seen) -> Say:
        if len(fake.seen) > 1:
            return Say(body=completion("Hello."))
        return Say(503, "", {"Retry-After": formatdate(time.time() + 3, usegmt=True)})

    fake.answer = later
    ask(server(fake))
    first, second = fake.seen
    assert second.at - first.at > 1.5  # a date has whole seconds, so the wait is 2 to 3


@pytest.mark.parametrize("value", ["3600", formatdate(time.time() + 3600, usegmt=True)])
def test_no_wait_is_longer_than_the_cap(fake: FakeServer, value: str) -> None:
    fake.faults.append(Say(429, "", {"Retry-After": value}))
    ask(server(fake, longest_wait=0.2))
    first, second = fake.seen
    assert 0.2 <= second.at - first.at < 30


@pytest.mark.parametrize("value", ["soon", "-5", "Wed, 21 Oct 2015 07:28:00 GMT"])
def test_a_retry_after_that_says_nothing(fake: FakeServer, value: str) -> None:
    fake.faults.append(Say(429, "", {"Retry-After": value}))
    assert ask(server(fake)).text == "Hello."


def test_waits_grow(fake: FakeServer) -> None:
    fake.faults.extend([Say(500)] * 4)
    ask(server(fake, first_wait=0.1, tries=5))
    times = [seen.at for seen in fake.seen]
    waits = [after - before for before, after in zip(times, times[1:], strict=False)]
    for wait, most in zip(waits, (0.1, 0.2, 0.4, 0.8), strict=True):
        assert wait >= most / 2


@pytest.mark.parametrize(
    ("status", "message"),
    [(401, r"the server refuses the API key \(401\)$"), (404, r"no model 'm' .*\(404\): gone")],
)
def test_a_refusal_of_everything(fake: FakeServer, status: int, message: str) -> None:
    fake.answer = lambda seen: Say(status, "gone")
    with pytest.raises(ServerRefusal, match=message):
        ask(server(fake))
    assert len(fake.seen) == 1


@pytest.mark.parametrize(
    ("url", "key", "message"),
    [
        ("localhost:8000/v1", "", "expected http"),
        ("http://user:secret@host/v1", "", "holds a password"),
        ("http://host/v1?key=secret", "", "holds a password or a query"),
        ("http://host:port/v1", "", "not an address"),
        ("http://host/v1", "secret\n", "API key: holds characters"),
        ("http://host/v1", "sécret", "API key: holds characters"),
    ],
)
def test_servers_that_cannot_be(url: str, key: str, message: str) -> None:
    with pytest.raises(CustosError, match=message) as caught:
        ModelServer(url, "m", api_key=key)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "fault",
    [
        Say(400, f"the key {KEY} may not do that"),
        Say(401, f"Incorrect API key provided: {KEY[:8]}***{KEY[-4:]}"),
        Say(404, f"nothing for {KEY}"),
        Say(500, json.dumps({"headers": {"Authorization": f"Bearer {KEY}"}})),
        Say(200, f"<html>{KEY}</html>"),
        RESET,
        Say(delay=9),
    ],
)
def test_the_key_is_never_shown(
    fake: FakeServer, fault: Say | str, caplog: pytest.LogCaptureFixture
) -> None:
    fake.answer = lambda seen: fault
    to = server(fake, tries=2, deadline=0.2)
    with caplog.at_level(logging.DEBUG), pytest.raises(CustosError) as caught:
        ask(to)
    shown = "".join(traceback.format_exception(caught.value))
    assert KEY[:8] not in shown
    assert KEY[-4:] not in shown
    assert "httpcore" in {record.name.partition(".")[0] for record in caplog.records}
    assert KEY not in caplog.text
    assert KEY not in repr(to)


def test_concurrency_is_bounded_and_used(fake: FakeServer) -> None:
    fake.answer = lambda seen: Say(body=completion(seen.text), delay=0.1)
    fake.faults.extend([Say(500), RESET, Say(429)])
    outcomes: dict[str, Reply | CustosError] = {}

    async def all_of_them() -> None:
        async with ChatClient(server(fake, concurrency=4), Decoding()) as client:
            await client.complete_all(
                (item(str(i), f"say {i}") for i in range(30)),
                lambda asked, outcome: outcomes.__setitem__(asked.id, outcome),
            )

    asyncio.run(all_of_them())
    assert fake.most_in_flight == 4
    assert len(outcomes) == 30
    for i in range(30):
        outcome = outcomes[str(i)]
        assert isinstance(outcome, Reply)
        assert outcome.text == f"say {i}"


def test_one_bad_item_does_not_stop_the_others(fake: FakeServer) -> None:
    fake.answer = lambda seen: Say(400) if seen.text == "say 3" else Say(body=completion("ok"))
    outcomes: dict[str, Reply | CustosError] = {}

    async def all_of_them() -> None:
        async with ChatClient(server(fake), Decoding()) as client:
            await client.complete_all(
                [item(str(i), f"say {i}") for i in range(6)],
                lambda asked, outcome: outcomes.__setitem__(asked.id, outcome),
            )

    asyncio.run(all_of_them())
    assert [id for id in sorted(outcomes) if isinstance(outcomes[id], CustosError)] == ["3"]


def test_the_key_of_an_item_follows_what_an_answer_depends_on(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.new("RGB", (2, 2), "red").save(path)
    asked = item(images=(str(path),))
    first = item_key(asked, "m", Decoding())
    assert first == item_key(asked.model_copy(update={"id": "other"}), "m", Decoding())
    assert first != item_key(asked, "n", Decoding())
    assert first != item_key(asked, "m", Decoding(temperature=1))
    assert first != item_key(item(text="Bye.", images=(str(path),)), "m", Decoding())
    Image.new("RGB", (2, 2), "blue").save(path)
    assert first != item_key(asked, "m", Decoding())
