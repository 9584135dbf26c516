r"""Replies that break a decoder: one failed item each, never a traceback or an unreadable file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clients.chat import Prices
from clients.connection import ServerRefusal
from clients.jobs import KeptAnswer, run_job
from clients.judge_client import JudgeClient
from clients.messages import Decoding
from judging.errors import CustosError
from judging.files.kept_work import KeptFile
from tests.clients.asking import ask, item, server
from tests.clients.fake_server import FakeServer, Say, Seen, completion

ODD_TEXT = "a\0b\x1b[2J\x85\u2028\u202ec\r\nd\ue000\U0010ffff"
BODIES = {
    "half a surrogate pair": completion("a").replace('"a"', r'"a \ud800 b"'),
    "half a pair in another field": completion("a").replace('"stop"', r'"\udfff"'),
    "200,000 brackets": "[" * 200_000,
    "too many digits": completion("a").replace("100", "9" * 5000),
    "a count of 400 digits": completion("a").replace("100", "9" * 400),
    "a negative count": completion("a", prompt_tokens=-5),
    "no object": "null",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_reply_that_cannot_be_used_fails_its_item_alone(
    fake: FakeServer, tmp_path: Path, body: str
) -> None:
    fake.answer = lambda seen: Say(body=body if seen.text == "bad" else completion("fine"))
    items = [item("1", "good"), item("2", "bad"), item("3", "good")]
    answers, rejects = tmp_path / "answers.jsonl", tmp_path / "rejects.jsonl"
    result = run_job(items, server(fake, tries=1), Decoding(), answers=answers, rejects=rejects)
    assert {name: reply.text for name, reply in result.replies.items()} == {
        "1": "fine",
        "3": "fine",
    }
    [reject] = result.rejects
    assert reject.id == "2" and "the answer is not a chat completion: " in reject.detail
    assert len(reject.detail) < 1000 and reject.detail.isprintable()
    assert json.loads(rejects.read_text()) == reject.model_dump()
    assert result.account(Prices(1, 1))["cost"] == pytest.approx(220e-6)


def test_odd_characters_are_kept_as_they_are(fake: FakeServer, tmp_path: Path) -> None:
    fake.answer = lambda seen: Say(body=completion(ODD_TEXT))
    answers = tmp_path / "answers.jsonl"
    for num_reused in (0, 2):
        result = run_job(
            [item("1"), item("2")],
            server(fake),
            Decoding(),
            answers=answers,
            rejects=tmp_path / "rejects.jsonl",
        )
        assert {reply.text for reply in result.replies.values()} == {ODD_TEXT}
        assert result.num_reused == num_reused
    assert [line.reply.text for line in KeptFile(answers, KeptAnswer).lines()] == [ODD_TEXT] * 2


@pytest.mark.parametrize("charset", ["rot13", "hex", "idna", "undefined", "utf-16", "nonsense"])
@pytest.mark.parametrize("status", [200, 500])
def test_an_encoding_that_is_none_changes_nothing(
    fake: FakeServer, charset: str, status: int
) -> None:
    """JSON is UTF-8 whatever a reply says."""
    headers = {"Content-Type": f"application/json; charset={charset}"}
    fake.faults.append(Say(status, completion("Grüße"), headers))
    assert ask(server(fake)).text == ("Grüße" if status == 200 else "Hello.")


@pytest.mark.parametrize("date", ["Mon, 01 Jan 2020 00:00:00 +99999999999999999999999", "nan"])
def test_a_wait_that_is_none_is_not_waited_for(fake: FakeServer, date: str) -> None:
    fake.faults.append(Say(503, "later", {"Retry-After": date}))
    assert ask(server(fake)).text == "Hello."


def test_what_a_server_says_cannot_command_the_terminal(fake: FakeServer) -> None:
    def answer(seen: Seen) -> Say:
        return Say(400, f"no {ODD_TEXT}")

    fake.answer = answer
    with pytest.raises(CustosError, match=r"answered 400: no a\\x00b\\x1b\[2J ") as caught:
        ask(server(fake))
    assert str(caught.value).replace("\ue000", "").replace("\U0010ffff", "").isprintable()


@pytest.mark.parametrize(
    "body",
    [
        "[]",
        r'{"judges": "\ud800"}',
        '{"judges": 7}',
        '{"judges": [7]}',
        '{"judges": [{}]}',
        '{"judges": [{"name": "a", "tasks": 1}]}',
        '{"judges": [{"name": "a", "tasks": {"hieval-qs": 1}}]}',
        '{"judges": [{"name": [], "tasks": {}}]}',
        '{"judges": [{"tasks": {}}]}',
    ],
)
def test_a_list_of_judges_of_another_form_is_refused(fake: FakeServer, body: str) -> None:
    fake.answer = lambda seen: Say(body=body)
    with pytest.raises(ServerRefusal, match=f"^{fake.url}: no list of judges "):
        JudgeClient.connect(fake.url)
