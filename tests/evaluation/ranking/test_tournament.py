"""Tables of tournaments, Elo, and rankings: how they agree, and people's from a judge's matches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evaluation.intervals import RESAMPLES
from evaluation.outcomes import Outcomes
from evaluation.ranking.bradley_terry import (
    LOG_ODDS_PER_POINT,
    MatchResults,
    Ratings,
    fit_strengths,
    kendall_tau_b,
    order_probabilities,
    rank_answerers,
    ranking_agreement,
    sampling_ceiling,
    win_matrix,
)
from evaluation.ranking.tournament import online_elo, rank_by_people, rank_models
from evaluation.report.report import build_report
from judging.errors import CustosError
from tests.evaluation.drawn import alike, draw_matches
from tests.evaluation.made_up import evaluation


def test_draws_without_finite_strengths_leave_no_interval() -> None:
    """In a third of the resamples ``p`` wins every match: no upper end of its rating is known."""
    table = [("p", "q", "A")] * 9 + [("p", "q", "B")]
    found = rank_models(MatchResults.of(table), np.arange(10))
    # The one defeat is missing from (9/10)^10 = 35 % of the draws, all others from 1e-10.
    assert 0.58 < found["draws"] / RESAMPLES < 0.72
    for rating in (found["models"][name]["rating"] for name in "pq"):
        assert np.isnan([rating["low"], rating["high"]]).all()


def test_table_by_hand() -> None:
    found = rank_models(
        MatchResults.of([("p", "q", "B")] * 3 + [("q", "p", "B"), ("q", "r", "tie")]), np.arange(5)
    )
    assert list(found["models"]) == ["q", "r", "p"] or list(found["models"]) == ["r", "q", "p"]
    assert found["models"]["q"]["matches"] == 5
    assert found["models"]["q"]["points"] == 3.5
    assert found["wins"]["p"] == {"q": 1.0, "r": 0.0}
    rates = found["win_rate"]
    assert [(rates["q"][b]["value"], rates["q"][b]["n"]) for b in "pr"] == [(0.75, 4), (0.5, 1)]
    assert rates["q"]["p"]["low"] < 0.75 < rates["q"]["p"]["high"]
    assert np.isnan(rates["p"]["r"]["value"])
    assert found["n"] == 5


@pytest.mark.parametrize("on", [1, 3, 6])
def test_who_always_won_may_yet_lose(on: int) -> None:
    rows = [("p", "q", "A")] * 6 + [("q", "r", "A"), ("r", "p", "A"), ("r", "q", "A")]
    clusters = np.array([n % on for n in range(6)] + [7, 8, 9])
    rates = rank_models(MatchResults.of(rows), clusters)["win_rate"]
    # Wilson 1927 where all of them agree, with Student's quantile.
    low = on / (on + stats.t.ppf(0.975, max(on - 1, 1)) ** 2)
    found = rates["p"]["q"]
    assert (found["value"], found["n"]) == (1, 6)
    assert (found["low"], found["high"]) == (pytest.approx(low), 1)
    assert rates["q"]["p"]["high"] == pytest.approx(1 - low)


@pytest.mark.parametrize(
    ("questions", "times", "likeness", "ties", "rate"),
    [
        (5, 4, 0.95, 0.4, 0.8),
        (10, 1, 0.0, 0.0, 0.95),
        (10, 1, 0.0, 0.4, 0.8),
        (10, 4, 0.95, 0.0, 0.8),
    ],
)
def test_intervals_of_win_rates_on_few_questions_hold(
    questions: int, times: int, likeness: float, ties: float, rate: float
) -> None:
    """Two models meet once or several times on a question, and the verdicts there are alike."""
    rng, held = np.random.default_rng(0), []
    first, second = (np.tile(side, questions) for side in np.triu_indices(5, k=1))
    first, second = np.repeat(first, times), np.repeat(second, times)
    clusters, meetings = np.arange(len(first)) // (10 * times), np.arange(len(first)) // times
    names = tuple(f"m{number}" for number in range(5))
    truth = rate * (1 - ties) + ties / 2
    for _ in range(12):
        half_points = 2 * (alike(meetings, likeness, rng) < rate)
        half_points[rng.random(len(first)) < ties] = 1
        rates = rank_models(MatchResults(names, first, second, half_points), clusters)["win_rate"]
        found = [rates[a][b] for a in names for b in names if a < b]
        held += [pair["low"] <= truth <= pair["high"] for pair in found]
    # Quantiles of resamples hold it in .77 of the first and .90 of the third. Without Student's
    # quantile it is .91 of the second, and with the likeness assumed of answers .86 of the last.
    assert np.mean(held) > 0.94


def test_intervals_of_win_rates_on_many_questions_are_no_wider_than_needed() -> None:
    for decided in (100, 20):  # wins and losses; the others are ties
        rows = [("p", "q", outcome) for outcome in "AB" * (decided // 2)]
        rows += [("p", "q", "tie")] * (100 - decided)
        rate = rank_models(MatchResults.of(rows), np.arange(100))["win_rate"]["p"]["q"]
        error = np.sqrt(decided / 100) / 2 / 10
        assert rate["high"] - rate["low"] == pytest.approx(2 * 1.96 * error, rel=0.05)


def test_elo_by_hand() -> None:
    matches = MatchResults.of([("p", "q", "A"), ("p", "q", "tie"), ("q", "r", "B")])
    p, q, r = 1500.0, 1500.0, 1500.0
    p, q = p + 16, q - 16  # expected one half of K = 32
    gain = 32 * (0.5 - 1 / (1 + 10 ** ((q - p) / 400)))
    p, q = p + gain, q - gain
    gain = 32 * (0 - 1 / (1 + 10 ** ((r - q) / 400)))
    q, r = q + gain, r - gain
    found = online_elo(matches, np.array([[0, 1, 2], [2, 1, 0]]), k=32)
    assert found[0] == pytest.approx([p, q, r])
    assert abs(found[0] - found[1]).max() > 0.5  # the order matters
    assert found.mean(axis=1) == pytest.approx([1500, 1500])


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


@pytest.mark.parametrize("is_weighed", [True, False])
def test_matches_that_were_likelier_to_be_drawn_weigh_less(is_weighed: bool) -> None:
    """Matches that people decide for the first model are six times as likely among theirs."""
    rng, truth = np.random.default_rng(3), np.zeros(3)
    found = []
    for _ in range(25):
        results, people, clusters = draw_matches(rng, truth, -truth, 80, agrees=0.7, sampled=1.0)
        chances = np.where((people == 2) & (results.first == 0), 0.9, 0.15)
        people[rng.random(len(people)) >= chances] = np.nan
        given = chances if is_weighed else None
        ranked = rank_by_people(results, people, clusters, given)["models"]["m0"]
        found.append(ranked["value"] - 1500)
    error = np.std(found) / 5
    assert bool(abs(np.mean(found)) < 2.5 * error) == is_weighed


def test_intervals_of_ratings_on_few_questions_hold() -> None:
    rng, held = np.random.default_rng(6), []
    for _ in range(40):
        truth = rng.normal(0, 0.6, 4)
        truth -= truth.mean()
        drawn = draw_matches(rng, truth, truth, 8, sampled=1.0)
        models = rank_by_people(*drawn)["models"]
        held += [
            models[f"m{number}"]["low"]
            <= 1500 + strength / LOG_ODDS_PER_POINT
            <= models[f"m{number}"]["high"]
            for number, strength in enumerate(truth)
        ]
    assert np.mean(held) > 0.92  # .87 by the quantiles of the resamples alone


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


@pytest.mark.parametrize(("spread", "models"), [(0.0, 20), (1.0, 20), (1.0, 6), (9.0, 20)])
def test_the_best_of_many_close_systems_is_no_surer_than_it_is(spread: float, models: int) -> None:
    """Compare the stated probability with the share of simulated cases in which it comes true."""
    rng, stated, right = np.random.default_rng(4), 0.0, 0
    for _ in range(300):
        truth = rng.normal(0, spread, models) if spread else np.zeros(models)
        scores = truth + rng.normal(size=models)
        drawn = scores + rng.normal(size=(200, models))
        stated += order_probabilities(scores, drawn, 99)["same_winner"] or 0
        best = np.argmax(truth) if spread else rng.integers(models)
        right += best == np.argmax(scores)
    # Of twenty equal systems .05 are right, where plain draws state .24.
    assert stated / 300 == pytest.approx(right / 300, abs=0.11)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=8))
def test_kendall_is_scipys(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs, dtype=float).T
    expected = stats.kendalltau(first, second).statistic
    assert kendall_tau_b(first, second) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_agreement_of_rankings_by_hand() -> None:
    """Chance moves one of three models, so that it may be the last or the second."""
    moved = np.zeros((1000, 3))
    moved[:, 0] = np.random.default_rng(0).normal(0, 0.6, 1000)
    values = np.array([0.0, 1.0, 9.0])
    one, sure = (Ratings(("p", "q", "r"), values, values + size * moved) for size in (1.0, 1e-6))
    found = ranking_agreement(one, sure, 100)
    assert (found["value"], found["low"], found["high"]) == (1, pytest.approx(1 / 3), 1)
    surest = ranking_agreement(sure, sure, 100)
    assert (surest["low"], surest["high"]) == (1, 1)
    few = ranking_agreement(sure, sure, 5)  # one of five the other way would change the order
    assert (few["low"], few["high"]) == (-1, 1)
    missing = values + np.where(np.arange(1000)[:, None] % 10, 1e-6, np.nan) * moved
    found = ranking_agreement(sure, Ratings(("p", "q", "r"), values, missing), 100)
    assert (found["low"], found["high"], found["draws"]) == (-1, 1, 900)
    alone = ranking_agreement(one, sure, 1)
    assert np.isnan([alone["low"], alone["high"]]).all()


@pytest.mark.parametrize("spread", [0.02, 0.3])
def test_interval_of_a_rank_correlation_holds_that_of_close_systems(spread: float) -> None:
    """A judge that errs alike on all systems orders them as people do, on all questions."""
    rng = np.random.default_rng(0)
    systems, questions, held = 12, 60, 0
    names = [str(number) for number in range(systems)] * questions
    nothing = np.full(systems * questions, np.nan)
    clusters = np.repeat(np.arange(questions), systems)
    for _ in range(10):
        rates = np.linspace(0.7 - spread / 2, 0.7 + spread / 2, systems)
        human = (rng.random((questions, systems)) > rates).astype(int).ravel()
        judge = np.where(rng.random(len(human)) < 0.9, human, 1 - human)
        posterior = np.stack([nothing, nothing], axis=1)
        outcomes = Outcomes(("Correct", "Wrong"), human, judge, posterior, nothing, clusters)
        tau = (rank_answerers(outcomes, names) or {})["kendall_tau"]
        held += tau["low"] <= 1 <= tau["high"] and tau["low"] <= tau["value"]
    assert held == 10  # quantiles of the resamples hold it in none


def test_ranking_of_answerers_is_peoples_when_judge_agrees() -> None:
    examples, verdicts = evaluation(accuracy=1.0, questions=150)
    made = build_report(examples, verdicts, seconds=1, command="")
    ranking = made["answerer_ranking"]
    assert list(ranking["answerers"]) == ["cat", "bee", "ant"]
    tau = ranking["kendall_tau"]
    assert (tau["value"], tau["high"], tau["n"]) == (1, 1, 3)
    assert tau["low"] < 1  # 150 questions do not tell all three apart
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


def test_questions_without_an_answer_of_a_system_make_no_order_surer() -> None:
    """Two systems answered three questions; a coin would say so of them with probability 1/8."""
    clusters = np.repeat(np.arange(53), 2)
    answerers = ["good", "bad"] * 3 + [None] * 100
    human = np.array([0, 1] * 53)
    nothing = np.full(len(human), np.nan)
    outcomes = Outcomes(
        ("Correct", "Wrong"), human, human, np.stack([nothing, nothing], axis=1), nothing, clusters
    )
    found = rank_answerers(outcomes, answerers)
    assert found is not None
    assert found["same_winner"] == found["same_order"] == 7 / 8
