"""Several models beside each other: order, intervals, differences and corrected scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.framework.base import get_benchmark
from benchmarks.framework.correction import corrected_score
from benchmarks.framework.graded import GradedModel, ScoredItems, compare_graded
from benchmarks.framework.leaderboard import build_leaderboard
from judging.errors import CustosError
from tests.benchmarks.charthal.test_benchmark import item
from tests.benchmarks.framework.test_corrected_by_people import graded as graded_with_people
from tests.benchmarks.truthfulvqa.test_benchmark import ROWS

CHARTHAL, TRUTHFULVQA = get_benchmark("charthal"), get_benchmark("truthfulvqa")


def responses(share: float, seed: int = 0) -> list[dict[str, Any]]:
    """Forty items on twenty figures, of which a share scores 1."""
    scores = np.random.default_rng(seed).random(40) < share
    return [
        item(("desc_normal", "open_irrel")[n % 2], id=str(n), figure_id=n // 2, score=int(score))
        for n, score in enumerate(scores)
    ]


def board(**models: list[dict[str, Any]]) -> dict[str, Any]:
    read = {name: GradedModel(f"{name}.json", rows) for name, rows in models.items()}
    return build_leaderboard(CHARTHAL, read)


def table_2(leaderboard: dict[str, Any]) -> dict[str, Any]:
    [table] = [table for table in leaderboard["tables"] if table["source"] == "Table 2"]
    return dict(table)


def test_models_stand_among_all_published_rows_from_the_best_down() -> None:
    low, high = responses(0.3), responses(0.9, 1)
    leaderboard = board(low=low, high=high)
    assert list(leaderboard["models"]) == ["high", "low"]
    rows = table_2(leaderboard)["rows"]
    published = next(table for table in CHARTHAL.published if table.source == "Table 2")
    assert {row["name"] for row in rows} == {*published.rows, "low", "high"}
    overall = [row["figures"][-2] for row in rows]
    values = [cell["value"] if isinstance(cell, dict) else cell for cell in overall]
    assert values == sorted(values, reverse=True)
    assert [row["name"] for row in rows if row["ours"]] == ["high", "low"]
    for name, own in (("low", low), ("high", high)):
        [row] = [row for row in rows if row["name"] == name]
        expected = CHARTHAL.table(own)["intervals"]["overall"]["score"]
        assert row["figures"][-2:] == [expected, "uncorrected"]
        assert expected["low"] < expected["value"] < expected["high"]


def test_a_published_name_is_not_taken_from_its_row() -> None:
    rows = table_2(board(**{"GPT-4o-2024-11-20": responses(0.5)}))["rows"]
    same = [row for row in rows if row["name"] == "GPT-4o-2024-11-20"]
    assert sorted(row["ours"] for row in same) == [False, True]
    assert [row["figures"][-2:] for row in same if not row["ours"]] == [[32.49, None]]


def test_every_pair_is_compared_as_bench_compare_does() -> None:
    models = {"a": responses(0.2), "b": responses(0.5, 1), "c": responses(0.9, 2)}
    differences = board(**models)["differences"]
    assert [difference["models"] for difference in differences] == [
        *(["c", "b"], ["c", "a"], ["b", "a"]),
    ]
    for difference in differences:
        first, second = (ScoredItems.of(CHARTHAL, models[name]) for name in difference["models"])
        expected = compare_graded(first, second)
        assert {key: difference[key] for key in expected} == expected
    p_values = [difference["p"] for difference in differences]
    # Holm: the smallest of three p-values counts threefold.
    smallest = int(np.argmin(p_values))
    assert differences[smallest]["p_holm"] == pytest.approx(min(1, 3 * min(p_values)))


def test_models_that_share_no_item_are_not_compared() -> None:
    other = [{**row, "id": f"x{row['id']}"} for row in responses(0.5)]
    leaderboard = board(a=responses(0.5), b=other)
    assert leaderboard["differences"] == []
    [reason] = leaderboard["not_compared"]
    assert "the two files share no scored item" in reason


def test_files_without_ids_have_tables_and_no_differences() -> None:
    """The shape that the README of TruthfulVQA's code asks for has no ``question_id``."""
    bare = [{key: row[key] for key in row if key != "question_id"} for row in ROWS]
    models = {"x": GradedModel("x.json", bare), "y": GradedModel("y.json", ROWS)}
    leaderboard = build_leaderboard(TRUTHFULVQA, models)
    by_level = leaderboard["tables"][0]
    ours = [row for row in by_level["rows"] if row["ours"]]
    assert [row["figures"][0]["value"] for row in ours] == [50, 50]
    assert leaderboard["not_compared"] == [
        "x: item 1: has no id: items are matched by id",
    ]


def test_people_correct_the_headline_column_of_their_model() -> None:
    rows, people = graded_with_people(1)
    models = {
        "corrected": GradedModel("c.json", rows, people),
        "raw": GradedModel("r.json", responses(0.5)),
    }
    table = table_2(build_leaderboard(CHARTHAL, models, random_sample=True))
    assert table["columns"][-2:] == ["overall", "overall, corrected by people"]
    cells = {row["name"]: row["figures"][-1] for row in table["rows"]}
    expected = corrected_score(CHARTHAL, rows, people, True)["corrected"]
    assert cells["corrected"] == pytest.approx(expected)
    assert cells["raw"] == "uncorrected"
    assert cells["GPT-5"] is None
    assert all(len(row["figures"]) == len(table["columns"]) for row in table["rows"])


def test_a_file_that_does_not_fit_is_named() -> None:
    ungraded = [item(id="1", response="x")]
    with pytest.raises(CustosError, match=r"bad.json: no item has a score of 0 or 1"):
        board(good=responses(0.5), bad=ungraded)
