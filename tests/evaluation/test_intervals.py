import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evaluation.intervals import (
    cluster_standard_error,
    cluster_sums,
    holm,
    percentile_interval,
    rate_interval,
    resample_clusters,
    sign_flip_p,
    wilson_bounds,
    wilson_interval,
)


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (3, 10), (10, 10), (81, 263), (1, 1)])
def test_wilson_is_scipys(successes: int, n: int) -> None:
    expected = stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert wilson_interval(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_wilson_of_no_failures_has_width() -> None:
    z2 = 1.959963984540054**2
    assert wilson_interval(0, 20) == pytest.approx((0.0, z2 / (20 + z2)), abs=1e-12)


def test_wilson_of_nothing_is_nan() -> None:
    assert np.isnan(wilson_interval(0, 0)).all()


@given(st.integers(1, 300), st.floats(0, 1))
def test_wilson_of_many_rates_at_once(n: int, rate: float) -> None:
    low, high = wilson_bounds(np.array([rate, 0.5]), np.array([float(n), 0.5 + n]))
    assert (low[0], high[0]) == pytest.approx(wilson_interval(rate * n, n), abs=1e-9)
    assert low[1] < 0.5 < high[1]


def test_single_items_are_tested_as_mcnemar_does() -> None:
    # 1 against 5 discordant: 2 * (C(6,0) + C(6,1)) / 2^6 = 14/64.
    assert sign_flip_p(np.array([1.0] + [-1.0] * 5), np.arange(6)) == pytest.approx(14 / 64)
    assert sign_flip_p(np.zeros(3), np.arange(3)) == 1


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


def test_items_of_one_question_are_no_proof_of_each_other() -> None:
    """Twenty losses on two questions are two losses."""
    differences, questions = np.array([-1.0] * 20), np.arange(20)
    assert sign_flip_p(differences, questions) < 0.001
    assert sign_flip_p(differences, questions // 10) == pytest.approx(0.5)


@pytest.mark.parametrize("rows", [1, 5, 10])
def test_equal_judges_are_told_apart_as_seldom_as_the_level_says(rows: int) -> None:
    """By rows the exact test rejected in .07 to .12 of draws (5 rows), .09 to .18 (10 rows)."""
    rng = np.random.default_rng(rows)
    clusters = np.repeat(np.arange(60), rows)
    by_question, by_row = 0, 0
    for _ in range(400):
        shared = rng.random(60)[clusters]
        drawn = np.where(rng.random(60 * rows) < 0.5, shared, rng.random(60 * rows))
        differences = np.select([drawn < 0.1, drawn > 0.9], [-1.0, 1.0], 0.0)
        by_question += sign_flip_p(differences, clusters) <= 0.05
        by_row += sign_flip_p(differences, np.arange(60 * rows)) <= 0.05
    assert by_question <= 0.075 * 400
    assert rows == 1 or by_row > 0.075 * 400


def test_holm_by_hand() -> None:
    assert holm([0.04, 0.01, 0.03, 0.9]) == pytest.approx([0.09, 0.04, 0.09, 0.9])
    assert holm([0.5, 0.6]) == [1.0, 1.0]


def test_cluster_sums_adds_rows_of_unordered_clusters() -> None:
    values = np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0], [8.0, 80.0]])
    assert cluster_sums(values, np.array([7, 3, 7, 5])).tolist() == [[2, 20], [8, 80], [5, 50]]


def test_resamples_are_what_a_loop_over_items_gives() -> None:
    rng = np.random.default_rng(1)
    values, clusters = rng.normal(size=(40, 2)), rng.permutation(40) % 9
    fast = resample_clusters(cluster_sums(values, clusters), resamples=30, seed=5)
    picks = np.random.default_rng(5).integers(9, size=(30, 9))
    slow = [sum(values[clusters == pick].sum(axis=0) for pick in row) for row in picks]
    np.testing.assert_allclose(fast, slow, rtol=1e-12)


def test_resamples_in_chunks_are_as_many_and_all_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluation.intervals.WEIGHTS_AT_ONCE", 100)  # 10 rows at a time
    drawn = resample_clusters(np.ones((10, 1)), resamples=25)
    assert drawn.tolist() == [[10.0]] * 25


def test_one_cluster_has_no_spread() -> None:
    assert np.isnan(resample_clusters(np.ones((1, 2)), resamples=3)).all()
    assert np.isnan(cluster_standard_error(np.ones(4), np.zeros(4, dtype=np.int64)))


def test_two_clusters_have_a_spread() -> None:
    drawn = resample_clusters(np.array([[1.0], [3.0]]), resamples=200)
    assert set(drawn[:, 0]) == {2.0, 4.0, 6.0}
    assert cluster_standard_error(np.array([1.0, 3.0]), np.arange(2)) == pytest.approx(1.0)


def test_percentile_interval_leaves_out_what_does_not_exist() -> None:
    samples = np.concatenate([np.arange(1001) / 1000, [np.nan] * 50])
    assert percentile_interval(samples) == pytest.approx((0.025, 0.975))
    assert np.isnan(percentile_interval(np.full(3, np.nan))).all()


def test_a_rate_whose_resamples_differ_has_their_interval() -> None:
    samples = np.arange(1001) / 1000
    assert rate_interval(0.5, samples, 40) == percentile_interval(samples)
    same_elsewhere = np.full(9, 0.4)
    assert rate_interval(0.5, same_elsewhere, 40) == (0.4, 0.4)


@pytest.mark.parametrize(
    ("rate", "samples"),
    [(0.0, [0.0, 0.1]), (1.0, [0.9, 1.0]), (0.5, [0.5, 0.5]), (0.25, [np.nan, 0.25])],
)
def test_a_rate_without_spread_has_wilsons_interval(rate: float, samples: list[float]) -> None:
    assert rate_interval(rate, np.array(samples), 8) == wilson_interval(rate * 8, 8)


def test_interval_covers_the_truth_only_when_clusters_are_kept() -> None:
    """Four answers per question share most of their outcome; ignoring that is far too sure."""
    rng = np.random.default_rng(0)
    kept, ignored, trials = 0, 0, 300
    for trial in range(trials):
        rate = rng.beta(0.35, 0.15, size=100)  # mean 0.7
        right = (rng.random((100, 4)) < rate[:, None]).astype(float).reshape(-1, 1)
        for clusters in (np.repeat(np.arange(100), 4), np.arange(400)):
            drawn = resample_clusters(cluster_sums(right, clusters), 300, seed=trial)
            low, high = percentile_interval(drawn[:, 0] / 400)
            covered = low <= 0.7 <= high
            kept += covered and len(set(clusters)) == 100
            ignored += covered and len(set(clusters)) == 400
    assert 0.91 <= kept / trials <= 0.98
    assert ignored / trials < 0.85


def test_standard_error_of_singletons_is_the_textbook_one() -> None:
    values = np.random.default_rng(2).normal(size=50)
    expected = np.std(values, ddof=1) / np.sqrt(50)
    assert cluster_standard_error(values, np.arange(50)) == pytest.approx(expected, rel=1e-12)


def test_standard_error_of_repeated_items_does_not_shrink() -> None:
    values = np.random.default_rng(2).normal(size=50)
    alone = cluster_standard_error(values, np.arange(50))
    tripled = cluster_standard_error(np.repeat(values, 3), np.repeat(np.arange(50), 3))
    assert tripled == pytest.approx(alone, rel=1e-12)
