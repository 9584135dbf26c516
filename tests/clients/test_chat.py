"""Conversations: what is sent, what comes back, and the keys that it is kept under."""

from __future__ import annotations

import asyncio
import base64
import math
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from clients.chat import ChatClient, ChatToken, Prices, Reply, TokenLogprob, Usage
from clients.connection import ModelServer, RequestRefused
from clients.kept_verdicts import request_key
from clients.messages import Decoding, item_key, one_user_turn, picture_url
from clients.remote_judge import label_masses, tokens_after
from judging import JudgeRequest
from judging.errors import CustosError
from judging.files.pictures import read_image
from judging.messages import Message, conversation
from tests.clients.fake_server import RESET, FakeServer, Say, Seen, completion
from tests.clients.made_up import KEY, ask, item, keyed
from tests.serve.made_up import FakeJudge, row


def test_a_request_and_its_reply(fake: FakeServer) -> None:
    reply = ask(keyed(fake), temperature=0, top_p=0.9, max_tokens=64, seed=7)
    usage = Usage(prompt_tokens=100, completion_tokens=10)
    assert reply == Reply(text="Hello.", finish_reason="stop", usage=usage)
    assert Prices(prompt=2.0, completion=10.0).cost(usage) == pytest.approx(3e-4)
    [seen] = fake.seen
    assert seen.body == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hello?"}],
        **{"temperature": 0, "top_p": 0.9, "max_tokens": 64, "seed": 7},
    }
    assert seen.headers["authorization"] == f"Bearer {KEY}"

    ask(keyed(fake, api_key=""))
    seen = fake.seen[1]
    assert seen.body.keys() == {"model", "messages"}, "what is not set is not sent"
    assert "authorization" not in seen.headers
    for model in ("gpt-5-mini", "o4-mini", "openai/o3"):  # they know the newer name alone
        ask(ModelServer(fake.url, model), max_tokens=9)
        assert fake.seen[-1].body["max_completion_tokens"] == 9
        assert "max_tokens" not in fake.seen[-1].body


def test_pictures_go_as_data_urls_before_the_text(fake: FakeServer, tmp_path: Path) -> None:
    path, broken = tmp_path / "misnamed.jpg", tmp_path / "text.png"
    Image.new("RGB", (3, 2), "red").save(path, format="PNG")
    url = "https://example.org/a.png"
    ask(keyed(fake), item(images=(str(path), url)))
    first, second, text = fake.seen[0].body["messages"][0]["content"]
    header, _, payload = first["image_url"]["url"].partition(",")
    assert header == "data:image/png;base64"
    assert Image.open(BytesIO(base64.b64decode(payload))).size == (3, 2)
    assert second["image_url"]["url"] == url
    assert text == {"type": "text", "text": "Hello?"}
    broken.write_text("no picture")
    with pytest.raises(CustosError, match=r"'q1': field 'images': '.*text\.png'"):
        ask(keyed(fake), item(images=(str(broken),)))
    assert len(fake.seen) == 1


def test_concurrency_is_bounded_and_used_and_one_bad_item_stops_no_other(fake: FakeServer) -> None:
    def answer(seen: Seen) -> Say:
        return Say(400) if seen.text == "say 3" else Say(body=completion(seen.text), delay=0.1)

    fake.answer = answer
    fake.faults.extend([Say(500), RESET, Say(429)])
    outcomes: dict[str, Reply | CustosError] = {}

    async def all_of_them() -> None:
        async with ChatClient(keyed(fake, concurrency=4), Decoding()) as client:
            await client.complete_all(
                (item(str(i), f"say {i}") for i in range(30)),
                lambda asked, outcome: outcomes.__setitem__(asked.id, outcome),
            )

    asyncio.run(all_of_them())
    assert fake.most_in_flight == 4
    assert isinstance(outcomes.pop("3"), RequestRefused)
    said = {id: each.text for id, each in outcomes.items() if isinstance(each, Reply)}
    assert said == {str(i): f"say {i}" for i in range(30) if i != 3}


def _fields(turn: Message) -> list[str]:
    """Return the fields of a turn as a reader of the marks sees them."""
    fields: list[str] = []
    for line in turn.text.split("\n"):
        if line.startswith("> "):
            fields[-1] += f"\n{line[2:]}"
        else:
            fields.append(line)
    return fields


MARKS = ("Response: ", "References: x", "\n", "\r\n", "\u2028", "> ", "<|im_end|>", "a")


@given(st.lists(st.lists(st.sampled_from(MARKS)).map("".join), min_size=2, max_size=4))
def test_no_line_of_a_field_looks_like_another_field(texts: list[str]) -> None:
    texts = [f"{number}: {text}" for number, text in enumerate(texts)]
    system, user = one_user_turn(conversation("Grade it.", texts))
    assert system.text == "Grade it."
    assert "<|" not in user.text
    assert len(user.text.splitlines()) == len(user.text.split("\n"))
    expected = ["\n".join(text.replace("<|", "< |").splitlines()) for text in texts]
    assert _fields(user) == expected
    # Pictures and a begun answer stay where they were.
    begun = Message(role="assistant", text="c")
    system, user, answer = one_user_turn((*conversation("Grade it.", texts, ("x.png",)), begun))
    assert (system.images, user.images, answer.text) == ((), ("x.png",), "c")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("a.png", "png"), ("a.jpg", "jpeg"), ("a.webp", "webp")),
        *((f"a.{name}", "png") for name in ("gif", "bmp", "tiff", "avif")),
    ],
)
def test_servers_get_pictures_of_kinds_that_all_of_them_read(
    tmp_path: Path, name: str, kind: str
) -> None:
    """Show a judge behind a service the same pixels as one on this machine."""
    noise = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    file = tmp_path / name
    frames = {"save_all": True, "append_images": [Image.new("RGB", (30, 20))]}
    Image.fromarray(noise).save(file, **(frames if name == "a.gif" else {}))
    url = picture_url(str(file))
    assert url.startswith(f"data:image/{kind};base64,")
    assert read_image(url).tobytes() == read_image(str(file)).tobytes()


def test_keys_follow_what_an_answer_depends_on(tmp_path: Path) -> None:
    judge, path = FakeJudge(), tmp_path / "a.png"

    def key(**fields: Any) -> str:
        return request_key(judge, JudgeRequest.model_validate(row(**fields)))

    keys = {key(), key(seed=1), key(images=[str(path)])}
    asked = item(images=(str(path),))
    for color in ("red", "blue"):
        Image.new("RGB", (2, 2), color).save(path)
        first = item_key(asked, "m", Decoding())
        assert first == item_key(asked.model_copy(update={"id": "other"}), "m", Decoding())
        keys |= {first, key(images=[str(path)])}
    keys |= {item_key(asked, "n", Decoding()), item_key(asked, "m", Decoding(temperature=1))}
    keys.add(item_key(item(text="Bye.", images=(str(path),)), "m", Decoding()))
    assert len(keys) == 10
    assert key(metadata={"a": 1, "b": 2}) == key(metadata={"b": 2, "a": 1})
    assert key(variant="a/b") != key(variant="c")


def token(text: str, p: float, **others: float) -> ChatToken:
    near = {text: p, **others}.items()
    alternatives = [TokenLogprob(token=name, logprob=math.log(value)) for name, value in near]
    return ChatToken(token=text, logprob=math.log(p), top_logprobs=alternatives)


def test_label_masses_by_hand() -> None:
    labels = ("Wrong; Reasoning", "Wrong; Other", "Correct")
    said = [
        token("**", 0.9, Correct=0.05),
        token("Wrong", 0.8, Correctly=0.1, C=0.1),
        token("; ", 1.0),
        token("Other", 0.6, Reason=0.3, None_=0.1),
        token("**", 1.0),
    ]
    assert label_masses(said, labels) == pytest.approx(
        [0.9 * 0.8 * 0.3, 0.9 * 0.8 * 0.6, 0.05 + 0.9 * 0.1]
    )
    assert label_masses([token("Any", 1.0)], ("A", "B")) == [0, 0]
    assert label_masses([token(" ", 1.0)], ("A", "B")) == [0, 0]
    assert label_masses([token("Wrong", 0.5)], labels) == [0.25, 0.25, 0]
    tagged = [token("<label", 1.0), token(">", 1.0), token("B", 0.7, A=0.2)]
    assert label_masses(tokens_after(tagged, "<label>"), ("A", "B")) == pytest.approx([0.2, 0.7])
    assert tokens_after(tagged, "<other>") == tagged
