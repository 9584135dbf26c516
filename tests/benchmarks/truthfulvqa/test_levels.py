from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.truthfulvqa.levels import cai, measure_levels
from judging.errors import CustosError


def item(level: int, response: str, truth: str = "A", category: str = "c", **fields: Any) -> (
    dict[str, Any]
):  # fmt: skip
    return {
        "category": category,
        "subcategory": f"{category}-{level % 2}",
        "level": level,
        "ground_truth": truth,
        "response": response,
        **fields,
    }


ITEMS = [
    item(1, "(A)[0.9]"), item(1, "(A)[0.9]"), item(1, "(A)"), item(1, "(B)", category="d"),
    item(2, "(A)"), item(2, "B"), item(2, "no idea [0.4]"), item(2, "(A)", category="d"),
    item(3, "(C)"), item(3, "A", category="d"), item(3, "(A)", category="d"), item(3, "D)"),
]  # fmt: skip


def test_by_hand() -> None:
    found = measure_levels(ITEMS)
    assert found["overall_accuracy"] == pytest.approx(7 / 12)
    assert found["level_accuracies"] == {"1": 0.75, "2": 0.5, "3": 0.5}
    assert found["category_accuracies"] == {"c": pytest.approx(4 / 8), "d": pytest.approx(3 / 4)}
    assert found["subcategory_accuracies"] == pytest.approx(
        {"c-0": 1 / 3, "c-1": 3 / 5, "d-0": 1.0, "d-1": 2 / 3}
    )
    assert found["level_mean"] == pytest.approx(7 / 12)
    assert found["level_variance"] == pytest.approx(np.var([0.75, 0.5, 0.5]))
    assert found["cai"] == pytest.approx(0.25 / 0.75)
    assert (found["n"], found["unreadable"]) == (12, 1)
    assert found["ece"] == pytest.approx(0.1)
    assert found["intervals"]["ece"]["n"] == 2
    level = found["intervals"]["level_accuracies"]["1"]
    assert level["low"] <= level["value"] <= level["high"]
    assert level["n"] == 4


def test_published_level_means_give_their_own_cai() -> None:
    # 81.85, 55.37, 44.96 over more than 50 models.
    assert cai(np.array([0.8185, 0.5537, 0.4496])) == pytest.approx(
        (81.85 - 55.37) / 81.85 + (44.96 - 55.37) / 55.37
    )
    assert np.isnan(cai(np.array([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5]]))).all()


@given(st.lists(st.tuples(st.integers(1, 3), st.sampled_from("ABCD")), min_size=1, max_size=30))
def test_parts_weigh_up_to_the_whole(rows: list[tuple[int, str]]) -> None:
    found = measure_levels([item(level, f"({letter})") for level, letter in rows])
    for division in ("level", "category", "subcategory"):
        parts = found["intervals"][f"{division}_accuracies"].values()
        total = sum(part["value"] * part["n"] for part in parts)
        assert total / len(rows) == pytest.approx(found["overall_accuracy"])
    if len(found["level_accuracies"]) < 3:
        assert np.isnan([found["level_mean"], found["level_variance"], found["cai"]]).all()


def test_an_extracted_answer_goes_before_the_response() -> None:
    found = measure_levels(
        [item(1, "(B)", extracted_answer="A"), item(1, "(A)", extracted_answer="")]
    )
    assert (found["overall_accuracy"], found["unreadable"]) == (0.5, 1)


def test_sets_are_resampled_whole() -> None:
    rng = np.random.default_rng(0)
    rows = [(i, level, rng.random() < 0.5) for i in range(60) for level in (1, 2, 3)]
    same = {i: good for i, level, good in rows if level == 1}
    answer = {True: "(A)", False: "(B)"}
    grouped = [item(level, answer[bool(same[i])], set_id=i) for i, level, _ in rows]
    alone = [item(level, answer[bool(same[i])], set_id=None) for i, level, _ in rows]
    wide, narrow = (
        measure_levels(items)["intervals"]["overall_accuracy"] for items in (grouped, alone)
    )
    assert wide["high"] - wide["low"] > 1.4 * (narrow["high"] - narrow["low"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"level": None}, "row 1: field 'level': is missing"),
        ({"response": None}, "row 1: field 'response': is missing"),
        ({"level": 4}, "row 1: field 'level': 4 is not 1, 2 or 3"),
        ({"level": True}, "row 1: field 'level': True is not 1, 2 or 3"),
        ({"ground_truth": "yes"}, "row 1: field 'ground_truth': 'yes' is not an option letter"),
    ],
)
def test_faults_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(CustosError, match=message):
        measure_levels([{**ITEMS[0], **change}])


def test_levels_of_a_table_with_gaps_are_the_same_levels() -> None:
    found = measure_levels([{**row, "level": float(row["level"])} for row in ITEMS])
    assert set(found["level_accuracies"]) == {str(row["level"]) for row in ITEMS}


def test_no_items() -> None:
    with pytest.raises(CustosError, match="the data is empty"):
        measure_levels([])
