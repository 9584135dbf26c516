"""Deadlines, and clients that close the connection."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from serve.queue.service import Service
from tests.serve.made_up import FakeJudge, row
from tests.serve.sockets import POST, send_raw, serving, wait_until


def test_past_the_deadline_is_504_at_once_and_the_place_is_free(closed: FakeJudge) -> None:
    service = Service({"a": closed})
    with serving(service) as client, ThreadPoolExecutor(1) as pool:
        running = pool.submit(client.post, "/judge", json=row(id="kept"))
        wait_until(lambda: closed.batches != [])
        late = client.post("/judge", json=row(id="late"), headers={"X-Deadline-Ms": "50"})
        assert late.status_code == 504
        assert late.json()["error"]["type"] == "deadline_exceeded"
        assert service.queue().queued["a"] == 0
        closed.gate.set()
        assert running.result().status_code == 200
    assert closed.batches == [["kept"]]


@pytest.mark.parametrize("given", ["0", "-1", "soon", "1.5", "1" * 20, ""])
def test_deadlines_that_are_none(judge: FakeJudge, given: str) -> None:
    with serving(Service({"a": judge})) as client:
        answer = client.post("/judge", json=row(), headers={"X-Deadline-Ms": given})
        assert answer.status_code == 422
        assert answer.json()["error"]["field"] == "X-Deadline-Ms"


def test_a_client_that_hangs_up_is_not_graded(closed: FakeJudge) -> None:
    service = Service({"a": closed})
    with serving(service) as client, ThreadPoolExecutor(1) as pool:
        running = pool.submit(client.post, "/judge", json=row(id="kept"))
        wait_until(lambda: closed.batches != [])
        rows = b'{"requests": [%s]}' % b",".join(
            [httpx.Request("POST", "/", json=row()).content] * 3
        )
        leaving = send_raw(client, POST + b"Content-Length: %d\r\n\r\n%s" % (len(rows), rows))
        wait_until(lambda: service.queue().queued["a"] == 3)
        leaving.close()
        wait_until(lambda: service.queue().queued["a"] == 0)
        closed.gate.set()
        assert running.result().status_code == 200
        assert service.queue().counters["abandoned"] == 3
    assert closed.batches == [["kept"]]


def test_a_client_that_hangs_up_on_a_text_ends_it() -> None:
    judge = FakeJudge(tasks=("truthful-pair",), pause_s=0.0)
    service = Service({"a": judge})
    pair = {"task": "truthful-pair", "mode": "critique", "question": "q", "responses": ["a", "b"]}
    judge.endless = True
    with serving(service) as client:
        with client.stream("POST", "/judge/stream", json=pair) as answer:
            assert next(answer.iter_lines()) == "event: critique"
        wait_until(lambda: service.is_idle)
        assert service.queue().counters["abandoned"] == 1
