import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.charthal import CELLS, TYPES
from benchmarks.framework.base import get_benchmark
from benchmarks.framework.files import read_file
from benchmarks.framework.leaderboard import number_of
from judging.errors import FieldError
from judging.tasks import get_task
from judging.types import Verdict
from tests.published_files import needs_published, published

CHARTHAL = get_benchmark("charthal")
REAL = published("charthal")


def item(cell: str = "desc_normal", **fields: Any) -> dict[str, Any]:
    q_type, q_relation = cell.split("_")
    return {
        "id": "7_3",
        "figure_id": 7,
        "figure_path": "images/7.jpg",
        "subq_idx": 3,
        "q_type": q_type,
        "q_relation": q_relation,
        "question": "What is the peak?",
        "ref_answer": "12",
        **fields,
    }


def graded(scores: dict[str, Sequence[int]]) -> list[dict[str, Any]]:
    """One figure per item."""
    rows = [item(cell, score=score) for cell, own in scores.items() for score in own]
    return [{**row, "id": str(n), "figure_id": n} for n, row in enumerate(rows)]


@pytest.mark.parametrize(
    ("cells", "rubric"),
    [
        (("desc_irrel", "reason_irrel", "open_irrel"), "irrelevant"),
        (("desc_inexist", "reason_inexist"), "inexistent-closed"),
        (("open_inexist",), "inexistent-open"),
        (("desc_contra", "reason_contra"), "contradictory-closed"),
        (("open_contra",), "contradictory-open"),
        (("desc_normal", "reason_normal"), "normal-closed"),
        (("open_normal",), "normal-open"),
    ],
)
def test_every_cell_has_its_rubric(cells: tuple[str, ...], rubric: str) -> None:
    for cell in cells:
        [request] = CHARTHAL.requests(item(cell, response="12"))
        assert (request.task, request.variant) == ("charthal", rubric)
        get_task("charthal").check(request)
        assert (request.id, request.response, request.references) == ("7_3", "12", ("12",))
        assert request.images == ()
    [request] = CHARTHAL.requests(item(cells[0], ref_answer="", response="Maybe heat."))
    assert request.references == ()


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, "response"),
        ({"response": "x", "q_type": "why"}, "q_type"),
        ({"question": 3}, "response"),
    ],
)
def test_rows_that_do_not_fit(fields: dict[str, Any], wrong: str) -> None:
    with pytest.raises(FieldError) as error:
        CHARTHAL.requests(item(**fields))
    assert (error.value.location, error.value.field) == ("item '7_3'", wrong)


def test_the_graded_shape_is_the_official_one() -> None:
    row = item(response="12")
    out = CHARTHAL.graded_row(row, [Verdict(id="7_3", status="scored", label="1", judge="j1")])
    assert (out["eval_resp"], out["score"]) == ("Score: 1", 1)
    assert {key: out[key] for key in row} == row
    lost = CHARTHAL.graded_row(row, [Verdict(status="judge_error", message="no such task")])
    assert (lost["eval_resp"], lost["score"]) == ("No score: no such task", -1)
    table = CHARTHAL.table([out, lost])
    assert (table["judges"], table["coverage"]) == (["j1"], 0.5)
    assert table["statuses"] == {"scored": 1, "judge_error": 1}


def test_the_table_counts_cells() -> None:
    rows = graded({"desc_irrel": [1, 0, 0], "open_irrel": [1], "reason_normal": [1, 1, 0, 1]})
    table = CHARTHAL.table(rows)
    assert table["overall"] == {"correct": 5, "total": 8, "score": 62.5}
    assert table["per_type"]["desc"] == pytest.approx({"correct": 1, "total": 3, "score": 100 / 3})
    assert table["per_relation"] == {
        "irrel": {"correct": 2, "total": 4, "score": 50},
        "normal": {"correct": 3, "total": 4, "score": 75},
    }
    assert list(table["per_cell"]) == ["desc_irrel", "reason_normal", "open_irrel"]
    assert (table["n"], table["coverage"], table["judges"]) == (8, 1, [])
    assert (table["statuses"], table["cut_off"]) == ({}, 0)
    interval = table["intervals"]["overall"]["score"]
    assert interval["low"] < 62.5 < interval["high"]
    assert interval["n"] == 8


def test_our_row_has_the_columns_of_table_2() -> None:
    table = CHARTHAL.table(graded({"desc_irrel": [1, 0, 0], "open_normal": [1]}))
    [(source, rows)] = CHARTHAL.paper_rows(table, "mine").items()
    [published] = [each for each in CHARTHAL.published if each.source == source]
    assert published.rows["GPT-5-mini"][-1] == 27.02
    by_column = dict(zip(published.columns, rows["mine"], strict=True))
    assert {name: number_of(cell) for name, cell in by_column.items()} == {
        **dict.fromkeys(("reason", "inexist", "contra")),
        **{"desc": pytest.approx(100 / 3), "irrel": pytest.approx(100 / 3)},
        **{"open": 100, "normal": 100, "overall": 50},
    }
    assert by_column["overall"] == table["intervals"]["overall"]["score"]


@needs_published("charthal")
def test_the_published_grades_of_the_real_half_add_up() -> None:
    """Counted here without our code, straight from the file."""
    path = REAL / "gpt-5-mini.dev.eval.json"
    table = CHARTHAL.table(list(read_file(path)))
    official = list(json.loads(path.read_text()).values())
    fields = {"per_type": "q_type", "per_relation": "q_relation"}
    parts = {name: [row[field] for row in official] for name, field in fields.items()}
    parts["per_cell"] = [f"{row['q_type']}_{row['q_relation']}" for row in official]
    for name, own in parts.items():
        scores = zip(own, official, strict=True)
        correct = Counter(part for part, row in scores if row["score"] == 1)
        assert table[name] == {
            part: {"correct": correct[part], "total": n, "score": 100 * correct[part] / n}
            for part, n in Counter(own).items()
        }
    assert table["overall"] == {"correct": 174, "total": 542, "score": 100 * 174 / 542}
    assert list(table["per_cell"]) == list(CELLS)
    assert list(table["per_type"]) == list(TYPES)


@needs_published("charthal")
def test_the_real_items() -> None:
    rows = CHARTHAL.load(str(REAL))  # the folder holds the graded half too
    items = CHARTHAL.load(str(REAL / "charthal.json"))
    assert (len(items), len(rows)) == (1062, 1062 + 542)
    assert all(Path(row["images"][0]).is_file() for row in items)
    cells = Counter(f"{row['q_type']}_{row['q_relation']}" for row in items)
    counts = (56, 151, 76, 100, 99, 105, 54, 64, 114, 88, 80, 75)
    assert tuple(cells[cell] for cell in CELLS) == counts
    for row in items:
        [request] = CHARTHAL.requests({**row, "response": "x"})
        get_task("charthal").check(request)
