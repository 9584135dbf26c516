"""Two judges on the same rows, against independent computations."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.estimate import newcombe_interval, paired_accuracies


def test_the_interval_is_that_of_the_mean_difference() -> None:
    """With a row to a question the bootstrap agrees with the normal interval of the mean."""
    rng = np.random.default_rng(0)
    first, second = rng.random(2000) < 0.8, rng.random(2000) < 0.6
    paired = paired_accuracies(first.tolist(), second.tolist(), np.arange(2000))
    apart = first.astype(float) - second
    half = 1.96 * apart.std() / np.sqrt(2000)
    difference = paired["difference"]
    assert difference["value"] == pytest.approx(apart.mean())
    assert difference["low"] == pytest.approx(apart.mean() - half, abs=0.004)
    assert difference["high"] == pytest.approx(apart.mean() + half, abs=0.004)
    assert (paired["first"]["value"], paired["n"]) == (pytest.approx(first.mean()), 2000)


def test_one_question_has_no_interval() -> None:
    difference = paired_accuracies([True, True], [False, True], np.zeros(2, int))["difference"]
    assert (difference["low"], difference["high"]) == (None, None)


@pytest.mark.parametrize(
    ("first", "second", "n", "low", "high"),
    [
        (9, 3, 10, 0.1705, 0.8090),
        (6, 2, 7, 0.0582, 0.8062),
        (10, 0, 10, 0.6075, 1.0000),
    ],
)
def test_newcombe_as_published(first: int, second: int, n: int, low: float, high: float) -> None:
    """Newcombe 1998, table II, method 10, where both rates are over as many items."""
    assert newcombe_interval(first / n, second / n, n) == pytest.approx((low, high), abs=5e-5)


def test_judges_that_differ_in_a_handful_of_rows_are_not_told_apart() -> None:
    """Of equal judges that differ on 2 % of 150 rows, 5 % at most are called different."""
    rng = np.random.default_rng(1)
    wrongly_apart, draws = 0, 150
    for _ in range(draws):
        apart = rng.choice([-1, 0, 1], size=150, p=[0.01, 0.98, 0.01])
        difference = paired_accuracies(
            (apart >= 0).tolist(), (apart <= 0).tolist(), np.arange(150)
        )["difference"]
        wrongly_apart += not difference["low"] <= 0 <= difference["high"]
    assert wrongly_apart / draws <= 0.08


@pytest.mark.parametrize("movers", [1, 2, 3, 4])
def test_an_interval_of_a_sparse_difference_leaves_out_zero_only_where_the_test_does(
    movers: int,
) -> None:
    second = np.arange(300) >= movers
    paired = paired_accuracies([True] * 300, second.tolist(), np.arange(300))
    assert paired["p"] == pytest.approx(2.0 ** (1 - movers))
    assert paired["difference"]["low"] <= 0 < paired["difference"]["high"]
