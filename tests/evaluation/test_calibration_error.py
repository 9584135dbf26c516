"""Calibration error, by hand, against a plain loop and simulated judges."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import t

from evaluation.calibration_error import (
    calibration_columns,
    calibration_error,
    chance_band,
    equal_width_bins,
    expected_calibration_error,
    reliability_table,
    slope,
    squared_error,
)
from evaluation.intervals import Floats, Ints


def ece(confidence: Floats, right: Floats) -> float:
    columns = calibration_columns(confidence, right)
    return float(expected_calibration_error(columns.sum(axis=0)))


def test_calibration_error_against_a_plain_loop() -> None:
    rng = np.random.default_rng(3)
    confidence, right = rng.random(300), (rng.random(300) < 0.6).astype(float)
    gaps = [
        len(part) / 300 * abs(confidence[part].mean() - right[part].mean())
        for part in np.array_split(np.argsort(confidence), 15)
    ]
    assert ece(confidence, right) == pytest.approx(sum(gaps), abs=1e-12)


def test_bins_of_equal_width_hold_their_upper_ends_and_the_first_also_0() -> None:
    confidence = np.array([0.0, 0.0666, 1 / 15, 0.2, 0.5, 0.7, 14 / 15, 0.95, 1.0])
    assert equal_width_bins(confidence).tolist() == [0, 0, 0, 2, 7, 10, 13, 14, 14]


def test_a_reliability_table_holds_the_bins_in_use() -> None:
    confidence, right = np.array([0.9, 0.9, 0.5, np.nan]), np.array([1.0, 0, 1, 1])
    table = reliability_table(calibration_columns(confidence, right).sum(axis=0))
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
    """Such a judge has an error of 0, which an interval by resampling questions never holds."""
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


@pytest.mark.parametrize("spread", [1e-9, 1e-4])
def test_the_slope_of_confidences_that_are_nearly_one(spread: float) -> None:
    """They had no fit, with a traceback, or one that was given up before its end."""
    stated, right, clusters = judge(np.random.default_rng(2), steepness=0.6)
    middle = logit(0.8)
    found = slope(expit(middle + spread * (logit(stated) - middle)), right, clusters)
    if spread < 1e-6:
        assert np.isnan([found["value"], found["low"]]).all()
    else:
        whole = slope(stated, right, clusters)
        for end in ("value", "low", "high"):
            assert found[end] * spread == pytest.approx(whole[end], rel=1e-6)


def test_the_interval_of_a_slope_leaves_out_each_question_in_turn() -> None:
    """One step of Newton's method from the fit goes nearly all the way to the fit without it."""
    rng = np.random.default_rng(5)
    clusters = np.repeat(np.arange(40), 5)
    stated = rng.uniform(0.55, 0.95, 40)[clusters]
    right = rng.random(200) < stated
    found = slope(stated, right, clusters)
    without = [
        slope(stated[rows], right[rows], clusters[rows])["value"]
        for rows in (clusters != number for number in range(40))
    ]
    spread = np.sum((np.array(without) - found["value"]) ** 2) * 39 / 40
    expected = float(t.ppf(0.975, 38) * np.sqrt(spread))
    assert (found["high"] - found["low"]) / 2 == pytest.approx(expected, rel=0.03)


def test_a_question_that_alone_decides_the_slope_leaves_no_interval() -> None:
    """All others state one confidence."""
    clusters = np.repeat(np.arange(4), 4)
    stated = np.where(clusters < 3, 0.7, np.tile([0.6, 0.9, 0.8, 0.6], 4))
    right = np.tile([True, True, False, True], 4)
    found = slope(stated, right, clusters)
    assert not np.isnan(found["value"]) and np.isnan([found["low"], found["high"]]).all()


def test_the_interval_of_a_slope_holds_it_where_questions_differ_in_confidence() -> None:
    rng, held, fitted = np.random.default_rng(1), 0, 0
    clusters = np.repeat(np.arange(5), 20)
    for _ in range(300):
        stated = rng.uniform(0.55, 0.95, 5)[clusters]
        found = slope(stated, rng.random(100) < stated, clusters)
        fitted += not np.isnan(found["low"])
        held += found["low"] <= 1 <= found["high"]
    assert fitted > 290 and held >= 0.94 * fitted  # by the sandwich variance .88
