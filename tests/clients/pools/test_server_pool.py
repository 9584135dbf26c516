"""Three servers of one model as one judge, over sockets: slow, killed, hanging and unlike ones."""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

import pytest

from cli.shared.judges import load_judge, load_named_judges
from clients import pool as pools
from clients.chat import Completions
from clients.connection import ModelServer, ServerRefusal
from clients.pool import COOL_OFF, PoolConnection, ServerPool
from clients.remote_judge import PROBE, remote_judge
from judging.errors import CustosError
from judging.judge import Judge
from judging.models.backbones import Backbone
from judging.types import JudgeRequest, Verdict
from serve.queue.service import Service
from tests.clients.fake_server import RESET, FakeServer, Say, Seen
from tests.clients.made_up import server
from tests.clients.remote.vllm_replies import VllmReplies
from tests.serve.sockets import serving

FAST = 0.2
"""Seconds of a call to a healthy server."""


def score(seen: Seen) -> Say:
    """Answer as vLLM does, with log-probabilities that depend on the prompt and the token alone."""
    choices = []
    for prompt in seen.body["prompt"]:
        texts = {token: f"{prompt} {token}".encode() for token in seen.body["logprob_token_ids"]}
        top = {f"token_id:{token}": -3 - zlib.crc32(texts[token]) % 700 / 100 for token in texts}
        choices.append({"text": PROBE, "logprobs": {"top_logprobs": [top]}})
    return Say(body=json.dumps({"choices": choices}))


def answer_after(fake: FakeServer, seconds: float) -> None:
    """Have a server answer, the first prompts of a judge at once."""

    def answer(seen: Seen) -> Say:
        if seen.body.get("echo"):
            return Say(body=json.dumps({"choices": [{"text": PROBE}]}))
        return replace(score(seen), delay=seconds if len(seen.body["prompt"]) > 1 else 0.0)

    fake.answer = answer


@pytest.fixture
def servers() -> Iterator[list[FakeServer]]:
    with ExitStack() as stack:
        started = [stack.enter_context(FakeServer().running()) for _ in range(3)]
        for each in started:
            answer_after(each, FAST)
        yield started


def test_servers_that_are_busy_are_asked_as_often_as_a_single_one(
    servers: list[FakeServer],
) -> None:
    for each in servers[:2]:
        each.faults.extend([Say(429, "{}", {"Retry-After": "0.01"})] * 4)
    members = [ModelServer(each.url, "m", first_wait=0.01) for each in servers[:2]]
    body = json.dumps({"prompt": [[1]], "logprob_token_ids": [2]}).encode()

    async def post() -> Completions:
        async with PoolConnection(ServerPool(members)) as connection:
            return await connection.post("completions", body, Completions, "prompt")

    assert asyncio.run(post()).choices[0].by_token_id().keys() == {2}


def kill_after(fake: FakeServer, calls: int) -> None:
    """Have a server die at a call."""
    answer = fake.answer

    def answer_or_die(seen: Seen) -> Say | str:
        if len(fake.seen) > calls:
            fake.kill()
            return RESET
        return answer(seen)

    fake.answer = answer_or_die


def requests(count: int) -> list[JudgeRequest]:
    return [
        JudgeRequest(id=str(n), question="Which?", references=("a",), responses=(f"a{n}",))
        for n in range(count)
    ]


def pooled(servers: Sequence[FakeServer], backbone: Backbone, concurrency: int = 4) -> Judge:
    first, *others = servers
    judge = remote_judge(
        server(first, concurrency=concurrency), backbone.name, [fake.url for fake in others]
    )
    for fake in servers:
        fake.seen.clear()
    return judge


@pytest.fixture
def alone(backbone: Backbone) -> Iterator[Judge]:
    """The same judge on a single server."""
    with FakeServer().running() as fake:
        answer_after(fake, 0)
        yield remote_judge(server(fake), backbone.name)


def assert_judged(found: Sequence[Verdict], alone: Judge, count: int) -> None:
    """Compare verdicts with those of a single server."""
    for one, other in zip(found, alone.grade(requests(count)), strict=True):
        assert (one.id, one.status) == (other.id, "scored")
        assert one.probabilities == pytest.approx(other.probabilities)


def test_work_is_shared_and_nothing_is_asked_twice(
    servers: list[FakeServer], backbone: Backbone, alone: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No call is overdue, however busy we are.
    monkeypatch.setattr(pools, "PATIENCE", 1000)
    judge = pooled(servers, backbone)
    assert_judged(list(judge.grade(requests(36))), alone, 36)
    assert min(len(fake.seen) for fake in servers) >= 2
    asked = Counter(str(seen.body["prompt"]) for fake in servers for seen in fake.seen)
    assert set(asked.values()) == {1} and len(asked) == 36


def test_one_killed_and_one_ten_times_as_slow_cost_no_request(
    servers: list[FakeServer], backbone: Backbone, alone: Judge
) -> None:
    """Through the service in front of the servers, as a client sees it."""
    judge = load_judge("openai", f"m={backbone.name}", [fake.url for fake in servers], "", 4, 60)
    answer_after(servers[1], 10 * FAST)
    kill_after(servers[2], len(servers[2].seen) + 3)
    for fake in servers:
        fake.seen.clear()
    with serving(Service(load_named_judges({"m": "m"}, {}, lambda _: judge))) as client:
        body = {"requests": [one.model_dump(mode="json") for one in requests(48)]}
        reply = client.post("/judge", json=body).json()
        found = [Verdict.model_validate(verdict) for verdict in reply["verdicts"]]
        asked_when_dead = len(servers[2].seen)
        again = client.post("/judge", json=body | {"requests": body["requests"][:1]}).json()
    assert_judged(found, alone, 48)
    assert len(servers[1].seen) < len(servers[0].seen) / 2
    assert again["verdicts"][0]["status"] == "scored"
    assert len(servers[2].seen) == asked_when_dead, "it is left out for a while"


def test_a_server_that_hangs_keeps_nothing(
    servers: list[FakeServer], backbone: Backbone, alone: Judge
) -> None:
    judge = pooled(servers, backbone)
    answer_after(servers[0], 600)
    assert_judged(list(judge.grade(requests(24))), alone, 24)


def test_a_server_that_was_down_is_used_once_it_is_back(
    servers: list[FakeServer], backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = pooled(servers, backbone)
    healthy, servers[2].answer = servers[2].answer, lambda seen: Say(status=503)
    assert {verdict.status for verdict in judge.grade(requests(12))} == {"scored"}
    servers[2].answer = healthy
    servers[2].seen.clear()
    monkeypatch.setattr(pools, "monotonic", lambda: time.monotonic() + COOL_OFF)
    assert {verdict.status for verdict in judge.grade(requests(24))} == {"scored"}
    assert len(servers[2].seen) >= 4


def test_an_error_is_told_when_none_answers(servers: list[FakeServer], backbone: Backbone) -> None:
    judge = pooled(servers, backbone)
    for fake in servers:
        fake.answer = lambda seen: Say(status=401)
    with pytest.raises(ServerRefusal, match="needs an API key"):
        list(judge.grade(requests(3)))
    with pytest.raises(ServerRefusal, match="needs an API key"):
        pooled(servers, backbone)


def test_a_refused_request_is_not_asked_elsewhere(
    servers: list[FakeServer], backbone: Backbone
) -> None:
    judge = pooled(servers, backbone)
    for fake in servers:
        fake.answer = lambda seen: Say(400, "too long")
    assert [verdict.status for verdict in judge.grade(requests(1))] == ["invalid"]
    assert sum(len(fake.seen) for fake in servers) == 1


def test_unlike_servers_are_refused(servers: list[FakeServer], backbone: Backbone) -> None:
    servers[1].answer = VllmReplies(backbone, knows_token_ids=False)
    with pytest.raises(CustosError, match="and http://.* does not: their verdicts would differ"):
        pooled(servers, backbone)
    with pytest.raises(CustosError, match="given twice"):
        load_judge("openai", f"m={backbone.name}", [servers[0].url] * 2, "", 4, 60)


def test_verdicts_do_not_depend_on_the_order_of_servers(
    servers: list[FakeServer], backbone: Backbone
) -> None:
    there, back = pooled(servers, backbone), pooled(servers[::-1], backbone)
    [request] = requests(1)
    assert there.fingerprint(request) == back.fingerprint(request)
    assert there.fingerprint(request) != pooled(servers[:2], backbone).fingerprint(request)
