"""TruthfulVQA: options by two readings, accuracy by level and category, stated confidence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.framework.base import get_benchmark
from benchmarks.framework.leaderboard import number_of
from benchmarks.truthfulvqa.benchmark import (
    BY_CATEGORY,
    BY_CELL,
    BY_LEVEL,
    CALIBRATION,
    CATEGORIES,
    OVER_LEVELS,
)
from benchmarks.truthfulvqa.levels import cai
from judging.errors import CustosError, FieldError

TRUTHFULVQA = get_benchmark("truthfulvqa")


def item(number: int, level: int, response: str, truth: str = "D", **fields: Any) -> dict[str, Any]:
    return {
        "question_id": number,
        "category": "Eye Illusion",
        "subcategory": "Optical Illusions",
        "level": level,
        "ground_truth": truth,
        "response": response,
        **fields,
    }


ROWS = [
    item(0, 1, "(D)"),
    item(1, 1, "(D)"),
    item(2, 2, "(D)"),
    item(3, 2, "I choose (B), not D."),
    item(4, 3, "(A)", category="Information Hiding", subcategory="Blur"),
    item(5, 3, "(D)"),
    item(6, 3, "(C)"),
    item(7, 3, "none of them fits", category="Information Hiding", subcategory="Blur"),
]


def test_the_table() -> None:
    table = TRUTHFULVQA.table(ROWS)
    assert table["overall_accuracy"] == 4 / 8
    assert table["level_accuracies"] == {"1": 1, "2": 1 / 2, "3": 1 / 4}
    assert table["category_accuracies"] == pytest.approx(
        {"Eye Illusion": 4 / 6, "Information Hiding": 0}
    )
    assert table["subcategory_accuracies"] == pytest.approx({"Optical Illusions": 4 / 6, "Blur": 0})
    assert table["level_mean"] == pytest.approx(7 / 12)
    assert table["level_variance"] == pytest.approx(np.var([1, 1 / 2, 1 / 4]))
    assert table["cai"] == pytest.approx((1 - 1 / 2) / 1 + (1 / 4 - 1 / 2) / (1 / 2))
    assert (table["n"], table["unreadable"], table["coverage"]) == (8, 1, 7 / 8)
    interval = table["intervals"]["overall_accuracy"]
    assert interval["low"] < 0.5 < interval["high"]
    assert table["intervals"]["level_accuracies"]["3"]["n"] == 4
    assert table["as_stated"].keys() >= {"overall_accuracy", "level_accuracies", "cai"}
    scores = TRUTHFULVQA.scores(ROWS)
    assert [score.value for score in scores] == [1, 1, 1, 0, 0, 1, 0, 0]
    assert [score.id for score in scores] == [str(number) for number in range(8)]


def test_grading_needs_no_judge_and_adds_the_official_fields() -> None:
    row = item(3, 2, "(B)")
    assert TRUTHFULVQA.requests(row) == ()
    # Grading again forgets what was read before.
    for before in ({}, {"extracted_answer": "D"}):
        graded = TRUTHFULVQA.graded_row({**row, **before}, [])
        assert (graded["extracted_answer"], graded["is_correct"]) == ("B", False)
    hub = {key: value for key, value in row.items() if key != "ground_truth"} | {"answer": "B"}
    for right in (hub, hub | {"ground_truth": None}):
        assert TRUTHFULVQA.graded_row(right, [])["is_correct"] is True
    assert TRUTHFULVQA.graded_row(item(0, 1, "no idea"), [])["extracted_answer"] is None
    assert TRUTHFULVQA.table([TRUTHFULVQA.graded_row(row, [])])["overall_accuracy"] == 0
    for field in ("answer", "response"):
        with pytest.raises(FieldError) as error:
            TRUTHFULVQA.graded_row({**hub, field: None}, [])
        assert (error.value.location, error.value.field) == ("item '3'", field)


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"answer": "A", "response": None}, "response"),
        ({"answer": None}, "answer"),
        ({"ground_truth": None}, "ground_truth"),
        ({}, "answer"),
        ({"ground_truth": None, "answer": "yes"}, "answer"),
        ({"ground_truth": "yes"}, "ground_truth"),
        ({"answer": "A", "level": None}, "level"),
        ({"answer": "A", "level": 4}, "level"),
        ({"answer": "A", "level": True}, "level"),
    ],
)
def test_rows_that_do_not_fit(changes: dict[str, Any], wrong: str) -> None:
    """Name the field of the user's file, which has no ``ground_truth`` before the grading."""
    row = item(3, 2, "(B)")
    del row["ground_truth"]
    with pytest.raises(FieldError) as error:
        TRUTHFULVQA.requests({**row, **changes})
    assert (error.value.location, error.value.field) == ("item '3'", wrong)
    with pytest.raises(CustosError):
        TRUTHFULVQA.table([])


def test_rows_beside_the_published_ones() -> None:
    table = TRUTHFULVQA.table(ROWS)
    rows = TRUTHFULVQA.paper_rows(table, "mine")
    assert [*map(number_of, rows[BY_LEVEL]["mine"])] == [50, 100, 50, 25]
    assert [*map(number_of, rows[OVER_LEVELS]["mine"])] == [
        table["level_mean"],
        table["level_variance"],
    ]
    by_category = dict(zip(CATEGORIES, map(number_of, rows[BY_CATEGORY]["mine"]), strict=True))
    assert by_category["Eye Illusion"] == pytest.approx(400 / 6)
    assert by_category["Contextual Bias"] is None
    assert CALIBRATION not in rows  # no response states a confidence
    columns = {published.source: published.columns for published in TRUTHFULVQA.published}
    assert all(len(row["mine"]) == len(columns[source]) for source, row in rows.items())


def test_stated_confidence_in_bins_of_equal_width() -> None:
    """Three answers at .94 and .98, of which two are right, share the last of 15 bins."""
    said = ["(D)[0.94]", "(D)[0.98]", "(A)[0.98]", "(D)[0.5]", "(D)", "no idea [0.4]"]
    table = TRUTHFULVQA.table([item(n, 1 + n % 3, text) for n, text in enumerate(said)])
    gaps = [abs((0.94 + 0.98 + 0.98) - 2), abs(0.5 - 1)]
    assert table["calibration"]["ece_equal_width"] == pytest.approx(sum(gaps) / 4)
    assert table["intervals"]["ece"]["n"] == 4
    [cell] = TRUTHFULVQA.paper_rows(table, "mine")[CALIBRATION]["mine"]
    assert number_of(cell) == pytest.approx(sum(gaps) / 4)
    assert table["calibration"]["by_confidence"]["0.9-1.0"]["accuracy"] == pytest.approx(2 / 3)


def test_there_are_15_bins() -> None:
    """The last begins at .9333; with 14 bins it would begin before .93, with 16 after .936."""
    said = ["(D)[0.93]", "(A)[0.936]"]
    table = TRUTHFULVQA.table([item(n, 1, text) for n, text in enumerate(said)])
    apart = (abs(0.93 - 1) + abs(0.936 - 0)) / 2
    assert table["calibration"]["ece_equal_width"] == pytest.approx(apart)


def test_both_readings_are_kept_and_counted() -> None:
    said = ("Answer: B because A is wrong", "(B)", "<think>(B)", "c) a pear", "a plum")
    rows = [
        item(number, 1 + number % 3, text, "B", options=["a peach", "a plum", "a pear"])
        for number, text in enumerate(said)
    ]
    graded = [TRUTHFULVQA.graded_row(row, []) for row in rows]
    assert [row["extracted_answer"] for row in graded] == ["A", "B", "B", None, None]
    assert [row["stated_answer"] for row in graded] == ["B", "B", None, "C", "B"]
    assert [row["is_correct"] for row in graded] == [False, True, True, False, False]
    table = TRUTHFULVQA.table(graded)
    assert table == TRUTHFULVQA.table(rows)
    assert (table["overall_accuracy"], table["as_stated"]["overall_accuracy"]) == (2 / 5, 3 / 5)
    assert (table["unreadable"], table["unreadable_as_stated"]) == (2, 1)
    assert table["read_differently"] == 4
    assert TRUTHFULVQA.table(ROWS)["read_differently"] == 0


def test_category_by_level_in_24_cells() -> None:
    rows = [
        item(number, level, "(D)" if number % (place + 1) == 0 else "(A)", category=category)
        for place, category in enumerate(CATEGORIES)
        for level in (1, 2, 3)
        for number in range(level + 4)
    ]
    row = TRUTHFULVQA.paper_rows(TRUTHFULVQA.table(rows), "mine")[BY_CELL]["mine"]
    expected = []
    for category in CATEGORIES:
        for level in (1, 2, 3):
            of_cell = [r for r in rows if (r["category"], r["level"]) == (category, level)]
            expected.append(100 * sum("D" in r["response"] for r in of_cell) / len(of_cell))
    assert [*map(number_of, row)][1:] == pytest.approx(expected)
    assert len(expected) == 24


def test_published_level_means_give_their_own_cai() -> None:
    # 81.85, 55.37, 44.96 over more than 50 models.
    assert cai(np.array([0.8185, 0.5537, 0.4496])) == pytest.approx(
        (81.85 - 55.37) / 81.85 + (44.96 - 55.37) / 55.37
    )
    assert np.isnan(cai(np.array([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5]]))).all()
