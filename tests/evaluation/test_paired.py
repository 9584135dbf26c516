"""Two judges on the same rows, against independent computations."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.paired import newcombe_interval, paired_accuracies


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


@pytest.mark.parametrize("movers", [1, 2, 3, 4])
def test_an_interval_of_a_sparse_difference_leaves_out_zero_only_where_the_test_does(
    movers: int,
) -> None:
    second = np.arange(300) >= movers
    paired = paired_accuracies([True] * 300, second.tolist(), np.arange(300))
    assert paired["p"] == pytest.approx(2.0 ** (1 - movers))
    assert paired["difference"]["low"] <= 0 < paired["difference"]["high"]
