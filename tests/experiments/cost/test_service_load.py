"""The load generator counts what a server did, no more and no less."""

import asyncio
import json
import time
from pathlib import Path

import pytest

from experiments.cost.load_generator import (
    CONNECTION_FAILED,
    Connection,
    closed_loop,
    open_loop,
    quantile,
)
from experiments.cost.service_load import measure, read_requests
from judging import JudgeRequest
from serve.calls.limits import Limits
from serve.queue.service import Service
from tests.serve.made_up import FakeJudge, row
from tests.serve.sockets import serving

BODY = b'{"question": "q", "references": ["Paris"], "response": "Paris"}'


def test_closed_loop_sends_each_body_once_and_keeps_its_clients_busy() -> None:
    judge = FakeJudge(pause_s=0.01)
    with serving(Service({"a": judge})) as client:
        load = asyncio.run(closed_loop(str(client.base_url), [BODY] * 40, clients=8))
    report = load.report()
    assert report["statuses"] == {"200": 40}
    assert sum(map(len, judge.batches)) == 40
    assert max(map(len, judge.batches)) <= 8
    assert load.seconds >= 0.4
    assert load.rows_per_second == pytest.approx(40 / load.seconds)
    assert 10 <= report["p50_ms"] <= report["p95_ms"] <= report["p99_ms"]


def test_open_loop_keeps_its_rate_and_every_call_is_answered() -> None:
    judge = FakeJudge(pause_s=0.1)
    service = Service({"a": judge}, Limits(queue_requests=10))
    with serving(service) as client:
        start = time.perf_counter()
        load = asyncio.run(open_loop(str(client.base_url), [BODY], rate=200, seconds=1))
        assert time.perf_counter() - start < 60
    statuses = load.report()["statuses"]
    assert sum(statuses.values()) == 200
    assert set(statuses) == {"200", "429"}
    assert statuses["429"] > 50
    counters = service.queue().counters
    assert (counters["answered"], counters["rejected"]) == (statuses["200"], statuses["429"])


def test_calls_of_several_rows_are_counted_by_rows() -> None:
    judge = FakeJudge(pause_s=0.001)
    body = b'{"requests": [%s]}' % b",".join([BODY] * 3)
    with serving(Service({"a": judge})) as client:
        load = asyncio.run(
            closed_loop(str(client.base_url), [body] * 10, clients=2, rows_per_call=3)
        )
    assert load.report()["statuses"] == {"200": 10}
    assert sum(map(len, judge.batches)) == 30
    assert load.rows_per_second == pytest.approx(30 / load.seconds)


def test_nobody_there_is_counted() -> None:
    assert asyncio.run(Connection("http://127.0.0.1:1").post(BODY)) == CONNECTION_FAILED


def test_errors_are_statuses_and_the_connection_goes_on() -> None:
    with serving(Service({"a": FakeJudge()}, Limits(body_bytes=1000))) as client:

        async def calls() -> list[int]:
            connection = Connection(str(client.base_url))
            bodies = (BODY, b"{", b" " * 1500, BODY)
            return [await connection.post(body) for body in bodies]

        assert asyncio.run(calls()) == [200, 422, 413, 200]
        assert client.post("/judge", json=row()).status_code == 200


def test_quantiles() -> None:
    values = [float(value) for value in range(1, 101)]
    assert [quantile(values, share) for share in (0.5, 0.95, 0.99, 1.0)] == [50, 95, 99, 100]
    assert quantile([7.0], 0.5) == 7


def test_rows_that_are_no_requests_are_left_out(tmp_path: Path) -> None:
    rows = [row("Paris"), {"question": "q"}, row("Rome") | {"task": "nothing"}, row("Bonn")]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    assert [request.response for request in read_requests(path)] == ["Paris", "Bonn"]


@pytest.mark.slow
@pytest.mark.parametrize("rows_per_call", [1, 8])
def test_the_whole_measurement(tiny_folder: str, rows_per_call: int) -> None:
    requests = [JudgeRequest.model_validate(row(f"Paris {number}")) for number in range(64)]
    lines: list[str] = []
    report = measure(
        tiny_folder,
        requests,
        clients=8,
        rows_per_call=rows_per_call,
        overload_seconds=2,
        plain_rows=16,
        show=lines.append,
    )
    assert report["service"]["statuses"] == {"200": 64 // rows_per_call}
    assert report["plain"]["statuses"] == {"200": 16}
    # One address may open so many connections: those beyond are told so, or ended at once.
    refused = {"429", "503", "504", str(CONNECTION_FAILED)}
    assert set(report["overload"]["statuses"]) <= {"200", *refused}
    assert [line.partition(":")[0] for line in lines] == [
        "offline",
        f"offline, {8 * rows_per_call} rows at once",
        "service, 8 clients",
        "service at 5 times that",
        "offline again",
        "plain app, 8 clients",
    ]
