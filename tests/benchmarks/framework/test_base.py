"""The registry of benchmarks, how a sixth one is added, and responses to requests to grades."""

import json
from pathlib import Path

import pytest

from benchmarks.framework import base
from benchmarks.framework.base import BENCHMARKS, get_benchmark
from benchmarks.framework.files import join_responses
from benchmarks.framework.graded import read_responses
from judging.errors import CustosError, FieldError
from judging.tasks import task_names
from tests.benchmarks.test_charthal import CHARTHAL, item


def test_the_five() -> None:
    assert BENCHMARKS.names() == ("charthal", "chartom", "hieval", "simplevqa", "truthfulvqa")
    for found in BENCHMARKS:
        assert set(found.tasks) <= set(task_names())
        assert found.published and found.styles, found.name
        assert len(found.facets) in (0, 2, 3)
    with pytest.raises(CustosError, match="charthal, chartom"):
        get_benchmark("vqa")
    with pytest.raises(ValueError, match="hieval"):
        base.benchmark(type(get_benchmark("hieval")))


def test_responses_meet_their_items() -> None:
    items = [{"data_id": 1, "question": "?"}, {"data_id": 2, "question": "!"}]
    assert join_responses(items, [{"data_id": "2", "response": "x"}], "data_id") == [
        {"data_id": "2", "question": "!", "response": "x"}
    ]
    for responses, place in (
        ([{"data_id": 3}], 1),
        ([{"id": 1}], 1),
        ([{"data_id": 1}, {"data_id": 1}], 2),
    ):
        with pytest.raises(FieldError) as error:
            join_responses(items, responses, "data_id")
        assert (error.value.field, error.value.location) == ("data_id", f"response {place}")
    with pytest.raises(FieldError, match="two items are '1'"):
        join_responses([*items, {"data_id": "1"}], [{"data_id": 1}], "data_id")


def test_responses_are_read_with_their_items(tmp_path: Path) -> None:
    items, responses = tmp_path / "items.json", tmp_path / "responses.json"
    items.write_text(json.dumps([item(), item(id="7_4")]))
    responses.write_text(json.dumps({"7_4": {"response": "12"}}))
    read = read_responses(CHARTHAL, responses, str(items), tmp_path / "pictures")
    assert [(row["id"], row["response"]) for row in read.rows] == [("7_4", "12")]
    assert read.rows[0]["images"] == [str(tmp_path / "images" / "7.jpg")]
    assert [request.id for _, request in read.numbered_requests()] == ["7_4"]
    responses.write_text(json.dumps([{"id": "7_3", "response": "12"}] * 2))
    with pytest.raises(CustosError, match=r"responses.json: response 2: field 'id'"):
        read_responses(CHARTHAL, responses, str(items), tmp_path / "pictures")
