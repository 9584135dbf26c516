"""The counters of ``GET /metrics``."""

import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from importlib.metadata import version

import httpx
import pytest
import yaml
from fastapi.testclient import TestClient
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from judging import Verdict
from judging.types import Pass
from serve.gate import connections
from serve.queue.service import Service
from serve.server import answer_operator, bind, url
from tests.build_context import ROOT
from tests.serve.made_up import FakeJudge, row
from tests.serve.sockets import serving, wait_until


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
