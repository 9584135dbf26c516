"""Responses to requests, verdicts to graded rows, and what grading took."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from benchmarks.framework.base import get_benchmark
from benchmarks.framework.grading import ResponsesToGrade, read_responses, time_and_cost
from clients.chat import Prices, Usage
from judging.errors import CustosError
from judging.tasks import base as tasks
from judging.tasks import get_task
from judging.types import Verdict
from tests.benchmarks.charthal.test_benchmark import item
from tests.benchmarks.chartom.test_benchmark import misleading

CHARTHAL, CHARTOM = get_benchmark("charthal"), get_benchmark("chartom")


def charts() -> ResponsesToGrade:
    """One row that rules decide, one with two requests, one with one."""
    rows = [
        misleading(fact_response="1.2"),
        misleading(fact_response="hard to say", mind_response="0.9 The axis is cut."),
        misleading(fact_response="1.2", mind_response="0.9 The axis is cut."),
    ]
    return ResponsesToGrade(CHARTOM, rows, [CHARTOM.requests(row) for row in rows])


def test_requests_are_numbered_by_their_row() -> None:
    responses = charts()
    assert responses.num_requests == 3
    assert [(row, request.task) for row, request in responses.numbered_requests()] == [
        (1, "chartom-fact"),
        (1, "chartom-justification"),
        (2, "chartom-justification"),
    ]


def test_verdicts_find_their_rows() -> None:
    failed = Verdict(status="judge_error", message="no picture")
    verdicts = [
        (1, Verdict(status="scored", label="Correct")),
        (1, Verdict(status="scored", label="Named")),
        (2, failed),
    ]
    graded = charts().grade(verdicts)
    assert [row["fact_correct"] for row in graded.rows] == [True, True, True]
    assert [row.get("justification_named") for row in graded.rows] == [None, True, None]
    assert graded.unscored == {3: "no picture"}
    assert graded.statuses == {"scored", "judge_error"}


def test_responses_are_read_with_their_items(tmp_path: Path) -> None:
    items, responses = tmp_path / "items.json", tmp_path / "responses.json"
    items.write_text(json.dumps([item(), item(id="7_4")]))
    responses.write_text(json.dumps({"7_4": {"response": "12"}}))
    read = read_responses(CHARTHAL, responses, str(items), tmp_path / "pictures")
    assert [(row["id"], row["response"]) for row in read.rows] == [("7_4", "12")]
    assert read.rows[0]["images"] == [str(tmp_path / "images" / "7.jpg")]
    assert [request.id for _, request in read.numbered_requests()] == ["7_4"]
    responses.write_text(json.dumps([{"id": "7_3", "response": "12"}] * 2))
    with pytest.raises(CustosError, match=r"responses.json: response 2: field 'id': .* twice"):
        read_responses(CHARTHAL, responses, str(items), tmp_path / "pictures")


def test_a_users_rubrics_replace_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks.TASKS, "entries", dict(tasks.TASKS.entries))
    path = tmp_path / "rubrics.yaml"
    path.write_text(yaml.safe_dump(dict.fromkeys(get_task("charthal").variants, "Grade it.")))
    row = item(response="12")
    responses = ResponsesToGrade(CHARTHAL, [row], [CHARTHAL.requests(row)]).with_rubrics(path)
    [(_, request)] = responses.numbered_requests()
    assert get_task(request.task).instruction(request.variant) == "Grade it."
    with pytest.raises(CustosError, match="only charthal and simplevqa have rubrics to replace"):
        charts().with_rubrics(path)


def test_time_and_cost_are_known_of_one_run_only() -> None:
    usage, prices = Usage(prompt_tokens=1_000_000, completion_tokens=500_000), Prices(2, 4)
    assert time_and_cost("m", 3, 1.5, usage, prices) == {
        "judge": "m",
        "requests": 3,
        "seconds": 1.5,
        "usage": {"prompt_tokens": 1_000_000, "completion_tokens": 500_000},
        "cost": 4.0,
    }
    assert time_and_cost("m", 3, 1.5, None, None)["cost"] == "free"
    assert time_and_cost("m", 3, 1.5, usage, None)["cost"] is None
    assert time_and_cost("m", 3, None, usage, prices)["cost"] is None
