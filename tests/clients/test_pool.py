"""Pools of services and of model servers, over sockets."""

import json
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

import pytest

from cli.shared.judges import EngineOptions, load_named_judges
from clients import pool as pools
from clients.connection import ServerRefusal
from clients.pool import COOL_OFF, JudgePool
from clients.remote_judge import PROBE, remote_judge
from judging import CustosError, JudgeRequest, Verdict
from judging.judge import Judge
from judging.models.backbones import Backbone
from serve.queue.service import Service
from tests.clients.fake_server import FakeServer, Say, Seen
from tests.clients.made_up import kill_after, unless, verdicts_on
from tests.clients.made_up import server as server_of
from tests.clients.remote.vllm_replies import VllmReplies
from tests.serve.sockets import serving

CARD = {"name": "qs", "tasks": {"hieval-qs": ["plain/any"]}, "backbone": "b"}
FAST = 0.02
"""Seconds of a call to a healthy service."""


def requests(count: int) -> list[JudgeRequest]:
    return [
        JudgeRequest(id=str(n), question="Which?", references=("a",), responses=(f"a{n}",))
        for n in range(count)
    ]


def service(server: FakeServer, seconds: float = FAST, card: Mapping[str, object] = CARD) -> str:
    """Have a server answer as a service does; its verdicts name it."""

    def answer(seen: Seen) -> Say:
        if seen.path == "/judges":
            return Say(body=json.dumps({"judges": [card]}))
        return verdicts_on(seen, seconds, label="Correct", message=server.url)

    server.answer = answer
    return server.url.removesuffix("/v1")


@pytest.fixture
def servers() -> Iterator[list[FakeServer]]:
    with ExitStack() as stack:
        yield [stack.enter_context(FakeServer().running()) for _ in range(3)]


def graded(pool: JudgePool, count: int) -> tuple[Counter[str | None], float]:
    """Grade rows; return how many verdicts each server gave, and the seconds."""
    start = time.monotonic()
    verdicts = list(pool.grade(requests(count)))
    assert [verdict.id for verdict in verdicts] == [str(n) for n in range(count)]
    assert all(verdict.label == "Correct" for verdict in verdicts)
    return Counter(verdict.message for verdict in verdicts), time.monotonic() - start


def test_work_is_shared_and_nothing_is_asked_twice(
    servers: list[FakeServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "PATIENCE", 1000)  # no call is overdue, however busy we are
    pool = JudgePool.connect([service(server) for server in servers], concurrency=16)
    shares, _ = graded(pool, 240)
    assert len(shares) == 3 and min(shares.values()) >= 40
    calls = [seen.body for server in servers for seen in server.seen if seen.path == "/judge"]
    rows = Counter(row["id"] for body in calls for row in body["requests"])
    assert rows == Counter(str(n) for n in range(240))


def test_a_pool_learns_once_how_many_rows_a_service_takes(
    servers: list[FakeServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clients.judge_client.CHUNK", 32)
    urls = [service(server) for server in servers[:2]]
    for server in servers[:2]:
        unless(server, lambda seen, _: Say(504) if len(seen.body["requests"]) > 4 else None)
    pool = JudgePool.connect(urls)
    graded(pool, 64)
    for server in servers:
        server.seen.clear()
    graded(pool, 64)
    calls = [seen.body for server in servers for seen in server.seen if seen.path == "/judge"]
    assert max(len(body["requests"]) for body in calls) <= 4


def test_a_service_killed_while_it_grades_costs_no_request(servers: list[FakeServer]) -> None:
    urls = [service(server, 60 if i == 0 else FAST) for i, server in enumerate(servers)]
    kill_after(servers[1], 3)
    pool = JudgePool.connect(urls, concurrency=16)
    shares, seconds = graded(pool, 240)
    assert servers[0].url not in shares and seconds < 30, "one that hangs keeps nothing"
    assert 0 < shares[servers[1].url] <= 12
    # It is left out of the next rows, which take no longer for it.
    before = len(servers[1].seen)
    shares, _ = graded(pool, 240)
    assert servers[1].url not in shares and len(servers[1].seen) == before


def test_a_service_that_was_down_is_used_once_it_is_back(
    servers: list[FakeServer], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    urls = [service(server) for server in servers]
    healthy = servers[2].answer
    servers[2].answer = lambda seen: Say(status=503)
    pool = JudgePool.connect(urls, concurrency=16)
    assert caplog.messages[0].startswith(f"{urls[2]}: left out for 30 s: ")
    shares, _ = graded(pool, 48)
    assert servers[2].url not in shares
    servers[2].answer = healthy
    monkeypatch.setattr(pools, "monotonic", lambda: time.monotonic() + COOL_OFF)
    shares, _ = graded(pool, 240)
    assert shares[servers[2].url] >= 40


def test_errors_are_told_when_none_answers(servers: list[FakeServer]) -> None:
    urls = [service(server) for server in servers]
    pool = JudgePool.connect(urls, concurrency=16)
    for server in servers:
        server.answer = lambda seen: Say(status=401)
    with pytest.raises(ServerRefusal, match="set CUSTOS_KEY"):
        list(pool.grade(requests(20)))
    with pytest.raises(ServerRefusal, match="no service answers"):
        JudgePool.connect(urls)


def test_unlike_services_are_refused(servers: list[FakeServer]) -> None:
    urls = [service(server, card={**CARD, "server": server.url}) for server in servers]
    JudgePool.connect(urls)  # they differ in the address of their model alone
    service(servers[2], card={**CARD, "measured": [{"n": "1"}]})
    JudgePool.connect(urls)  # nor does what was measured change a verdict
    service(servers[2], card={**CARD, "packages": {"custos": "0.0.9"}})
    with pytest.raises(CustosError, match="packages .* and .*0.0.9"):
        JudgePool.connect(urls)
    service(servers[2], card={**CARD, "name": "another"})
    with pytest.raises(CustosError, match=f"{CARD['name']} and another"):
        JudgePool.connect(urls)
    with pytest.raises(CustosError, match="given twice"):
        JudgePool.connect([urls[0], urls[0]])
    urls = [service(server) for server in servers]  # their order does not matter
    there, back = JudgePool.connect(urls), JudgePool.connect(urls[::-1])
    [request] = requests(1)
    assert there.name == back.name and there.fingerprint(request) == back.fingerprint(request)


MODEL_CALL = 0.2
"""Seconds of a call to a healthy model server."""


def score(seen: Seen) -> Say:
    """Answer as vLLM does, with log-probabilities that depend on the prompt and the token alone."""
    choices = []
    for prompt in seen.body["prompt"]:
        texts = {token: f"{prompt} {token}".encode() for token in seen.body["logprob_token_ids"]}
        top = {f"token_id:{token}": -3 - zlib.crc32(texts[token]) % 700 / 100 for token in texts}
        choices.append({"text": PROBE, "logprobs": {"top_logprobs": [top]}})
    return Say(body=json.dumps({"choices": choices}))


def answer_after(fake: FakeServer, seconds: float = MODEL_CALL) -> None:
    """Have a server answer, the first prompts of a judge at once."""

    def answer(seen: Seen) -> Say:
        if seen.body.get("echo"):
            return Say(body=json.dumps({"choices": [{"text": PROBE}]}))
        return replace(score(seen), delay=seconds if len(seen.body["prompt"]) > 1 else 0.0)

    fake.answer = answer


@pytest.fixture
def models(servers: list[FakeServer]) -> list[FakeServer]:
    for each in servers:
        answer_after(each)
    return servers


def pooled(models: Sequence[FakeServer], backbone: Backbone) -> Judge:
    first, *others = models
    judge = remote_judge(
        server_of(first, concurrency=4), backbone.name, [fake.url for fake in others]
    )
    for fake in models:
        fake.seen.clear()
    return judge


def test_one_killed_and_one_ten_times_as_slow_cost_no_request(
    fake: FakeServer, models: list[FakeServer], backbone: Backbone
) -> None:
    """Through the service in front of the servers, as a client sees it."""
    judge = EngineOptions(
        "openai", base_url=[each.url for each in models], concurrency=4, deadline=60
    ).load_judge(f"m={backbone.name}")
    answer_after(models[1], 10 * MODEL_CALL)
    kill_after(models[2], len(models[2].seen) + 3)
    for each in models:
        each.seen.clear()
    with serving(Service(load_named_judges({"m": "m"}, lambda _: judge))) as client:
        body = {"requests": [one.model_dump(mode="json") for one in requests(48)]}
        reply = client.post("/judge", json=body).json()
        found = [Verdict.model_validate(verdict) for verdict in reply["verdicts"]]
        asked_when_dead = len(models[2].seen)
        again = client.post("/judge", json=body | {"requests": body["requests"][:1]}).json()
    answer_after(fake, 0)
    alone = remote_judge(server_of(fake), backbone.name)
    for one, other in zip(found, alone.grade(requests(48)), strict=True):
        assert (one.id, one.status) == (other.id, "scored")
        assert one.probabilities == pytest.approx(other.probabilities)
    assert len(models[1].seen) < len(models[0].seen) / 2
    assert again["verdicts"][0]["status"] == "scored"
    assert len(models[2].seen) == asked_when_dead, "it is left out for a while"


def test_refusals_are_told_and_asked_nowhere_else(
    models: list[FakeServer], backbone: Backbone
) -> None:
    judge = pooled(models, backbone)
    for fake in models:
        fake.answer = lambda seen: Say(400, "too long")
    assert [verdict.status for verdict in judge.grade(requests(1))] == ["invalid"]
    assert sum(len(fake.seen) for fake in models) == 1
    for fake in models:
        fake.answer = lambda seen: Say(status=401)
    with pytest.raises(ServerRefusal, match="needs an API key"):
        list(judge.grade(requests(3)))
    with pytest.raises(ServerRefusal, match="needs an API key"):
        pooled(models, backbone)


def test_unlike_model_servers_are_refused(models: list[FakeServer], backbone: Backbone) -> None:
    there, back = pooled(models, backbone), pooled(models[::-1], backbone)
    [request] = requests(1)
    assert there.fingerprint(request) == back.fingerprint(request)
    assert there.fingerprint(request) != pooled(models[:2], backbone).fingerprint(request)
    models[1].answer = VllmReplies(backbone, knows_token_ids=False)
    with pytest.raises(CustosError, match="and http://.* does not: their verdicts would differ"):
        pooled(models, backbone)
    with pytest.raises(CustosError, match="given twice"):
        EngineOptions("openai", base_url=[models[0].url] * 2).load_judge(f"m={backbone.name}")
