"""``POST /judge`` and ``POST /judge/stream``: verdicts, streams, and what the log gets."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from judging import Verdict
from judging.tasks import get_task
from serve.app import create_app
from serve.limits import Limits
from serve.queue.service import Service
from tests.serve.made_up import FakeJudge, refused, row
from tests.serve.sockets import serving

LIMITS = Limits()


def test_one_request_gives_one_verdict(client: TestClient) -> None:
    answer = client.post("/judge", json=row(id="a"))
    assert answer.status_code == 200
    verdict = answer.json()
    assert (verdict["id"], verdict["status"], verdict["label"]) == ("a", "scored", "Correct")
    assert sum(verdict["probabilities"].values()) == pytest.approx(1)


def test_a_list_gives_a_list_in_order(client: TestClient) -> None:
    rows = [row("Paris", id="a"), row("Rome", id="b"), row("in Paris", id="c")]
    for body in ({"requests": rows}, rows):
        verdicts = client.post("/judge", json=body).json()["verdicts"]
        assert [(v["id"], v["label"]) for v in verdicts] == [
            ("a", "Correct"),
            ("b", "Wrong"),
            ("c", "Correct"),
        ]


def test_a_list_of_one_and_of_none_are_lists(client: TestClient) -> None:
    assert len(client.post("/judge", json={"requests": [row()]}).json()["verdicts"]) == 1
    assert len(client.post("/judge", json=[row()]).json()["verdicts"]) == 1
    assert client.post("/judge", json={"requests": []}).json() == {"verdicts": []}
    assert client.post("/judge", json=[]).json() == {"verdicts": []}


def test_as_many_requests_as_allowed(client: TestClient) -> None:
    answer = client.post("/judge", json={"requests": [row()] * LIMITS.requests})
    assert len(answer.json()["verdicts"]) == LIMITS.requests


def test_grades_over_a_socket(judge: FakeJudge) -> None:
    with serving(Service({"a": judge})) as client:
        answer = client.post("/judge", json={"requests": [row("Paris"), row("Rome")]})
        assert [v["label"] for v in answer.json()["verdicts"]] == ["Correct", "Wrong"]
        assert answer.headers["X-Request-ID"]


def test_a_request_that_breaks_the_judge_is_a_judge_error_without_internals(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    answer = client.post("/judge", json=row("break", id="b"), headers={"X-Request-ID": "call-7"})
    assert answer.status_code == 200
    verdict = answer.json()
    assert (verdict["id"], verdict["status"], verdict["label"]) == ("b", "judge_error", None)
    assert "call-7" in verdict["message"]
    assert "secret" not in answer.text
    assert "0x7f00" in caplog.text
    assert client.post("/judge", json=row()).json()["status"] == "scored"


def test_what_another_server_says_stays_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = FakeJudge()
    error_text = "field 'images': the server answered 400: secret"  # names a field
    monkeypatch.setattr(
        judge, "verdict_on", lambda request, _: Verdict(status="judge_error", message=error_text)
    )
    with TestClient(create_app(Service({"a": judge}))) as client:
        answer = client.post("/judge", json=row(), headers={"X-Request-ID": "call-10"})
    message = answer.json()["message"]
    assert message == "the judge could not grade this; the log has it under request call-10"
    assert f"request call-10: {error_text}" in caplog.text


def test_streams_the_critique_then_the_verdict() -> None:
    service = Service({"pairs": FakeJudge(tasks=("truthful-pair",))})
    pair = {
        "task": "truthful-pair",
        "mode": "critique",
        "question": "Which?",
        "response_a": "one",
        "response_b": "two",
    }
    with TestClient(create_app(service)) as client:
        answer = client.post("/judge/stream", json=pair)
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        events = [event.split("\n") for event in answer.text.strip().split("\n\n")]
        names = [event[0].removeprefix("event: ") for event in events]
        data = [json.loads(event[1].removeprefix("data: ")) for event in events]
        assert names == ["critique"] * (len(names) - 1) + ["verdict"]
        assert "".join(piece["text"] for piece in data[:-1]) == FakeJudge.CRITIQUE
        assert data[-1] == client.post("/judge", json=pair).json()
        assert refused_stream(client, {**pair, "response_a": 3}) == "response_a"


def test_no_character_of_a_critique_ends_a_line_of_a_stream() -> None:
    """Many clients read lines as Python's ``splitlines`` does."""
    judge = FakeJudge(tasks=("truthful-pair",))
    judge.CRITIQUE = "One\u2028two\x85three."
    pair = {**get_task("truthful-pair").example_row(), "task": "truthful-pair", "mode": "critique"}
    with TestClient(create_app(Service({"pairs": judge}))) as client:
        *_, last = filter(None, client.post("/judge/stream", json=pair).iter_lines())
    assert json.loads(last.removeprefix("data: "))["critique"] == judge.CRITIQUE


def refused_stream(client: TestClient, body: Any) -> str:
    answer = client.post("/judge/stream", json=body)
    assert answer.status_code == 422
    field: str = answer.json()["error"]["field"]
    return field


def test_a_risk_without_held_out_verdicts_is_refused(client: TestClient) -> None:
    rows = [row(), row(risk=0.05)]
    assert refused(client, {"requests": rows}) == (
        "requests.1.risk",
        "judge 'fake' has no held-out verdicts under hieval-qs/plain/all to find a threshold on; "
        "fit its calibration again with 'custos calibrate RUN --data FILE', or state no risk",
    )
    assert refused(client, row(risk=1.5))[0] == "risk"
