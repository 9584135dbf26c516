"""An answer says if its judge was not measured on the task."""

from __future__ import annotations

from pathlib import Path

from judging.types import JudgeRequest
from serve.measured import not_measured_headers
from tests.serve.made_up import FakeJudge

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
    headers = not_measured_headers(
        judges, [request(task) for _, task in calls], [name for name, _ in calls]
    )
    assert headers == {"X-Not-Measured": "measured on charthal, other on hieval-qs"}
    assert not_measured_headers(judges, [request("hieval-qs")], ["measured"]) == {}
