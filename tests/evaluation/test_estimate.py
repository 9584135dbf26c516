import numpy as np
import pytest
from scipy import stats

from evaluation.estimate import Draws, mean, share, without_nan
from evaluation.intervals import resample_clusters, wilson_interval
from evaluation.metrics import ratio


def test_share_by_hand() -> None:
    hits = np.array([True, True, False, True])
    among = np.array([True, True, True, False])
    found = share(hits, among, np.arange(4))
    assert (found["value"], found["n"]) == (pytest.approx(2 / 3), 3)
    assert 0 <= found["low"] < 2 / 3 < found["high"] <= 1


def test_a_share_of_nothing_is_nan() -> None:
    found = share(np.ones(3, bool), np.zeros(3, bool), np.arange(3))
    assert np.isnan([found["value"], found["low"], found["high"]]).all()
    assert found["n"] == 0


def test_a_share_of_all_has_width() -> None:
    everything = np.ones(20, bool)
    found = share(everything, everything, np.arange(20))
    assert (found["low"], found["high"]) == pytest.approx(wilson_interval(20, 20))


def test_a_rate_of_one_rests_on_the_clusters_it_is_about() -> None:
    among = np.arange(400) >= 300  # 100 items in two clusters, the others in 300
    clusters = np.where(among, np.arange(400) % 2, np.arange(400) + 2)
    found = share(among, among, clusters)
    assert (found["value"], found["n"]) == (1, 100)
    assert found["low"] < wilson_interval(2, 2).low  # two clusters, and Student's quantile
    assert found["high"] == 1


def test_a_rate_that_every_question_shares_has_width() -> None:
    """Two questions, each with one right answer of two, prove no rate of a half."""
    found = share(np.array([True, False] * 2), np.ones(4, bool), np.arange(4) // 2)
    assert found["value"] == 0.5
    assert found["low"] < wilson_interval(1, 2).low < wilson_interval(1, 2).high < found["high"]


def test_a_rate_of_a_single_question_among_others_has_no_interval() -> None:
    among = np.arange(60) < 4
    found = share(np.arange(60) % 2 == 0, among, np.where(among, 0, np.arange(60)))
    assert (found["value"], found["n"]) == (0.5, 4)
    assert np.isnan([found["low"], found["high"]]).all()


def test_clusters_widen() -> None:
    columns = np.stack([np.repeat([0.0, 1], 100), np.ones(200)], axis=1)
    widths = []
    for clusters in (np.arange(200), np.repeat(np.arange(20), 10)):
        found = Draws.of(columns, clusters).estimate(lambda s: ratio(s[..., 0], s[..., 1]), 200)
        widths.append(found["high"] - found["low"])
    assert widths[1] > 2 * widths[0]


def test_a_seed_gives_its_own_resamples() -> None:
    columns = np.random.default_rng(0).normal(size=(30, 2))
    drawn = [Draws.of(columns, np.arange(30), seed).resampled for seed in (0, 1, 1)]
    assert np.array_equal(drawn[1], resample_clusters(columns, seed=1))
    assert np.array_equal(drawn[1], drawn[2])
    assert not np.array_equal(drawn[0], drawn[1])


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
    found = mean(np.full(20, value), np.ones(20, bool), np.arange(20))
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
        found = mean(values, np.ones(5 * questions, dtype=bool), clusters, seed)
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
