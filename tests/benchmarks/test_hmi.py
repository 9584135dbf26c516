"""Acceptable answers and the human misleadingness index."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

import pytest

from benchmarks.chartom.benchmark import ANSWERS
from benchmarks.chartom.item import ChartomItem, acceptable_interval, hmi
from judging.errors import CustosError

ORIGINAL, MANIPULATED = ANSWERS["G7_Q1_1"], ANSWERS["G7_Q1_2"]
"""What 68 people answered about the dogs, on both charts of the pair (Table 2)."""


def everyone(counts: Mapping[float, int]) -> list[float]:
    return [answer for answer, count in counts.items() for _ in range(count)]


def test_the_worked_example() -> None:
    low, high = acceptable_interval(1.2, [6, 300])
    assert low == -math.inf
    assert high == pytest.approx(math.sqrt(7.2))
    assert round(high, 2) == 2.68
    assert len(everyone(ORIGINAL)) == len(everyone(MANIPULATED)) == 68
    assert hmi(everyone(ORIGINAL), 1.2, [6, 300]) == 12 / 68
    assert hmi(everyone(MANIPULATED), 1.2, [6, 300]) == 20 / 68
    assert [round(n / 68, 2) for n in (12, 20)] == [0.18, 0.29]


def test_the_originals_own_alternatives_alone_would_miss_the_published_value() -> None:
    assert hmi(everyone(ORIGINAL), 1.2, [300]) == 10 / 68


@pytest.mark.parametrize(("correct", "alternative"), [(0, 5), (2, -1), (2, 0)])
def test_no_geometric_mean_across_zero(correct: float, alternative: float) -> None:
    with pytest.raises(CustosError):
        acceptable_interval(correct, [alternative])


def test_both_ends_are_open_and_no_answer_is_not_acceptable() -> None:
    assert hmi([2, 6, 2.001, 5.999], 4, [1, 9]) == 0.5
    assert hmi([None, "", "no idea", math.nan], 4, [9]) == 1
    assert hmi(["about 4", "4.0", 4], 4, [9]) == 0


@pytest.mark.parametrize(
    ("answer", "correct", "alternatives", "unit", "is_acceptable"),
    [
        ("1.2 million bags", 1.2, [6, 300], "million bags", True),
        ("1,200,000", 1.2, [6, 300], "million bags", True),
        (1_200_000, 1.2, [6, 300], "million bags", True),
        ("6,000,000 bags", 1.2, [6, 300], "million bags", False),
        ("300", 1.2, [6, 300], "million bags", False),
        ("1.2 thousand", 120, [600], "thousand bags", False),
        ("1.2 million bags", 1.2, [6, 300], "", True),
        ("1,200,000", 1.2, [6, 300], "", False),
        ("1.2 million", 1.2, [6, 300], "", True),
        ("300", 1.2, [6, 300], "", False),
        ("1200", 1.2, [6, 1200], "", False),
        ("5 feet", 5 / 3, [5], "yards", True),
        ("5 yards", 5 / 3, [5], "yards", False),
        ("2 kg", 5 / 3, [5], "yards", False),
        ("1.2 tons", 1.2, [6], "", True),
        ("1.2 m", 1.2, [6], "", True),
        ("3 tons", 1.2, [6], "", False),
        ("1.2M", 1.2, [6, 300], "million bags", True),
        ("6m bags", 1.2, [6, 300], "million bags", False),
        ("$1.2M", 1.2, [6, 300], "million dollars", True),
        ("1.2 m", 120, [600], "cm", True),
        ("50 %", 50, [90], "%", True),
        ("0.5", 50, [90], "%", True),
        ("0.9", 50, [90], "%", False),
        ("It is 1.2 (in 2019)", 1.2, [6], "", False),  # two numbers: which one is left open
    ],
)
def test_answers_are_read_in_the_keys_magnitude_and_unit(
    answer: str | float, correct: float, alternatives: list[float], unit: str, is_acceptable: bool
) -> None:
    # Without these answers' lower bound a small number would be acceptable whatever it means.
    assert hmi([answer], correct, [*alternatives, correct / 4], unit=unit) == 1 - is_acceptable


def test_bare_numbers_are_judged_by_the_formula_alone() -> None:
    """Derive it again from section 2.2.2: accepted in (L, U), bounded by geometric means."""
    rng = random.Random(7)

    def drawn() -> float:
        return float(f"{10 ** rng.uniform(-3, 4):.{rng.randint(1, 5)}g}")

    for _ in range(3000):
        correct, others = drawn(), [drawn() for _ in range(rng.randint(0, 4))]
        answers = [drawn() for _ in range(rng.randint(1, 12))]
        answers += [value * scale for value in (correct, *others) for scale in (1, 1e-3, 1e3, 1e6)]
        larger, smaller = [a for a in others if a > correct], [a for a in others if a < correct]
        upper = (correct * min(larger)) ** 0.5 if larger else math.inf
        lower = (correct * max(smaller)) ** 0.5 if smaller else -math.inf
        misled = [answer for answer in answers if answer <= lower or answer >= upper]
        written = [answer if rng.random() < 0.5 else repr(answer) for answer in answers]
        unit = rng.choice(("", "tons", "trucks"))
        assert hmi(written, correct, others, unit=unit) == len(misled) / len(answers)


@pytest.mark.parametrize(
    ("question", "is_upward"),
    [("Rank the trees from smallest to largest.", True), ("Rank the trees by height.", False)],
)
def test_an_order_is_read_in_the_direction_of_the_question(question: str, is_upward: bool) -> None:
    answers = ("Cedar < Beech < Aster", "from largest to smallest: Aster, Beech, Cedar")
    item = ChartomItem(
        id="P1_1",
        kind="bar",
        question=question,
        question_type="ranking",
        answer=("Cedar", "Beech", "Aster"),
        human_answers=(*answers, "Cedar, Beech, Aster", ("Cedar", "Beech", "Aster")),
    )
    assert item.measured_hmi(()) == (0 if is_upward else 0.5)


def test_choices_and_rankings_must_be_met_exactly() -> None:
    assert hmi(["Bacteria", " bacteria.", "Tomainia", None], "Bacteria") == 0.5
    whole = ("Aster", "Beech", "Cedar")
    assert hmi([whole, ("Beech", "Aster", "Cedar"), whole[:2], None], whole) == 0.75
    with pytest.raises(CustosError, match="at least one"):
        hmi([], "Bacteria")
