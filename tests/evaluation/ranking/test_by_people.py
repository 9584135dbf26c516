"""People's ranking from a judge's matches and people's outcomes of a sample."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.ranking.agreement import order_probabilities
from evaluation.ranking.bradley_terry import MatchResults, fit_strengths, win_matrix
from evaluation.ranking.tournament import rank_by_people
from experiments.findings.correction_coverage import draw_matches, match_coverage
from judging.errors import CustosError


def test_a_biased_judges_ranking_is_moved_to_peoples() -> None:
    """The judge favours the weakest model; people decided three matches of ten."""
    truth = np.array([-0.8, 0.0, 0.8])
    results, people, clusters = draw_matches(
        np.random.default_rng(1), truth, -2 * truth, 400, agrees=0.5
    )
    judged = fit_strengths(win_matrix(results))
    found = rank_by_people(results, people, clusters)
    expected = 1500 + truth * 400 / np.log(10)
    assert np.abs(judged - expected).max() > 100
    ratings = [found["models"][name] for name in results.names]
    for rating, value in zip(ratings, expected, strict=True):
        assert rating["low"] < value < rating["high"]
    assert list(found["models"]) == ["m2", "m1", "m0"]


def test_where_people_decided_all_it_is_their_ranking() -> None:
    truth = np.array([-0.5, 0.0, 0.5])
    results, people, clusters = draw_matches(
        np.random.default_rng(2), truth, truth, 60, sampled=1.0
    )
    found = rank_by_people(results, people, clusters)
    theirs = MatchResults(results.names, results.first, results.second, people.astype(np.int64))
    expected = fit_strengths(win_matrix(theirs), penalised=True)
    values = [found["models"][name]["value"] for name in results.names]
    assert values == pytest.approx(expected.tolist(), abs=1e-3)
    assert found["power"] == 0
    assert found["n"] == len(results)


def test_a_judge_that_agrees_makes_the_ranking_surer() -> None:
    truth = np.linspace(-0.6, 0.6, 3)
    widths = []
    for agrees in (0.0, 0.95):
        results, people, clusters = draw_matches(
            np.random.default_rng(3), truth, np.zeros(3), 200, agrees=agrees, sampled=0.2
        )
        found = rank_by_people(results, people, clusters)
        widths.append(np.mean([m["high"] - m["low"] for m in found["models"].values()]))
        assert (found["power"] > 0.5) == (agrees > 0.5)
    assert widths[1] < 0.75 * widths[0]


def test_intervals_and_probabilities_are_what_they_say() -> None:
    """Over random models, as many orders are the same as was said, and intervals hold."""
    before, held, said, came = match_coverage(60, np.random.default_rng(0))
    assert np.mean(held) > 0.9
    assert np.mean(before) < 0.8
    assert np.mean(came) == pytest.approx(np.mean(said), abs=0.15)
    sure = np.array(said) > 0.8
    assert sure.sum() >= 5
    assert np.mean(np.array(came)[sure]) > 0.7


def test_too_few_outcomes_are_refused() -> None:
    results = MatchResults.of([("p", "q", "A"), ("q", "r", "A"), ("p", "r", "tie")] * 2)
    clusters = np.repeat([0, 1], 3)
    with pytest.raises(CustosError, match="fewer than two questions"):
        rank_by_people(results, np.array([2, 0, 0, *[np.nan] * 3]), clusters)
    with pytest.raises(CustosError, match="no chain of matches"):
        rank_by_people(results, np.array([2, np.nan, np.nan] * 2), clusters)


def test_probabilities_of_an_order_by_hand() -> None:
    drawn = np.array([[3.0, 2, 1]] * 5 + [[3.0, 1, 2]] * 3 + [[1.0, 2, 3]] + [[np.nan, 1, 2]] * 7)
    found = order_probabilities(np.array([0.9, 0.5, 0.1]), drawn, 99)
    assert found == {"same_order": pytest.approx(6 / 11), "same_winner": pytest.approx(9 / 11)}
    tied = order_probabilities(np.array([0.9, 0.5, 0.5]), drawn, 99)
    assert tied == {"same_order": None, "same_winner": pytest.approx(9 / 11)}
    assert order_probabilities(np.array([0.5, 0.5, 0.1]), drawn, 99)["same_winner"] is None
    assert order_probabilities(np.ones(2), np.full((4, 2), np.nan), 99) == {
        "same_order": None,
        "same_winner": None,
    }


def test_draws_that_tie_models_count_half() -> None:
    found = order_probabilities(np.array([0.2, 0.8]), np.full((4000, 2), 0.5), 99)
    assert found["same_winner"] == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("scores", [[0.9, 0.1], [0.1, 0.9]])
def test_three_questions_make_nothing_sure(scores: list[float]) -> None:
    """Where a model is better on three of three questions, every resample has it better."""
    found = order_probabilities(np.array(scores), np.tile([1.0, 0.0], (1000, 1)), 3)
    assert found["same_winner"] == (7 / 8 if scores[0] > scores[1] else 1 / 8)
