"""Results of matches and their strengths, against numerical maximisation."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import optimize

from evaluation.intervals import Floats
from evaluation.ranking.bradley_terry import MatchResults, bradley_terry, fit_strengths, win_matrix
from judging.errors import CustosError

TURNED = {"A": "B", "B": "A", "tie": "tie"}

match_rows = st.lists(
    st.tuples(
        st.sampled_from("pqrs"), st.sampled_from("pqrs"), st.sampled_from(tuple(TURNED))
    ).filter(lambda row: row[0] != row[1]),
    min_size=1,
    max_size=40,
)
Rows = list[tuple[str, str, str]]


def played(
    strengths: Floats, n: int, seed: int = 0, ties: float = 0.1
) -> list[tuple[str, str, str]]:
    """Matches between players of known log-strengths; ties fall anywhere."""
    rng = np.random.default_rng(seed)
    models = len(strengths)
    first = rng.integers(models, size=n)
    second = (first + 1 + rng.integers(models - 1, size=n)) % models
    won = rng.random(n) < 1 / (1 + np.exp(strengths[second] - strengths[first]))
    outcome = np.where(rng.random(n) < ties, "tie", np.where(won, "A", "B"))
    return [
        (f"m{a:02}", f"m{b:02}", str(o)) for a, b, o in zip(first, second, outcome, strict=True)
    ]


def test_win_matrix_by_hand() -> None:
    matches = MatchResults.of(
        [("p", "q", "A"), ("q", "p", "A"), ("q", "r", "tie"), ("r", "p", "B")]
    )
    assert matches.names == ("p", "q", "r")
    assert win_matrix(matches).tolist() == [[0, 1, 1], [1, 0, 0.5], [0, 0.5, 0]]


def test_no_matches_rank_nobody() -> None:
    with pytest.raises(CustosError, match="the data is empty"):
        MatchResults.of([])


NATURAL = np.log(10) / 400


def by_brute_force(wins: Floats) -> Floats:
    """Maximise the log-likelihood numerically."""

    def loss(strengths: Floats) -> float:
        gaps = strengths[:, None] - strengths[None, :]
        return float(np.sum(wins * np.logaddexp(0, -gaps)))

    found = optimize.minimize(loss, np.zeros(len(wins)), method="BFGS", options={"gtol": 1e-9}).x
    return np.asarray(1500 + (found - found.mean()) / NATURAL)


@given(match_rows)
def test_strengths_are_what_brute_force_finds(drawn: Rows) -> None:
    wins = win_matrix(MatchResults.of(drawn))
    fitted = fit_strengths(wins)
    assume(not np.isnan(fitted).any())
    assert fitted == pytest.approx(by_brute_force(wins), abs=0.05)
    # At the maximum the expected points are the points won.
    gaps = (fitted[:, None] - fitted[None, :]) * NATURAL
    expected = ((wins + wins.T) / (1 + np.exp(-gaps))).sum(axis=1)
    assert expected == pytest.approx(wins.sum(axis=1), abs=1e-7)


def test_many_tables_at_once_are_fitted_one_by_one() -> None:
    rng = np.random.default_rng(3)
    tables = rng.integers(0, 5, size=(30, 4, 4)) * (1 - np.eye(4))
    tables[0, 0], tables[1] = 0, 0  # one that never wins; nobody played
    together = fit_strengths(tables)
    assert np.isnan(together[:2]).all()
    for table, fitted in zip(tables, together, strict=True):
        assert fitted == pytest.approx(fit_strengths(table), nan_ok=True)


def test_known_strengths_are_recovered_and_covered() -> None:
    truth = np.linspace(-1, 1, 6)
    truth_elo = 1500 + (truth - truth.mean()) / NATURAL
    covered = 0
    for seed in range(20):
        matches = MatchResults.of(played(truth, 1500, seed, ties=0))
        ratings = bradley_terry(matches, np.arange(1500))
        low, high = np.quantile(ratings.resampled, [0.025, 0.975], axis=0)
        covered += int(((low <= truth_elo) & (truth_elo <= high)).sum())
        assert abs(ratings.values - truth_elo).max() < 70
    assert 0.91 <= covered / (20 * 6) <= 0.99


def test_a_model_out_of_reach_is_named() -> None:
    rows = [("p", "q", "tie"), ("q", "r", "tie"), ("x", "y", "tie")]
    with pytest.raises(CustosError, match="'x' cannot .* no chain of matches leads to 'p'"):
        bradley_terry(MatchResults.of(rows), np.arange(3))


def by_penalised_brute_force(wins: Floats) -> Floats:
    """Maximise the log-likelihood plus half the log-determinant of the information numerically."""
    games = wins + wins.T

    def loss(others: Floats) -> float:
        strengths = np.append(others, 0)
        gaps = strengths[:, None] - strengths[None, :]
        chance = 1 / (1 + np.exp(-gaps))
        weight = games * chance * (1 - chance)
        information = (np.diag(weight.sum(axis=1)) - weight)[:-1, :-1]
        likelihood = -np.sum(wins * np.logaddexp(0, -gaps))
        return float(-likelihood - np.linalg.slogdet(information)[1] / 2)

    start = np.zeros(len(wins) - 1)
    found = np.append(optimize.minimize(loss, start, method="BFGS", options={"gtol": 1e-8}).x, 0)
    return np.asarray(1500 + (found - found.mean()) / NATURAL)


@given(match_rows)
def test_firths_strengths_are_what_brute_force_finds(drawn: Rows) -> None:
    wins = win_matrix(MatchResults.of(drawn))
    fitted = fit_strengths(wins, penalised=True)
    assume(not np.isnan(fitted).any())
    assert fitted == pytest.approx(by_penalised_brute_force(wins), abs=0.1)


@pytest.mark.parametrize("outcome", ["A", "B"])
def test_a_model_that_wins_or_loses_all_is_ranked(outcome: str) -> None:
    rows = [("p", "r", outcome)] * 3 + [("q", "r", "A"), ("r", "q", "A"), ("q", "p", "tie")] * 2
    rows = [row for row in rows if row != ("q", "p", "tie")] if outcome == "A" else rows
    ratings = bradley_terry(MatchResults.of(rows), np.arange(len(rows)))
    assert not np.isnan(ratings.resampled).all()
    best = ratings.names[int(np.argmax(ratings.values))]
    assert ratings.is_penalised == (outcome == "A")
    assert (best == "p") == (outcome == "A")
