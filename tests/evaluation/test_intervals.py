"""Intervals and tests of clustered items, against scipy, formulas and simulation."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import binomtest

from evaluation.attacks.rows import measure_share
from evaluation.estimate import Draws, mean, without_nan
from evaluation.intervals import (
    cluster_sums,
    holm,
    ratio,
    resample_clusters,
    sign_flip_p,
    wilson_bounds,
    wilson_interval,
)


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (3, 10), (10, 10), (81, 263), (1, 1)])
def test_wilson_is_scipys(successes: int, n: int) -> None:
    expected = stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert wilson_interval(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


@given(st.integers(1, 300), st.floats(0, 1))
def test_wilson_of_many_rates_at_once(n: int, rate: float) -> None:
    low, high = wilson_bounds(np.array([rate, 0.5]), np.array([float(n), 0.5 + n]))
    assert (low[0], high[0]) == pytest.approx(wilson_interval(rate * n, n), abs=1e-9)
    assert low[1] < 0.5 < high[1]


@given(st.integers(0, 4000), st.integers(0, 4000), st.integers(1, 3))
def test_clusters_of_one_size_are_fair_coins(first: int, second: int, size: int) -> None:
    differences = np.repeat([1.0, -1.0], [first * size, second * size])
    expected = stats.binomtest(first, first + second).pvalue if first + second else 1.0
    found = sign_flip_p(differences, np.arange(len(differences)) // size)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-250)


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9), st.sampled_from([1.0, 0.25, 0.1]))
def test_all_signs_of_clusters_are_weighed(sums: list[int], unit: float) -> None:
    clusters = np.repeat(np.arange(len(sums)), np.abs(sums))
    differences = unit * np.repeat(np.sign(sums).astype(float), np.abs(sums))
    flipped = [np.dot(signs, sums) for signs in itertools.product((-1, 1), repeat=len(sums))]
    expected = np.mean(np.abs(flipped) >= abs(sum(sums)))
    assert sign_flip_p(differences, clusters) == pytest.approx(expected, abs=1e-12)


def test_decimals_of_many_clusters_are_drawn_as_scipy_does() -> None:
    differences = np.random.default_rng(3).normal(0.25, 1, size=60)
    expected = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=20_000, random_state=0
    ).pvalue
    found = sign_flip_p(differences, np.arange(60))
    assert found == pytest.approx(expected, abs=0.01)
    assert sign_flip_p(differences, np.arange(60)) == found
    assert sign_flip_p(np.full(60, 0.3), np.arange(60)) == 1 / 10_000


def test_holm_by_hand() -> None:
    assert holm([0.04, 0.01, 0.03, 0.9]) == pytest.approx([0.09, 0.04, 0.09, 0.9])
    assert holm([0.5, 0.6]) == [1.0, 1.0]


def test_resamples_are_what_a_loop_over_items_gives() -> None:
    rng = np.random.default_rng(1)
    values, clusters = rng.normal(size=(40, 2)), rng.permutation(40) % 9
    fast = resample_clusters(cluster_sums(values, clusters), seed=5)
    picks = np.random.default_rng(5).integers(9, size=(1000, 9))
    slow = [sum(values[clusters == pick].sum(axis=0) for pick in row) for row in picks]
    np.testing.assert_allclose(fast, slow, rtol=1e-12)


def test_a_mean_leaves_out_what_does_not_exist() -> None:
    values = np.array([1.0, 4.0, np.nan, 100.0])
    among = np.array([True, True, False, False])
    found = mean(values, among, np.arange(4))
    assert (found["value"], found["n"]) == (2.5, 2)
    # Half of the draws have no spread: twice Student's quantile of one degree of freedom.
    half = 2 * stats.t.ppf(0.975, 1) * 1.5
    assert (found["low"], found["high"]) == pytest.approx((2.5 - half, 2.5 + half), rel=1e-4)


@pytest.mark.parametrize("value", [1.0, 0.0, 0.1, 0.02])
def test_resamples_without_spread_are_no_interval(value: float) -> None:
    """Give no interval where all resamples agree, as in kappa where judge and people never differ.

    Sums of .1 in another order differ in their last digits, which is no spread either.
    """
    found = mean(np.full(20, value), None, np.arange(20))
    assert found["value"] == pytest.approx(value)
    assert np.isnan([found["low"], found["high"]]).all()


def test_the_error_is_the_delta_methods() -> None:
    """A ratio of means: its standard error from the residuals, and Student's interval from it."""
    rng = np.random.default_rng(5)
    columns = rng.gamma(3, 1, size=(400, 2))
    clusters = np.arange(400) // 2
    found = Draws.of(columns, clusters).estimate(lambda s: ratio(s[..., 0], s[..., 1]), 400)
    residuals = columns[:, 0] - found["value"] * columns[:, 1]
    sums = residuals.reshape(200, 2).sum(axis=1)
    error = np.sqrt(np.sum(sums**2) * 200 / 199) / columns[:, 1].sum()
    assert (found["high"] - found["low"]) / 2 == pytest.approx(1.97 * error, rel=0.08)


@pytest.mark.parametrize("questions", [5, 10, 30])
def test_intervals_of_a_skewed_mean_hold_the_truth_on_few_questions(questions: int) -> None:
    """Quantiles of resamples held it in .77, .86 and .91 of such draws."""
    rng = np.random.default_rng(questions)
    clusters, held, by_quantiles = np.repeat(np.arange(questions), 5), 0, 0
    for seed in range(250):
        values = rng.exponential(1, questions)[clusters] * rng.exponential(1, 5 * questions)
        found = mean(values, None, clusters, seed)
        held += found["low"] <= 1 <= found["high"]
        columns = np.stack([values, np.ones(5 * questions)], axis=1)
        drawn = Draws.of(columns, clusters, seed).resampled
        low, high = np.quantile(drawn[:, 0] / drawn[:, 1], [0.025, 0.975])
        by_quantiles += low <= 1 <= high
    assert held >= (0.86 if questions == 5 else 0.9) * 250
    assert held > by_quantiles


def test_without_nan() -> None:
    value = {"a": [float("nan"), 1.5, (float("inf"),)], "b": "nan", "c": None, "d": 3}
    assert without_nan(value) == {"a": [None, 1.5, [None]], "b": "nan", "c": None, "d": 3}


@pytest.mark.parametrize(("hits", "n"), [(0, 30), (1, 30), (17, 40), (30, 30)])
def test_independent_rows_have_wilsons_interval(hits: int, n: int) -> None:
    rate = measure_share([True] * hits + [False] * (n - hits), range(n))
    expected = binomtest(hits, n).proportion_ci(method="wilson")
    assert (rate.low, rate.high) == pytest.approx((expected.low, expected.high))
    assert (rate.hits, rate.n, rate.value) == (hits, n, hits / n)


def test_a_success_less_does_not_raise_what_may_pass() -> None:
    """The upper end fell from .06 to .01 where one of 660 rows on 60 questions passed."""
    clusters = [row % 60 for row in range(660)]
    highs = [
        measure_share([row < hits for row in range(660)], clusters).high or 0 for hits in range(12)
    ]
    assert highs == sorted(highs)
    assert 0.01 < highs[0] < 0.03


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
