from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evaluation.ranking.agreement import kendall_tau_b, ranking_agreement
from evaluation.ranking.bradley_terry import Ratings
from judging.errors import CustosError


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=8))
def test_kendall_is_scipys(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs, dtype=float).T
    expected = stats.kendalltau(first, second).statistic
    assert kendall_tau_b(first, second) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_kendall_of_many_rankings_at_once() -> None:
    first = np.array([[1.0, 2, 3], [1, 2, 3], [1, 1, 1], [1, 2, np.nan]])
    second = np.array([[2.0, 4, 9], [3, 2, 1], [1, 2, 3], [1, 2, 3]])
    expected = np.array([1, -1, np.nan, np.nan])
    np.testing.assert_allclose(kendall_tau_b(first, second), expected)


def test_agreement_of_rankings() -> None:
    names = ("p", "q", "r")
    values = np.array([900.0, 1000.0, 1100.0])
    drawn = np.stack([values, values[::-1], np.full(3, np.nan)])
    one = Ratings(names, values, drawn)
    found = ranking_agreement(one, Ratings(names, values[::-1], drawn))
    assert (found["value"], found["low"], found["high"]) == (-1, 1, 1)
    assert (found["n"], found["draws"]) == (3, 2)
    with pytest.raises(CustosError, match="not of the same models"):
        ranking_agreement(one, Ratings(("p", "q", "s"), values, drawn))
