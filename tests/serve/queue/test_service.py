"""Calls that share a queue: how they end, what their clients get, and what is counted."""

import asyncio
import json
import re
import socket
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from importlib.metadata import version
from typing import Any

import httpx
import pytest
import yaml
from fastapi.testclient import TestClient
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from judging import CustosError, JudgeRequest, Verdict
from judging.types import Pass
from serve.calls.errors import ApiError
from serve.calls.limits import Limits
from serve.gate import connections
from serve.queue.service import Quotas, Service
from serve.server import answer_operator, bind, url
from tests.build_context import ROOT
from tests.serve.made_up import FakeJudge, graded, requests, row
from tests.serve.sockets import serving, wait_until


class Unreachable(FakeJudge):
    """Its model's server is down."""

    def grade(self, requests: Iterable[JudgeRequest], **options: Any) -> Iterator[Verdict]:
        self.batches.append([request.id for request in requests])
        raise CustosError("http://10.0.0.7:8001/v1: the server answered 503: secret")


def test_a_server_that_is_down_is_asked_once(caplog: pytest.LogCaptureFixture) -> None:
    judge = Unreachable()

    with pytest.raises(ApiError) as caught, closing(Service({"a": judge})) as service:
        asyncio.run(graded(service, requests(8)))
    assert len(judge.batches) == 1
    assert (caught.value.status, caught.value.headers) == (503, {"Retry-After": "5"})
    assert "secret" not in str(caught.value)
    assert "secret" in caplog.text


def test_stopping_refuses_what_waits_and_what_runs() -> None:
    judge = FakeJudge()
    judge.gate.clear()

    async def main() -> Any:
        service = Service({"a": judge})
        first = asyncio.create_task(graded(service, requests(1)))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(graded(service, requests(1)))
        await asyncio.sleep(0.05)
        threading.Timer(0.1, judge.gate.set).start()
        service.stop()
        answers = await asyncio.gather(first, second, return_exceptions=True)
        await asyncio.to_thread(service.close)
        return answers

    answers = asyncio.run(main())
    assert [(error.status, error.headers) for error in answers] == [(503, {"Retry-After": "5"})] * 2


def test_calls_of_many_clients_are_graded_together_in_one_thread(closed: FakeJudge) -> None:
    service = Service({"a": closed})
    with serving(service) as client, ThreadPoolExecutor(20) as pool:
        calls = [pool.submit(client.post, "/judge", json=row(id=str(i))) for i in range(20)]
        # How many the first window took depends on how fast they came.
        wait_until(
            lambda: sum([*service.queue().queued.values(), *service.queue().running.values()]) == 20
        )
        assert client.get("/health/live").status_code == 200
        closed.gate.set()
        assert sorted(int(call.result().json()["id"]) for call in calls) == list(range(20))
    assert len(closed.batches) <= 4
    assert closed.threads == {"judge"}


def test_a_full_queue_is_429_with_a_time_to_come_back(closed: FakeJudge) -> None:
    service = Service({"a": closed}, Limits(queue_requests=2))
    with serving(service) as client, ThreadPoolExecutor(3) as pool:
        running = pool.submit(client.post, "/judge", json=row())
        wait_until(lambda: closed.batches != [])
        waiting = [pool.submit(client.post, "/judge", json=row()) for _ in range(2)]
        wait_until(lambda: service.queue().queued["a"] == 2)
        refused = client.post("/judge", json=row())
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        assert refused.json()["error"]["type"] == "overloaded"
        closed.gate.set()
        assert [call.result().status_code for call in (running, *waiting)] == [200] * 3
        assert service.queue().counters["rejected"] == 1


def test_an_allowance_refills_all_the_time() -> None:
    quotas = Quotas(60)
    quotas.take("a", 60, 0.0)
    assert quotas.seconds_to_wait("a", 1, 0.0) == 1
    assert quotas.seconds_to_wait("a", 30, 10.0) == 20
    assert quotas.seconds_to_wait("a", 30, 30.0) == 0
    assert quotas.seconds_to_wait("b", 60, 0.0) == 0
    assert quotas.seconds_to_wait("a", 60, 10_000.0) == 0  # no more than a minute's is saved up
    quotas.take("a", 60, 10_000.0)
    assert quotas.seconds_to_wait("a", 1, 10_000.0) == 1


def test_a_call_with_more_than_a_minutes_requests_is_paid_for_later() -> None:
    quotas = Quotas(60)
    assert quotas.seconds_to_wait("a", 256, 0.0) == 0
    quotas.take("a", 256, 0.0)
    assert quotas.seconds_to_wait("a", 1, 0.0) == 197


@pytest.mark.parametrize("rate", [1, 7, 600])
def test_in_the_long_run_no_more_than_the_rate_gets_through(rate: int) -> None:
    quotas = Quotas(rate)
    taken, now = 0, 0.0
    while now < 3600:
        if wait := quotas.seconds_to_wait("a", 1, now):
            now += wait
        else:
            quotas.take("a", 1, now)
            taken += 1
    assert 59 * rate <= taken <= 61 * rate


def test_metrics_tell_what_happened(client: TestClient) -> None:
    client.post("/judge", json={"requests": [row(), row(), row("break")]})
    text = client.get("/metrics").text
    assert 'judge_verdict_total{judge="first",label="Correct",status="scored"} 2.0' in text
    assert 'judge_verdict_total{judge="first",label="",status="judge_error"} 1.0' in text
    assert 'judge_requests_total{outcome="answered"} 3.0' in text
    assert 'judge_http_requests_total{route="/judge",status="200"} 1.0' in text
    assert 'judge_num_requests_waiting{judge="second"} 0.0' in text


def test_the_oldest_request_and_the_build_are_told(closed: FakeJudge) -> None:
    service = Service({"first": closed})
    with serving(service) as client, ThreadPoolExecutor(2) as pool:
        assert value(client, "judge_oldest_request_waiting_seconds") == 0
        calls = [pool.submit(client.post, "/judge", json=row())]
        try:
            wait_until(lambda: service.queue().running["first"] == 1)
            calls.append(pool.submit(client.post, "/judge", json=row()))
            # The judge has the first at its gate; the other waits longer and longer.
            wait_until(lambda: value(client, "judge_oldest_request_waiting_seconds") > 0.2)
        finally:
            closed.gate.set()
        assert [call.result().status_code for call in calls] == [200, 200]
        assert value(client, "judge_oldest_request_waiting_seconds") == 0
        assert f'judge_build_info{{custos="{version("custos")}"' in client.get("/metrics").text


def test_the_operator_is_told_of_all_callers_at_an_address_of_its_own(judge: FakeJudge) -> None:
    service = Service({"a": judge})
    with bind("127.0.0.1", 0) as listener, serving(service, ["alice" * 4, "bobby" * 4]) as client:
        answer_operator(service.metrics, listener)
        for key in ("alice" * 4, "bobby" * 4):
            client.post("/judge", json=row(), headers={"Authorization": f"Bearer {key}"})
        address = f"{url(listener)}/metrics"
        text = httpx.get(address).text
        assert 'judge_key_calls_total{key="key-1",status="200"} 1.0' in text
        assert 'judge_key_calls_total{key="key-2",status="200"} 1.0' in text
        assert 'judge_requests_total{outcome="answered"} 2.0' in text
        # A page that a browser shows cannot read them, by whatever name it calls this machine.
        for headers in ({"Host": "evil.test"}, {"Origin": "https://evil.test"}):
            assert httpx.get(address, headers=headers).status_code == 403
        assert httpx.get(f"{url(listener)}/judges").status_code == 404


def test_who_reaches_the_operators_address_cannot_hold_the_process(
    judge: FakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADERS_S", 0.5)
    service = Service({"a": judge})
    with bind("127.0.0.1", 0) as listener, ExitStack() as opened:
        answer_operator(service.metrics, listener)
        held = [
            opened.enter_context(socket.create_connection(listener.getsockname(), timeout=10))
            for _ in range(200)
        ]
        for connection in held:
            with suppress(ConnectionError):
                assert connection.recv(1000)[:12] in (b"", b"HTTP/1.1 503")
        assert httpx.get(f"{url(listener)}/metrics").status_code == 200


def test_only_pairs_whose_order_decided_are_counted_as_flips() -> None:
    """A pair may need review also because its confidence does not suffice for a stated risk."""
    metrics = Service({"a": FakeJudge()}).metrics
    for_a, for_b = {"A": 0.9, "B": 0.1}, {"A": 0.1, "B": 0.9}
    for given, swapped in ((for_a, for_b), (for_a, for_a)):
        passes = (Pass(posterior=given), Pass(order="swapped", posterior=swapped))
        verdict = Verdict(
            status="scored", passes=passes, needs_review=True, rubric="truthful-pair/plain"
        )
        metrics.count_verdict("a", verdict)
    flips = generate_latest(metrics.registry).decode()
    assert 'judge_order_flip_total{judge="a"} 1.0' in flips


def value(client: httpx.Client, metric: str) -> float:
    match = re.search(rf"^{metric} (\S+)$", client.get("/metrics").text, re.MULTILINE)
    assert match
    return float(match[1])


def test_alerts_and_the_board_ask_for_metrics_that_exist(client: TestClient) -> None:
    client.post("/judge", json=row())
    families = {
        sample.name
        for family in text_string_to_metric_families(client.get("/metrics").text)
        for sample in family.samples
    }
    # Counters without a label value yet have no sample.
    families |= {"judge_cache_fault_total", "judge_key_calls_total", "up"}
    board = json.loads((ROOT / "docker" / "grafana.json").read_text("utf-8"))
    alerts = yaml.safe_load((ROOT / "docker" / "alerts.yaml").read_text("utf-8"))
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    queries += [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    assert len(queries) > 15
    for query in queries:
        unquoted = re.sub(r'"[^"]*"', "", query)
        names = set(re.findall(r"\b(?:judge|process)_\w+|\bup\b", unquoted))
        assert names
        assert names <= families, query
        assert query.count("(") == query.count(")")


def test_alerts_compare_what_prometheus_matches() -> None:
    """Series of different labels have no match, so that the alert would never come."""
    alerts = yaml.safe_load((ROOT / "docker" / "alerts.yaml").read_text("utf-8"))
    num_compared = 0
    for rule in (rule for group in alerts["groups"] for rule in group["rules"]):
        left, _, right = rule["expr"].partition(" > ")
        sides = [set(re.findall(r"(\w+)=(\"[^\"]*\")", side)) for side in (left, right)]
        if not re.search(r"\b(judge|process)_", right):
            continue
        num_compared += 1
        differing = {name for name, _ in sides[0] ^ sides[1]}
        ignored = re.match(r"ignoring\((\w+)\)", right)
        assert differing == ({ignored[1]} if ignored else set()), rule["alert"]
    assert num_compared == 2
