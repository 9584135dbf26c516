"""Agreement of rankings, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evaluation.ranking.agreement import (
    kendall_tau_b,
    ranking_agreement,
    sampling_ceiling,
)
from evaluation.ranking.bradley_terry import Ratings
from evaluation.report.report import build_report
from judging.errors import CustosError
from tests.evaluation.made_up import evaluation


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=8))
def test_kendall_is_scipys(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs, dtype=float).T
    expected = stats.kendalltau(first, second).statistic
    assert kendall_tau_b(first, second) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_agreement_of_rankings() -> None:
    names = ("p", "q", "r")
    values = np.array([1400.0, 1500.0, 1600.0])
    drawn = np.stack([values, values[::-1], np.full(3, np.nan)])
    one = Ratings(names, values, drawn)
    found = ranking_agreement(one, Ratings(names, values[::-1], drawn))
    assert (found["value"], found["low"], found["high"]) == (-1, -1, 1)
    assert (found["n"], found["draws"]) == (3, 2)
    with pytest.raises(CustosError, match="not of the same models"):
        ranking_agreement(one, Ratings(("p", "q", "s"), values, drawn))


def test_ranking_of_answerers_is_peoples_when_judge_agrees() -> None:
    examples, verdicts = evaluation(accuracy=1.0, questions=150)
    made = build_report(examples, verdicts, seconds=1, command="")
    ranking = made["answerer_ranking"]
    assert list(ranking["answerers"]) == ["cat", "bee", "ant"]
    tau = ranking["kendall_tau"]
    assert (tau["value"], tau["low"], tau["high"], tau["n"]) == (1, None, None, 3)  # no spread
    assert 0.9 < tau["ceiling"] <= 1
    for row in ranking["answerers"].values():
        assert row["people"] == row["judge"]
        assert row["people"]["low"] < row["people"]["value"] < row["people"]["high"]


def test_chance_in_the_choice_of_questions_shrinks_the_agreement_of_perfect_judges() -> None:
    """Two systems half a standard error apart change places in a third of all resamples."""
    rng = np.random.default_rng(0)
    difference = 0.5 + rng.normal(size=20_000)
    resampled = np.stack([difference, np.zeros(20_000)], axis=1)
    expected = 1 - 2 * stats.norm.cdf(-0.5)
    assert sampling_ceiling(np.array([0.5, 0.0]), resampled) == pytest.approx(expected, abs=0.02)
    assert sampling_ceiling(np.array([9.0, 0.0]), np.array([[9.0, 0.0]] * 5)) == 1
    assert np.isnan(sampling_ceiling(np.array([1.0, 1.0]), resampled))
