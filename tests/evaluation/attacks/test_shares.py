import numpy as np
import pytest
from scipy.stats import binomtest

from evaluation.attacks.rows import measure_share


@pytest.mark.parametrize(("hits", "n"), [(0, 30), (1, 30), (17, 40), (30, 30)])
def test_independent_rows_have_wilsons_interval(hits: int, n: int) -> None:
    rate = measure_share([True] * hits + [False] * (n - hits), range(n))
    expected = binomtest(hits, n).proportion_ci(method="wilson")
    assert (rate.low, rate.high) == pytest.approx((expected.low, expected.high))
    assert (rate.hits, rate.n, rate.value) == (hits, n, hits / n)


def test_rows_that_repeat_each_other_are_no_surer() -> None:
    hits = [True, False, False, True, False, False]
    once, thrice = measure_share(hits, range(6)), measure_share(hits * 3, [*range(6)] * 3)
    assert thrice.value == once.value
    assert thrice.low is not None and once.low is not None
    assert thrice.high is not None and once.high is not None
    assert thrice.low <= once.low and thrice.high > once.high


def test_a_success_less_does_not_raise_what_may_pass() -> None:
    """The upper end fell from .06 to .01 where one of 660 rows on 60 questions passed."""
    clusters = [row % 60 for row in range(660)]
    highs = [
        measure_share([row < hits for row in range(660)], clusters).high or 0 for hits in range(12)
    ]
    assert highs == sorted(highs)
    assert 0.01 < highs[0] < 0.03


@pytest.mark.parametrize("wordings", [6, 12, 24])
def test_few_wordings_hold_the_rate_of_all_wordings(wordings: int) -> None:
    """Wordings pass at rates of their own, about .3; questions alone held it in .56 to .94."""
    rng = np.random.default_rng(wordings)
    of_row = np.arange(60) % wordings
    held, by_questions = 0, 0
    for rates in rng.beta(1.5, 3.5, (400, wordings)):
        hits = (rng.random(60) < rates[of_row]).tolist()
        both = measure_share(hits, range(60), of_row.tolist())
        alone = measure_share(hits, range(60))
        assert both.low is not None and both.high is not None
        assert alone.low is not None and alone.high is not None
        held += both.low <= 0.3 <= both.high
        by_questions += alone.low <= 0.3 <= alone.high
    assert held >= 0.93 * 400
    assert by_questions < held


@pytest.mark.parametrize("questions", [5, 10, 20])
def test_few_questions_with_many_rows_hold_the_truth(questions: int) -> None:
    """Rates of questions vary as Beta(2.7, 6.3); 5 questions held the truth in 87 % before."""
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(questions), 20)
    held = 0
    for rates in rng.beta(2.7, 6.3, (1000, questions)):
        share = measure_share(
            (rng.random(len(clusters)) < rates[clusters]).tolist(), clusters.tolist()
        )
        assert share.low is not None and share.high is not None
        held += share.low <= 0.3 <= share.high
    assert held >= 935


def test_one_question_is_one_observation() -> None:
    rate = measure_share([False] * 40, ["a"] * 40)
    assert rate.high == pytest.approx(binomtest(0, 1).proportion_ci(method="wilson").high)


def test_rule_of_three_is_near_the_exact_bound() -> None:
    rate = measure_share([False] * 100, range(100))
    assert rate.rule_of_three == pytest.approx(1 - 0.05 ** (1 / 100), abs=0.001)
    assert measure_share([True] + [False] * 99, range(100)).rule_of_three is None
    assert measure_share([False], ["a"]).rule_of_three == 1


def test_no_rows() -> None:
    rate = measure_share([], [])
    assert (rate.n, rate.value, rate.low, rate.high, rate.rule_of_three) == (0, *[None] * 4)
