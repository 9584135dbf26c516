"""Agreement of rankings, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evaluation.outcomes import Outcomes
from evaluation.ranking.bradley_terry import (
    Ratings,
    answerer_of,
    kendall_tau_b,
    rank_answerers,
    ranking_agreement,
    sampling_ceiling,
)
from evaluation.report.report import build_report
from judging.errors import CustosError
from tests.evaluation.made_up import evaluation, example


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


def test_the_interval_of_a_rank_correlation_holds_its_value() -> None:
    """People rate two of three systems equally, as hardly a resample does: its tau-b is 1."""
    correct = np.array([(1, 1, 0), (1, 0, 1), (0, 1, 1), (1, 0, 0), (0, 1, 0)] * 600).ravel()
    by_judge = correct.copy()
    by_judge[1] = 0
    size = len(correct)
    outcomes = Outcomes(
        labels=("Wrong", "Correct"),
        human=correct,
        predicted=by_judge,
        probabilities=np.full((size, 2), np.nan),
        confidence=np.full(size, np.nan),
        clusters=np.arange(size) // 3,
    )
    ranking = rank_answerers(outcomes, ["a", "b", "c"] * (size // 3))
    assert ranking is not None
    tau = ranking["kendall_tau"]
    assert tau["value"] == pytest.approx(2 / 6**0.5)
    assert tau["low"] <= tau["value"] <= tau["high"] == 1


def test_people_who_wrote_an_answer_each_are_no_systems_to_rank() -> None:
    examples, verdicts = evaluation(questions=40)
    named = [e.model_copy(update={"metadata": {"answerer": f"person {e.id}"}}) for e in examples]
    made = build_report(named, verdicts, seconds=1, command="")
    assert len(made["slices"]["answerer"]) == 120
    assert made["answerer_ranking"] is None


def test_chance_in_the_choice_of_questions_shrinks_the_agreement_of_perfect_judges() -> None:
    """Two systems half a standard error apart change places in a third of all resamples."""
    rng = np.random.default_rng(0)
    difference = 0.5 + rng.normal(size=20_000)
    resampled = np.stack([difference, np.zeros(20_000)], axis=1)
    expected = 1 - 2 * stats.norm.cdf(-0.5)
    assert sampling_ceiling(np.array([0.5, 0.0]), resampled) == pytest.approx(expected, abs=0.02)
    assert sampling_ceiling(np.array([9.0, 0.0]), np.array([[9.0, 0.0]] * 5)) == 1
    assert np.isnan(sampling_ceiling(np.array([1.0, 1.0]), resampled))


def test_a_missing_name_is_no_system() -> None:
    for missing in (None, "", " ", float("nan")):
        assert answerer_of(example("Correct", metadata={"answerer": missing})) is None
