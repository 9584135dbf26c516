import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.truthfulvqa.logits import MEASURES, advantage, advantage_loss, measure_lal
from judging.errors import CustosError

logit = st.integers(-400, 400).map(lambda tenth: tenth / 10)
four = st.tuples(logit, logit, logit, logit).map(lambda row: dict(zip("ABCD", row, strict=True)))
letter = st.sampled_from("ABCD")


def result(set_id: str, level: int, logits: Any, answer: Any = "A") -> dict[str, Any]:
    case = {"set_id": set_id, "id": f"{set_id}_level{level}", "level": level, "answer": answer}
    return {"case": case, "result": {"option_logits": logits}}


ONE = {"A": 5.0, "B": 1.0, "C": 0.0, "D": -3.0}
TWO = {"A": 2.0, "B": 4.0, "C": 0.0, "D": 0.0}
THREE = {"A": 3.0, "B": 0.0, "C": 2.0, "D": -1.0}
RESULTS = [result("s", 3, THREE), result("s", 1, ONE), result("s", 2, TWO), result("t", 1, ONE)]


def test_by_hand() -> None:
    found = measure_lal(RESULTS)
    item = found["items"][0]
    assert item == {
        "set_id": "s",
        # A: 5 - 1 = 4 of span 8, 2 - 4 = -2 of span 4, 3 - 2 = 1 of span 4.
        "lal_1_to_2": 6.0,
        "lal_norm_1_to_2": 1.0,
        "correct_degradation_1_to_2": 3.0,
        "incorrect_amplification_1_to_2": 3.0,
        "lal_2_to_3": -3.0,
        "lal_norm_2_to_3": -0.75,
        "correct_degradation_2_to_3": -1.0,
        "incorrect_amplification_2_to_3": -2.0,
        "lal_1_to_3": 3.0,
        "lal_norm_1_to_3": 0.25,
        "correct_degradation_1_to_3": 2.0,
        "incorrect_amplification_1_to_3": 1.0,
    }
    assert math.isnan(found["items"][1]["lal_1_to_2"])
    assert found["mean"]["lal_1_to_2"] == 6.0
    assert found["intervals"]["lal_1_to_2"]["n"] == 1
    assert (found["sets"], found["complete_sets"]) == (2, 1)


def test_means_are_over_the_sets_that_have_the_levels() -> None:
    rng = np.random.default_rng(0)
    results = [
        result(str(i), level, dict(zip("ABCD", rng.normal(size=4).tolist(), strict=True)))
        for i in range(30)
        for level in (1, 2, 3)
        if level < 3 or i % 2
    ]
    found = measure_lal(results)
    for name, estimate in found["intervals"].items():
        values = np.array([item[name] for item in found["items"]])
        assert estimate["value"] == pytest.approx(np.nanmean(values))
        assert estimate["n"] == (30 if name.endswith("1_to_2") else 15)
        assert estimate["low"] < estimate["value"] < estimate["high"]


@given(four, four, letter, letter)
def test_the_two_parts_add_up(
    before: dict[str, float], after: dict[str, float], first: str, second: str
) -> None:
    found = advantage_loss(advantage(before, first), advantage(after, second))
    parts = found["correct_degradation"] + found["incorrect_amplification"]
    assert parts == pytest.approx(found["lal"], abs=1e-9)
    back = advantage_loss(advantage(after, second), advantage(before, first))
    for name in MEASURES:
        assert back[name] == pytest.approx(-found[name], abs=1e-9, nan_ok=True)
    assert math.isnan(found["lal_norm"]) or abs(found["lal_norm"]) <= 2 + 1e-9


@given(four, four, letter, logit, st.floats(0.1, 10))
def test_a_shift_and_a_scale_of_the_logits(
    before: dict[str, float], after: dict[str, float], answer: str, shift: float, scale: float
) -> None:
    """A constant per level leaves LAL alone (not its parts); a factor leaves normalised LAL."""

    def loss(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
        return advantage_loss(advantage(before, answer), advantage(after, answer))

    found = loss(before, after)
    moved = loss({name: value + shift for name, value in before.items()}, after)
    assert moved["lal"] == pytest.approx(found["lal"], abs=1e-9)
    assert moved["lal_norm"] == pytest.approx(found["lal_norm"], abs=1e-6, nan_ok=True)
    assert moved["correct_degradation"] == pytest.approx(
        found["correct_degradation"] + shift, abs=1e-9
    )
    scaled = loss(
        {name: value * scale for name, value in before.items()},
        {name: value * scale for name, value in after.items()},
    )
    assert scaled["lal"] == pytest.approx(scale * found["lal"], abs=1e-6)
    assert scaled["lal_norm"] == pytest.approx(found["lal_norm"], abs=1e-6, nan_ok=True)


@given(four, letter)
def test_advantage_is_the_log_odds_against_the_strongest_other(
    logits: dict[str, float], answer: str
) -> None:
    names = list(logits)
    share = np.exp(np.array(list(logits.values())) - max(logits.values()))
    others = [share[i] for i, name in enumerate(names) if name != answer]
    log_odds = np.log(share[names.index(answer)] / max(others))
    assert advantage(logits, answer).margin == pytest.approx(log_odds, abs=1e-6)


def test_equal_logits_have_no_normalised_advantage() -> None:
    flat = dict.fromkeys("ABCD", 1.0)
    assert math.isnan(advantage(flat, "A").normalised)
    found = measure_lal([result("s", 1, flat), result("s", 2, ONE)])
    assert math.isnan(found["mean"]["lal_norm_1_to_2"])
    assert found["mean"]["lal_1_to_2"] == -4.0


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([], "the data is empty"),
        ([{"case": {"set_id": "s"}, "result": {}}], "row 1: needs 'case'"),
        ([result("s", 4, ONE)], "row 1: field 'level': 4"),
        ([result("s", 1, ONE), result("s", 1, ONE)], "row 2: set 's' has level 1 twice"),
        ([result("s", 1, {"B": 1.0, "C": 2.0})], "row 1: .*needs the answer 'A'"),
        ([result("s", True, ONE)], "row 1: field 'level': True"),
        ([result("s", 1, [1.0, 2.0])], "row 1: field 'option_logits': .* is not an object"),
        ([result("s", 1, None)], "row 1: field 'option_logits': None is not an object"),
        ([result("s", 1, ONE, ["A"])], "row 1: field 'answer': .* is not an option letter"),
        ([result("s", 1, {"A": 1.0})], "at least one other option"),
        ([result("s", 1, {"A": math.nan, "B": 1.0})], "'A' is nan, not a finite number"),
    ],
)
def test_faults_are_named(results: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(CustosError, match=message):
        measure_lal(results)
