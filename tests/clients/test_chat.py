"""Conversations: what is sent and comes back, their keys, faults that pass, stay or are refused."""

import base64
import json
import logging
import math
import time
import traceback
from collections.abc import Callable
from email.utils import formatdate
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from clients.chat import ChatToken, Prices, Reply, TokenLogprob, Usage, ask_all
from clients.connection import ModelServer, RequestRefused, ServerRefusal
from clients.kept_verdicts import request_key
from clients.messages import Decoding, item_key, one_user_turn, picture_url
from clients.remote_judge import label_masses, tokens_after
from judging import JudgeRequest
from judging.errors import CustosError
from judging.files.pictures import read_image
from judging.types import Message, conversation
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


BOMB = {"Content-Encoding": "gzip"}


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (Say(body="x" * 100_000, is_endless=True), "the reply has more than 64 MiB"),
        (Say(500, body="x" * 100_000, is_endless=True), "the reply has more than 64 MiB"),
        (Say(body="{}", headers=BOMB), r"the reply is compressed \(gzip\), unasked"),
    ],
    ids=["endless", "endless fault", "compressed"],
)
def test_a_reply_without_an_end_or_compressed_is_refused_at_once(
    fake: FakeServer, said: Say, problem: str
) -> None:
    fake.answer = lambda seen: said
    with pytest.raises(RequestRefused, match=f"^item 'q1': {problem}$"):
        ask(keyed(fake))
    assert len(fake.seen) == 1
    assert fake.seen[0].headers["accept-encoding"] == "identity"


def test_a_reply_that_trickles_or_headers_without_an_end_end_in_an_error(fake: FakeServer) -> None:
    fake.answer = lambda seen: Say(headers={"X": "a" * 1_000_000})
    with pytest.raises(CustosError, match=r"^item 'q1': RemoteProtocolError .*\(3 tries\)$"):
        ask(keyed(fake))
    fake.answer = lambda seen: Say(body=" ", headers={"Content-Length": "9"})
    with pytest.raises(CustosError, match=r"^item 'q1': no answer within 0\.5 s \(3 tries\)$"):
        ask(keyed(fake, deadline=0.5))


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
    items = [item(str(i), f"say {i}") for i in range(30)]
    to = keyed(fake, concurrency=4)
    ask_all(to, Decoding(), items, lambda asked, said: outcomes.update({asked.id: said}))
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
    frames: dict[str, Any] = {"save_all": True, "append_images": [Image.new("RGB", (30, 20))]}
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


def later(seconds: float) -> str:
    return formatdate(time.time() + seconds, usegmt=True)


NO_TIMES = ("soon", "-5", "nan", later(-1e8), "Mon, 01 Jan 2020 00:00:00 +99999999999999999999999")


@pytest.mark.parametrize(
    "fault",
    [
        *(Say(status, "later") for status in (408, 409, 429, 500, 503)),
        *(Say(429, "", {"Retry-After": time}) for time in NO_TIMES),
        *(RESET, Say(body="{"), Say(body='{"choices": []}')),
        Say(body='{"error": {"message": "busy"}}'),
        Say(body=completion("late"), delay=60),
    ],
)
def test_faults_that_pass(fake: FakeServer, fault: Say | str) -> None:
    fake.faults.append(fault)
    assert ask(keyed(fake, deadline=2)).text == "Hello."
    assert len(fake.seen) == 2


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Say(500, "out of\n memory"), r"500: out of memory \(3"),
        (RESET, r"\(3 tries\)"),
        (Say(body="{"), r"not a chat completion: \{ \(3 tries\)"),
        (Say(delay=9), r"0\.2 s \(3 tries\)"),
    ],
)
def test_faults_that_stay_after_waits_that_grow(
    fake: FakeServer, fault: Say | str, message: str
) -> None:
    fake.answer = lambda seen: fault
    with pytest.raises(CustosError, match=rf"item 'q1': .*{message}"):
        ask(keyed(fake, deadline=0.2, first_wait=0.1))
    first, second, third = (seen.at for seen in fake.seen)
    assert second - first >= 0.05 and third - second >= 0.1


@pytest.mark.parametrize(
    "fault", [Say(400, "bad"), Say(422, "bad"), Say(503, "bad", {"x-should-retry": "false"})]
)
def test_a_refused_request_is_not_repeated(fake: FakeServer, fault: Say) -> None:
    fake.faults.append(fault)
    with pytest.raises(RequestRefused, match=f"item 'q1': .*{fault.status}: bad$"):
        ask(keyed(fake))
    assert len(fake.seen) == 1
    # What a server says cannot command the terminal.
    fake.faults.append(Say(400, "no a\0b\x1b[2J\x85\u2028\u202ec\r\nd"))
    with pytest.raises(RequestRefused) as caught:
        ask(keyed(fake))
    assert r"no a\x00b\x1b[2J " in str(caught.value) and str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("value", "cap", "least"),
    [
        (lambda: "0.5", 60, 0.5),
        (lambda: later(3), 60, 1.5),  # a date has whole seconds, so the wait is 2 to 3
        (lambda: "3600", 0.2, 0.2),
        (lambda: later(3600), 0.2, 0.2),
    ],
    ids=["seconds", "date", "capped seconds", "capped date"],
)
def test_a_server_is_not_asked_sooner_than_it_says(
    fake: FakeServer, value: Callable[[], str], cap: float, least: float
) -> None:
    def answer(seen: Seen) -> Say:
        first = len(fake.seen) == 1
        return Say(429, "", {"Retry-After": value()}) if first else Say(body=completion("Hello."))

    fake.answer = answer
    ask(keyed(fake, longest_wait=cap))
    first, second = fake.seen
    assert least <= second.at - first.at < 30


@pytest.mark.parametrize(
    ("status", "message"),
    [(401, r"\(401\); --key-env names the variable .*$"), (404, "'m' .*gone")],
)
def test_a_refusal_of_everything(fake: FakeServer, status: int, message: str) -> None:
    fake.answer = lambda seen: Say(status, "gone")
    with pytest.raises(ServerRefusal, match=message):
        ask(keyed(fake))
    assert len(fake.seen) == 1
    with pytest.raises(CustosError, match=r"item 'q1': ConnectError .* \(2 tries\)"):
        ask(ModelServer("http://127.0.0.1:9/v1", "m", first_wait=0.01, tries=2))


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
    to = keyed(fake, tries=2, deadline=0.2)
    with caplog.at_level(logging.DEBUG), pytest.raises(CustosError) as caught:
        ask(to)
    shown = "".join(traceback.format_exception(caught.value))
    assert KEY[:8] not in shown
    assert KEY[-4:] not in shown
    assert "httpcore" in {record.name.partition(".")[0] for record in caplog.records}
    assert KEY not in caplog.text
    assert KEY not in repr(to)


@pytest.mark.parametrize("charset", ["rot13", "hex", "idna", "undefined", "utf-16", "nonsense"])
@pytest.mark.parametrize("status", [200, 500])
def test_an_encoding_that_is_none_changes_nothing(
    fake: FakeServer, charset: str, status: int
) -> None:
    """JSON is UTF-8 whatever a reply says."""
    headers = {"Content-Type": f"application/json; charset={charset}"}
    fake.faults.append(Say(status, completion("Grüße"), headers))
    assert ask(keyed(fake)).text == ("Grüße" if status == 200 else "Hello.")


@pytest.mark.parametrize(
    ("url", "key"),
    [
        *((f"{start}/v1", "") for start in ("localhost:8000", "http://user:secret@host")),
        *((f"http://host{end}", "") for end in ("/v1?key=secret", ":port/v1")),
        *(("http://host/v1", key) for key in ("secret\n", "sécret")),
    ],
)
def test_servers_that_cannot_be(url: str, key: str) -> None:
    with pytest.raises(CustosError) as caught:
        ModelServer(url, "m", api_key=key)
    assert "secret" not in str(caught.value)
