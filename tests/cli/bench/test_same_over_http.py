"""The five benchmarks through ``POST /judge`` and through ``custos bench grade``: one grading."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.framework.base import BENCHMARKS, get_benchmark
from judging.judge import Judge
from judging.tasks import TASKS
from serve.queue.service import Service
from tests.cli.bench.made_up import grade, read
from tests.conftest import Folders
from tests.serve.sockets import serving

Row = dict[str, Any]
Case = tuple[Row, Callable[[Row], Any], Callable[[Row], Any]]
"""Body of the call, what the graded row says, and the same of a verdict."""

RAIN: Row = {
    "kind": "bar",
    "question": "Which, from largest to smallest?",
    "question_type": "number",
    "answer": 40,
}
CHARTS: tuple[Row, ...] = (
    *(
        {**RAIN, "fact_response": said, "unit": "mm"}
        for said in ("41 mm", "4 cm", "It was forty.", "45", "41 or 90", "I cannot tell.")
    ),
    {
        **{**RAIN, "question_type": "ranking", "answer": ["Ash", "Elm", "Fir"]},
        "fact_response": "Ash, Elm, Fir",
    },
    {
        **{**RAIN, "fact_response": "40", "mind_response": "0.8: the axis."},
        **{"hmi": 0.7, "manipulation": "the axis is cut"},
    },
)
SAID = ("The answer is B.", "I do not know", "a cup", "B, because A is wrong")


def items_of(name: str) -> list[Row]:
    """Return the benchmark's examples, with answers that are harder to read."""
    items = list(get_benchmark(name).example)
    if name == "chartom":
        items = [{**item, "id": f"{n}_1"} for n, item in enumerate((*items, *CHARTS))]
    elif name == "truthfulvqa":
        items += [{**items[0], "question_id": f"x{n}", "response": s} for n, s in enumerate(SAID)]
    return items


def cases(name: str, item: Row) -> Iterator[Case]:
    """Yield what is asked of the service about an item, and where both sides keep the answer."""
    ask = {"question": item["question"]}
    if name == "chartom":
        key = f"{item['answer']} {item.get('unit', '')}".strip()
        fact = {
            "task": "chartom-fact",
            "variant": item["question_type"],
            "choices": item.get("choices", []),
            "references": list(item["answer"]) if isinstance(item["answer"], list) else [key],
            "response": item["fact_response"],
        }
        yield ask | fact, lambda row: row["fact_correct"], lambda v: v["label"] == "Correct"
        if said := item.get("mind_response"):
            mind = {"task": "chartom-prediction", "references": str(item["hmi"]), "response": said}
            yield ask | mind, lambda row: row["mind_prediction"], lambda v: v["score"]
        if planted := item.get("manipulation"):
            why = {"task": "chartom-justification", "references": planted, "response": "the axis."}
            yield ask | why, lambda row: row["justification_named"], lambda v: v["label"] == "Named"
        return
    if name == "truthfulvqa":
        option = {
            "task": "truthful-option",
            "variant": "official",
            "choices": item["options"],
            "references": item["answer"],
            "response": item["response"],
        }
        yield ask | option, lambda row: row["is_correct"], lambda v: v["label"] == "Correct"
        return
    if name == "hieval":
        body = {key: value for key, value in item.items() if key not in ("label", "id")}
    else:
        [request] = get_benchmark(name).requests(item)
        fields = {"task", "variant", "question", "references"}
        body = request.model_dump(mode="json", include=fields) | {"response": item["response"]}
    yield (
        body,
        lambda row: next(iter(row["verdicts"].values()))["label"],
        lambda verdict: verdict["label"],
    )


def test_labels_are_equal(tiny_folders: Folders, tmp_path: Path) -> None:
    source = tiny_folders("qwen2_5_vl")
    num_compared = 0
    with serving(Service({"untrained": Judge.load(source)})) as client:
        for benchmark in BENCHMARKS:
            items = items_of(benchmark.name)
            done = grade(tmp_path, items, "--judge", source, name=benchmark.name)
            assert done.exit_code == 0, done.output
            graded = read(tmp_path / "out.json")
            rows = list(graded.values()) if benchmark.keyed else graded
            for row, item in zip(rows, items, strict=True):
                for body, of_row, of_verdict in cases(benchmark.name, item):
                    answer = client.post("/judge", json=body)
                    assert answer.status_code == 200, answer.text
                    assert of_row(row) == of_verdict(answer.json()), body
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
        # A judge is not asked what rules read.
        body = {"task": "chartom-fact", "variant": "number", "question": "How much rain?"}
        for reference, response, label in (
            ("40 mm", "41 mm", "Correct"),
            ("1,200 km", "1300000 m", "Correct"),
            ("40 mm", "50", "Incorrect"),
        ):
            row = {**body, "references": [reference], "response": response}
            verdict = client.post("/judge", json=row).json()
            assert (verdict["label"], verdict["posterior"]) == (label, None)
    assert num_compared > 25
