"""Two graded files of one benchmark, compared item by item."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.framework.base import get_benchmark
from benchmarks.framework.graded import ScoredItems, compare_graded
from judging.errors import CustosError
from tests.benchmarks.charthal.test_benchmark import item


def truthful(answers: str, start: int = 0) -> list[dict[str, Any]]:
    return [
        {"question_id": n, "ground_truth": "A", "response": f"({answer})"}
        for n, answer in enumerate(answers, start)
    ]


def compared(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> dict[str, Any]:
    benchmark = get_benchmark("truthfulvqa")
    return compare_graded(*(ScoredItems.of(benchmark, rows) for rows in (first, second)))


def test_two_graded_files_are_paired_by_id() -> None:
    found = compared(truthful("AABB"), truthful("BAAA")[::-1] + truthful("A", 9))
    assert (found["a"]["value"], found["b"]["value"]) == (2 / 4, 3 / 4)
    assert found["difference"]["value"] == 1 / 4
    assert found["difference"]["n"] == 4
    assert (found["only_a"], found["only_b"]) == (0, 1)


def test_two_files_differ_level_by_level_and_by_more_than_chance() -> None:
    levels = [{"level": 1 + n % 3} for n in range(12)]
    before = [row | level for row, level in zip(truthful("ABB" * 4), levels, strict=True)]
    after = [row | level for row, level in zip(truthful("BAB" * 4), levels, strict=True)]
    better = [row | level for row, level in zip(truthful("AAB" * 4), levels, strict=True)]
    found = compared(before, after)
    by_level = {part: row["value"] for part, row in found["by"]["level"].items()}
    assert by_level == {"1": -1.0, "2": 1.0, "3": 0.0}
    assert (found["a_higher"], found["b_higher"], found["p"]) == (4, 4, 1.0)
    found = compared(before, better)
    assert (found["a_higher"], found["b_higher"]) == (0, 4)
    assert found["p"] == pytest.approx(2 * 0.5**4)


def test_charthal_is_compared_cell_by_cell() -> None:
    charthal = get_benchmark("charthal")
    cells = ("desc_normal", "open_normal", "open_irrel")
    before, after = (
        [item(cells[n % 3], id=str(n), figure_id=n, score=score) for n, score in enumerate(scores)]
        for scores in ([0, 1, 1] * 4, [1, 1, 0] * 4)
    )
    found = compare_graded(*(ScoredItems.of(charthal, rows) for rows in (before, after)))[
        "by"
    ]
    by_cell = {part: row["value"] for part, row in found["q_type and q_relation"].items()}
    assert by_cell == {"desc normal": 100, "open irrel": -100, "open normal": 0}
    assert {part: row["n"] for part, row in found["q_type"].items()} == {"desc": 4, "open": 8}


def test_a_side_has_the_interval_that_its_table_has() -> None:
    rows = truthful("A" * 10)
    found = compared(rows, rows)
    for side in ("a", "b"):
        assert found[side]["value"] == 1
        assert found[side]["low"] == pytest.approx(10 / (10 + 1.959964**2))  # Wilson 1927
    assert (found["difference"]["low"], found["difference"]["high"]) == (None, None)


def test_items_without_a_set_are_clusters_of_their_own() -> None:
    first, second = truthful("ABABAABB"), truthful("AABBABAB")
    unset = [[{**row, "set_id": None} for row in rows] for rows in (first, second)]
    assert compared(*unset) == compared(first, second)
    found = compared(first, second)["difference"]
    assert found["low"] < found["high"]


def test_the_same_file_twice_differs_by_nothing() -> None:
    """There is no interval: four items without a difference do not prove that there is none."""
    found = compared(truthful("ABAB"), truthful("ABAB"))
    assert [found["difference"][key] for key in ("value", "low", "high")] == [0, None, None]


def test_files_that_cannot_be_compared() -> None:
    with pytest.raises(CustosError, match="share no scored item"):
        compared(truthful("AB"), truthful("AB", 5))
    with pytest.raises(CustosError, match="item 2: id '0' occurs twice"):
        compared(truthful("AB"), truthful("A") * 2)
