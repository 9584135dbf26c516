"""An answer says if its judge was not measured on the task."""

from __future__ import annotations

from pathlib import Path

from fastapi.testclient import TestClient

from judging.types import JudgeRequest, Verdict
from serve.app import create_app
from serve.measured import not_measured_headers
from serve.queue.service import Service
from tests.serve.made_up import FakeJudge, row

SHIPPED = Path(__file__).parents[2] / "judges" / "embedded-qs"


def request(task: str) -> JudgeRequest:
    return JudgeRequest(task=task, question="?", references=("a",), responses=("a",))


def test_judges_and_tasks_without_figures_are_named_once() -> None:
    judges = {"measured": FakeJudge("measured"), "other": FakeJudge("other")}
    judges["measured"].folder = SHIPPED
    calls = [
        ("measured", "hieval-qs"),
        ("measured", "charthal"),
        ("other", "hieval-qs"),
        ("other", "hieval-qs"),
    ]
    requests, names = [request(task) for _, task in calls], [name for name, _ in calls]
    judged = Verdict(status="scored", label="Correct", posterior="exact")
    ruled = Verdict(status="scored", label="Correct")
    headers = not_measured_headers(judges, requests, names, [judged] * 4)
    assert headers == {"X-Not-Measured": "measured on charthal, other on hieval-qs"}
    assert not_measured_headers(judges, requests[:1], names[:1], [judged]) == {}
    some_by_rule = [judged, ruled, ruled, judged]
    headers = not_measured_headers(judges, requests, names, some_by_rule)
    assert headers == {"X-Not-Measured": "other on hieval-qs"}


def test_a_judge_whose_name_no_header_holds_answers() -> None:
    with TestClient(create_app(Service({"judge №1": FakeJudge()}))) as client:
        answer = client.post("/judge", json=row())
    assert answer.json()["judge_name"] == "judge №1"
    assert answer.headers["X-Not-Measured"] == "judge %E2%84%961 on hieval-qs"
