"""Faults that pass are tried again, those that stay are shown on one line, refusals are final."""

import json
import logging
import time
import traceback
from collections.abc import Callable
from email.utils import formatdate

import pytest

from clients.connection import ModelServer, RequestRefused, ServerRefusal
from judging.errors import CustosError
from tests.clients.fake_server import RESET, FakeServer, Say, Seen, completion
from tests.clients.made_up import KEY, ask, keyed


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
    ("url", "key"),
    [
        ("localhost:8000/v1", ""),
        ("http://user:secret@host/v1", ""),
        ("http://host/v1?key=secret", ""),
        ("http://host:port/v1", ""),
        ("http://host/v1", "secret\n"),
        ("http://host/v1", "sécret"),
    ],
)
def test_servers_that_cannot_be(url: str, key: str) -> None:
    with pytest.raises(CustosError) as caught:
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
