"""The five benchmarks through ``POST /judge`` and through ``custos bench grade``: one grading."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks.framework.base import get_benchmark
from cli.main import app
from judging.judge import Judge
from judging.tasks import TASKS
from serve.queue.service import Service
from tests.conftest import Folders
from tests.serve.sockets import serving

Row = dict[str, Any]
Case = tuple[Row, Callable[[Row], Any], Callable[[Row], Any]]
"""Body of the call, what the graded row says, and the same of a verdict."""


def fact(item: Row) -> Row:
    key = f"{item['answer']} {item.get('unit', '')}".strip()
    return {
        "task": "chartom-fact",
        "variant": item["question_type"],
        "question": item["question"],
        "choices": item.get("choices", []),
        "references": list(item["answer"]) if isinstance(item["answer"], list) else [key],
        "response": item["fact_response"],
    }


def chartom() -> list[tuple[Row, list[Case]]]:
    more: list[Row] = [
        {**RAIN, "fact_response": said, "answer": 40, "unit": "mm"}
        for said in ("41 mm", "4 cm", "It was forty.", "45", "41 or 90", "I cannot tell.")
    ]
    more.append({**RAIN, "question_type": "ranking", "answer": ["Ash", "Elm", "Fir"]})
    more[-1]["fact_response"] = "Ash, Elm, Fir"
    misleading: Row = {
        "hmi": 0.7,
        "manipulation": "the axis is cut",
        "mind_response": "0.8: the axis.",
    }
    more.append({**RAIN, "answer": 40, "fact_response": "40", **misleading})
    rows: list[tuple[Row, list[Case]]] = []
    for number, item in enumerate([*get_benchmark("chartom").example, *more]):
        item = {**item, "id": f"{number}_1"}
        cases: list[Case] = [
            (fact(item), lambda row: row["fact_correct"], lambda v: v["label"] == "Correct")
        ]
        if "mind_response" in item:
            ask = {"question": item["question"], "response": item["mind_response"]}
            body = {"task": "chartom-prediction", "references": str(item["hmi"]), **ask}
            cases.append((body, lambda row: row["mind_prediction"], lambda v: v["score"]))
        if "manipulation" in item:
            body = {
                "task": "chartom-justification",
                "question": item["question"],
                "references": item["manipulation"],
                "response": "the axis.",
            }
            named = (lambda row: row["justification_named"], lambda v: v["label"] == "Named")
            cases.append((body, *named))
        rows.append((item, cases))
    return rows


RAIN: Row = {
    "kind": "bar",
    "question": "Which, from largest to smallest?",
    "question_type": "number",
}


def truthfulvqa() -> list[tuple[Row, list[Case]]]:
    items = list(get_benchmark("truthfulvqa").example)
    said = ("The answer is B.", "I do not know", "a cup", "B, because A is wrong")
    items += [{**items[0], "question_id": f"x{n}", "response": text} for n, text in enumerate(said)]
    return [
        (
            item,
            [
                (
                    {
                        "task": "truthful-option",
                        "variant": "official",
                        "question": item["question"],
                        "choices": item["options"],
                        "references": item["answer"],
                        "response": item["response"],
                    },
                    lambda row: row["is_correct"],
                    lambda verdict: verdict["label"] == "Correct",
                )
            ],
        )
        for item in items
    ]


def one_verdict(name: str, body: Callable[[Row], Row]) -> list[tuple[Row, list[Case]]]:
    """Items with one request each, whose verdict is stored."""
    return [
        (
            item,
            [
                (
                    body(item),
                    lambda row: next(iter(row["verdicts"].values()))["label"],
                    lambda verdict: verdict["label"],
                )
            ],
        )
        for item in get_benchmark(name).example
    ]


def simplevqa_body(item: Row) -> Row:
    return {
        "task": "simplevqa",
        "variant": {"EN": "english", "CN": "chinese"}[item["language"]],
        "question": item["question"],
        "references": item["answer"],
        "response": item["response"],
    }


def charthal_body(item: Row) -> Row:
    [request] = get_benchmark("charthal").requests(item)
    body = request.model_dump(mode="json", include={"task", "variant", "question", "references"})
    return {**body, "response": item["response"]}


def hieval_body(item: Row) -> Row:
    return {key: value for key, value in item.items() if key not in ("label", "id")}


BENCHMARKS: dict[str, Callable[[], list[tuple[Row, list[Case]]]]] = {
    "chartom": chartom,
    "truthfulvqa": truthfulvqa,
    "simplevqa": lambda: one_verdict("simplevqa", simplevqa_body),
    "charthal": lambda: one_verdict("charthal", charthal_body),
    "hieval": lambda: one_verdict("hieval", hieval_body),
}


def test_labels_are_equal(tiny_folders: Folders, tmp_path: Path) -> None:
    source = tiny_folders("qwen2_5_vl")
    num_compared = 0
    with serving(Service({"untrained": Judge.load(source)})) as client:
        for name, cases in BENCHMARKS.items():
            items = cases()
            responses, out = tmp_path / f"{name}.jsonl", tmp_path / f"{name}.graded.jsonl"
            responses.write_text("".join(json.dumps(item) + "\n" for item, _ in items))
            command = ["bench", "grade", name, "--responses", str(responses), "--out", str(out)]
            done = CliRunner().invoke(app, [*command, "--judge", source])
            assert done.exit_code == 0, done.output
            graded = [json.loads(line) for line in out.read_text().splitlines()]
            for row, (_, of_row) in zip(graded, items, strict=True):
                for body, graded_value, served_value in of_row:
                    answer = client.post("/judge", json=body)
                    assert answer.status_code == 200, answer.text
                    assert graded_value(row) == served_value(answer.json()), body
                    num_compared += 1
        for task in TASKS:
            verdict = client.post("/judge", json={**task.example_row(), "mode": "score"}).json()
            assert verdict["label"] in {
                label.partition(";")[0]
                for rubric in task.rows_by_rubric()
                for label in task.labels(rubric)
            }
            by_rule = verdict["posterior"] is None
            assert by_rule or "not measured on this task" in verdict["message"]
    assert num_compared > 25


@pytest.mark.parametrize(
    ("references", "response", "label"),
    [
        (["40 mm"], "41 mm", "Correct"),
        (["1,200 km"], "1300000 m", "Correct"),
        (["40 mm"], "50", "Incorrect"),
    ],
)
def test_a_judge_is_not_asked_what_rules_read(
    tiny_folders: Folders, references: list[str], response: str, label: str
) -> None:
    body = {"task": "chartom-fact", "variant": "number", "question": "How much rain?"}
    with serving(Service({"untrained": Judge.load(tiny_folders("qwen2_5_vl"))})) as client:
        row = {**body, "references": references, "response": response}
        verdict = client.post("/judge", json=row).json()
    assert (verdict["label"], verdict["posterior"]) == (label, None)
