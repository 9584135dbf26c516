"""One conversation or many: what is sent, and what comes back."""

import asyncio
import base64
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from clients.chat import ChatClient, Prices, Reply, Usage
from clients.connection import ModelServer
from clients.messages import Decoding, item_key
from judging.errors import CustosError
from tests.clients.asking import KEY, ask, item, server
from tests.clients.fake_server import RESET, FakeServer, Say, completion


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
    with pytest.raises(CustosError, match=r"'q1': field 'images': '.*text\.png' is not a readable"):
        ask(server(fake), item(images=(str(path),)))
    assert fake.seen == []


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
