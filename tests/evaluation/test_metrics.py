"""Agreement and calibration, by hand and against scikit-learn and simulated judges."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn import metrics as sklearn

from evaluation import metrics
from evaluation.calibration_error import (
    calibration_error,
    chance_band,
    slope,
    squared_error,
)
from evaluation.intervals import Floats, Ints

# Rows people, columns judge. 13 of 20 agree; people 10/6/4, judge 9/5/6.
CONFUSION = np.array([[7.0, 1, 2], [2, 3, 1], [0, 1, 3]])
OF_CONFUSION = (metrics.accuracy, metrics.cohen_kappa, metrics.matthews, metrics.macro_f1)
pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


def arrays(drawn: list[tuple[int, int]]) -> tuple[Ints, Ints]:
    human, predicted = np.array(drawn, dtype=np.int64).T
    return human, predicted


def value(metric: Callable[[Floats], Floats], drawn: list[tuple[int, int]]) -> float:
    return float(metric(metrics.confusion_matrix(*arrays(drawn), 4)))


@given(pairs)
def test_agrees_with_scikit_learn(drawn: list[tuple[int, int]]) -> None:
    human, predicted = arrays(drawn)
    confusion = metrics.confusion_matrix(human, predicted, 4)
    np.testing.assert_array_equal(
        confusion, sklearn.confusion_matrix(human, predicted, labels=range(4))
    )
    assert metrics.accuracy(confusion) == pytest.approx(sklearn.accuracy_score(human, predicted))
    assert metrics.macro_f1(confusion) == pytest.approx(
        sklearn.f1_score(human, predicted, average="macro", zero_division=0)
    )
    if len({*human, *predicted}) > 1:
        assert metrics.cohen_kappa(confusion) == pytest.approx(
            sklearn.cohen_kappa_score(human, predicted), abs=1e-12
        )
    if len(set(human)) > 1 and len(set(predicted)) > 1:
        assert metrics.matthews(confusion) == pytest.approx(
            sklearn.matthews_corrcoef(human, predicted), abs=1e-12
        )


@pytest.mark.parametrize("metric", OF_CONFUSION)
@given(drawn=pairs, order=st.permutations(range(4)), seed=st.integers(0, 9))
def test_order_of_items_and_of_labels_does_not_matter(
    metric: Callable[[Floats], Floats],
    drawn: list[tuple[int, int]],
    order: list[int],
    seed: int,
) -> None:
    shuffled = [drawn[i] for i in np.random.default_rng(seed).permutation(len(drawn))]
    renamed = [(order[a], order[b]) for a, b in shuffled]
    assert value(metric, renamed) == pytest.approx(value(metric, drawn), abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("metric", OF_CONFUSION)
def test_extremes(metric: Callable[[Floats], Floats]) -> None:
    assert metric(np.diag([3.0, 4.0])) == pytest.approx(1)
    assert np.isnan(metric(np.zeros((2, 2))))


def test_a_constant_judge_has_no_correlation_but_a_kappa_of_zero() -> None:
    constant = np.array([[7.0, 0], [3, 0]])
    assert np.isnan(metrics.matthews(constant))
    assert metrics.cohen_kappa(constant) == 0
    assert np.isnan(metrics.cohen_kappa(np.array([[7.0, 0], [0, 0]])))


def test_leading_axes_are_free() -> None:
    stack = np.random.default_rng(0).integers(1, 9, size=(5, 3, 3)).astype(float)
    for metric in (*OF_CONFUSION, metrics.precision, metrics.recall, metrics.f1):
        np.testing.assert_allclose(metric(stack), [metric(matrix) for matrix in stack])


def test_false_positive_rate_is_of_what_people_call_wrong() -> None:
    correct, wrong = np.array([0]), np.array([2])
    assert metrics.share_in_columns(CONFUSION, wrong, correct) == 0
    assert metrics.share_in_columns(CONFUSION.T, wrong, correct) == pytest.approx(2 / 6)
    assert np.isnan(metrics.share_in_columns(np.diag([1.0, 1, 0]), wrong, correct))


def test_scores_of_a_posterior_are_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    human, probabilities = rng.integers(3, size=60), rng.dirichlet(np.ones(3), size=60)
    probabilities[0] = np.eye(3)[(human[0] + 1) % 3]  # certain and wrong
    nll = metrics.negative_log_likelihoods(human, probabilities)
    assert nll.mean() == pytest.approx(sklearn.log_loss(human, probabilities))
    assert nll[0] == pytest.approx(36.0437, abs=1e-4)
    assert metrics.brier_scores(human, probabilities).mean() == pytest.approx(
        sklearn.brier_score_loss(human, probabilities, scale_by_half=False)
    )


def ece(confidence: Floats, right: Floats, bins: int = 15) -> float:
    columns = metrics.calibration_columns(confidence, right, bins)
    return float(metrics.expected_calibration_error(columns.sum(axis=0)))


def test_calibration_error_against_a_plain_loop() -> None:
    rng = np.random.default_rng(3)
    confidence, right = rng.random(300), (rng.random(300) < 0.6).astype(float)
    gaps = [
        len(part) / 300 * abs(confidence[part].mean() - right[part].mean())
        for part in np.array_split(np.argsort(confidence), 15)
    ]
    assert ece(confidence, right) == pytest.approx(sum(gaps), abs=1e-12)


def test_bins_of_equal_width_hold_their_upper_ends_and_the_first_also_0() -> None:
    confidence = np.array([0.0, 0.0999, 0.1, 0.3, 0.5, 0.7, 0.95, 1.0])
    assert metrics.equal_width_bins(confidence, 10).tolist() == [0, 0, 0, 2, 4, 6, 9, 9]


def test_a_reliability_table_holds_the_bins_in_use() -> None:
    confidence, right = np.array([0.9, 0.9, 0.5, np.nan]), np.array([1.0, 0, 1, 1])
    table = metrics.reliability_table(metrics.calibration_columns(confidence, right).sum(axis=0))
    assert table["bins"] == [
        {"n": 1, "confidence": 0.5, "accuracy": 1.0},
        {"n": 2, "confidence": 0.9, "accuracy": 0.5},
    ]
    assert table["ece"] == pytest.approx((0.5 + 2 * 0.4) / 3)


QUESTIONS, ROWS = 89, 5


def judge(
    rng: np.random.Generator, *, bias: float = 0.0, alike: float = 0.0, steepness: float = 1.0
) -> tuple[Floats, np.ndarray, Ints]:
    """Confidences, whether rows are right, and questions.

    Args:
        rng: Draws.
        bias: True accuracy less confidence.
        alike: Chance that a row takes its question's draw: the root of the correlation.
        steepness: True slope of the log-odds.
    """
    clusters = np.repeat(np.arange(QUESTIONS), ROWS)
    stated = rng.uniform(0.55, 0.95, size=len(clusters))
    true = expit(steepness * logit(stated)) + bias
    shared = rng.random(QUESTIONS)[clusters]
    drawn = np.where(rng.random(len(stated)) < alike, shared, rng.random(len(stated)))
    return stated, drawn < true, clusters


@pytest.mark.parametrize("alike", [0.0, 0.5])
def test_a_calibrated_judge_exceeds_chance_as_seldom_as_it_says(alike: float) -> None:
    """The interval by resampling questions never held the truth of such a judge, which is 0."""
    rng = np.random.default_rng(int(10 * alike))
    above, means = 0, []
    for _ in range(150):
        found = calibration_error(*judge(rng, alike=alike))
        assert found["value"] > 0 and np.isnan([found["low"], found["high"]]).all()
        above += found["value"] > found["chance"]["high"]
        means.append(found["value"] - found["chance"]["mean"])
    assert 0.01 * 150 <= above <= 0.10 * 150
    assert abs(np.mean(means)) < 0.004


def test_chance_of_one_bin_is_the_mean_of_a_folded_binomial() -> None:
    """Fifty rows at one confidence share a bin; the gap is that of a binomial number."""
    from scipy.stats import binom

    counts = np.arange(51)
    expected = np.sum(binom.pmf(counts, 50, 0.8) * np.abs(counts / 50 - 0.8))
    found = chance_band(np.full(50, 0.8), np.arange(50) < 40, np.arange(50))
    assert found["mean"] == pytest.approx(expected, rel=0.05)


def test_the_squared_error_by_hand() -> None:
    """One bin, residuals .8 and -.2 of one question and .3 of another: pairs of two questions."""
    stated, right = np.array([0.8, 0.8, 0.8]), np.array([False, True, False])
    expected = (0.8 * 0.8 + -0.2 * 0.8) / 2
    assert squared_error(stated, right, np.array([0, 0, 1])) == pytest.approx(expected)
    assert np.isnan(squared_error(stated, right, np.zeros(3, dtype=np.int64)))


def test_the_slope_is_the_logistic_regressions() -> None:
    stated, right, clusters = judge(np.random.default_rng(2), steepness=0.6)

    def loss(parameters: Floats) -> float:
        odds = parameters[0] + parameters[1] * logit(stated)
        return float(np.logaddexp(0, np.where(right, -odds, odds)).sum())

    best = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-8}).x
    found = slope(stated, right, clusters)
    assert found["value"] == pytest.approx(best[1], abs=1e-5)
    assert found["n"] == QUESTIONS * ROWS


@pytest.mark.parametrize("right", [np.ones(9, dtype=bool), np.arange(9) < 5])
def test_without_a_finite_slope_there_is_none(right: np.ndarray) -> None:
    parted = slope(np.where(right, 0.9, 0.2), right, np.arange(9))
    assert np.isnan([parted["value"], parted["low"], parted["high"]]).all()
    assert np.isnan(chance_band(np.full(9, np.nan), right, np.arange(9))["mean"])
