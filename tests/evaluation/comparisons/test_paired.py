"""Two judges on the same rows, against independent computations."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.comparisons.paired import newcombe_interval, paired_accuracies


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


def test_rows_of_a_question_are_drawn_together() -> None:
    first = np.repeat([True, True, False, True], 25)
    second = np.repeat([True, False, False, False], 25)
    alone = paired_accuracies(first.tolist(), second.tolist(), np.arange(100))["difference"]
    together = paired_accuracies(first.tolist(), second.tolist(), np.repeat(np.arange(4), 25))
    assert together["clusters"] == 4
    wide = together["difference"]
    assert wide["high"] - wide["low"] > 2 * (alone["high"] - alone["low"])


def test_four_of_four_against_none_is_no_proof() -> None:
    paired = paired_accuracies([True] * 4, [False] * 4, np.arange(4))
    assert paired["difference"]["value"] == 1.0
    assert paired["difference"]["low"] < 0.5


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
