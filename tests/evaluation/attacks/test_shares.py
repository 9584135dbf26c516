import pytest
from scipy.stats import binomtest

from evaluation.attacks.shares import measure_share


@pytest.mark.parametrize(("hits", "n"), [(0, 30), (1, 30), (17, 40), (30, 30)])
def test_independent_rows_have_wilsons_interval(hits: int, n: int) -> None:
    rate = measure_share([True] * hits + [False] * (n - hits), range(n))
    expected = binomtest(hits, n).proportion_ci(method="wilson")
    assert (rate.low, rate.high) == pytest.approx((expected.low, expected.high))
    assert (rate.hits, rate.n, rate.value) == (hits, n, hits / n)


def test_rows_that_repeat_each_other_count_once() -> None:
    once = measure_share([True, False, False, True, False, False], range(6))
    thrice = measure_share([True, False, False, True, False, False] * 3, [*range(6)] * 3)
    assert thrice.value == once.value
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high))
    none = measure_share([False] * 18, [*range(6)] * 3)
    assert none.high == pytest.approx(binomtest(0, 6).proportion_ci(method="wilson").high)
    assert none.rule_of_three == pytest.approx(3 / 6)


def test_rule_of_three_is_near_the_exact_bound() -> None:
    rate = measure_share([False] * 100, range(100))
    assert rate.rule_of_three == pytest.approx(1 - 0.05 ** (1 / 100), abs=0.001)
    assert measure_share([True] + [False] * 99, range(100)).rule_of_three is None
    assert measure_share([False], ["a"]).rule_of_three == 1


def test_no_rows() -> None:
    rate = measure_share([], [])
    assert (rate.n, rate.value, rate.low, rate.high, rate.rule_of_three) == (0, *[None] * 4)
