"""Faults that pass are tried again, those that stay are shown on one line, refusals are final."""

import json
import logging
import time
import traceback
from email.utils import formatdate

import pytest

from clients.connection import ModelServer, ServerRefusal
from judging.errors import CustosError
from tests.clients.asking import KEY, ask, server
from tests.clients.fake_server import RESET, FakeServer, Say, Seen, completion


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


def test_a_server_that_is_not_there() -> None:
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


@pytest.mark.parametrize(
    "value", ["3600", formatdate(time.time() + 3600, usegmt=True)], ids=["seconds", "date"]
)
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
    [
        (401, r"the server refuses the API key \(401\); --key-env names the variable .*$"),
        (404, r"no model 'm' .*\(404\): gone"),
    ],
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
