import time

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import optimize

from evaluation.intervals import Z_95, Floats, kendall_tau_b
from evaluation.ranking.tournament import (
    Matches,
    Ratings,
    bradley_terry,
    elo_table,
    fit_strengths,
    online_elo,
    rank_models,
    ranking_agreement,
    win_matrix,
)
from judging.errors import CustosError

TURNED = {"A": "B", "B": "A", "tie": "tie"}
NATURAL = np.log(10) / 400

rows = st.lists(
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


def by_brute_force(wins: Floats) -> Floats:
    """Maximise the log-likelihood numerically."""

    def loss(strengths: Floats) -> float:
        gaps = strengths[:, None] - strengths[None, :]
        return float(np.sum(wins * np.logaddexp(0, -gaps)))

    found = optimize.minimize(loss, np.zeros(len(wins)), method="BFGS", options={"gtol": 1e-9}).x
    return np.asarray(1000 + (found - found.mean()) / NATURAL)


def test_win_matrix_by_hand() -> None:
    matches = Matches.of([("p", "q", "A"), ("q", "p", "A"), ("q", "r", "tie"), ("r", "p", "B")])
    assert matches.names == ("p", "q", "r")
    assert win_matrix(matches).tolist() == [[0, 1, 1], [1, 0, 0.5], [0, 0.5, 0]]


def test_two_models_by_hand() -> None:
    # 7.5 to 2.5: odds of 3 to 1.
    matches = Matches.of([("p", "q", "A")] * 7 + [("q", "p", "A")] * 2 + [("p", "q", "tie")])
    gap = 400 * np.log10(3)
    assert bradley_terry(matches, resamples=10).values == pytest.approx(
        [1000 + gap / 2, 1000 - gap / 2]
    )


@given(rows)
def test_strengths_are_what_brute_force_finds(drawn: Rows) -> None:
    wins = win_matrix(Matches.of(drawn))
    fitted = fit_strengths(wins)
    assume(not np.isnan(fitted).any())
    assert fitted == pytest.approx(by_brute_force(wins), abs=0.05)
    # At the maximum the expected points are the points won.
    gaps = (fitted[:, None] - fitted[None, :]) * NATURAL
    expected = ((wins + wins.T) / (1 + np.exp(-gaps))).sum(axis=1)
    assert expected == pytest.approx(wins.sum(axis=1), abs=1e-7)


@given(rows, st.lists(st.booleans(), min_size=40, max_size=40))
def test_sides_and_order_do_not_matter(drawn: Rows, turn: list[bool]) -> None:
    turned = [
        (b, a, TURNED[outcome]) if swap else (a, b, outcome)
        for (a, b, outcome), swap in zip(drawn, turn, strict=False)
    ][::-1]
    first, second = (win_matrix(Matches.of(table)) for table in (drawn, turned))
    np.testing.assert_array_equal(first, second)


@given(rows)
def test_a_tie_is_half_a_win_for_each(drawn: Rows) -> None:
    doubled = []
    for a, b, outcome in drawn:
        doubled += [(a, b, "A"), (a, b, "B")] if outcome == "tie" else [(a, b, outcome)] * 2
    np.testing.assert_array_equal(
        2 * win_matrix(Matches.of(drawn)), win_matrix(Matches.of(doubled))
    )


def test_lopsided_results_converge() -> None:
    wins = np.array([[0, 1e6, 1e6], [1, 0, 1e6], [0, 1, 0]])
    fitted = fit_strengths(wins)
    assert fitted == pytest.approx(by_brute_force(wins / 1e3), abs=5)
    gaps = (fitted[:, None] - fitted[None, :]) * NATURAL
    expected = ((wins + wins.T) / (1 + np.exp(-gaps))).sum(axis=1)
    assert expected == pytest.approx(wins.sum(axis=1), rel=1e-6)


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
    truth_elo = 1000 + (truth - truth.mean()) / NATURAL
    covered = 0
    for seed in range(40):
        matches = Matches.of(played(truth, 1500, seed, ties=0))
        ratings = bradley_terry(matches, resamples=300, seed=seed)
        low, high = np.quantile(ratings.drawn, [0.025, 0.975], axis=0)
        covered += int(((low <= truth_elo) & (truth_elo <= high)).sum())
        assert abs(ratings.values - truth_elo).max() < 70
    assert 0.91 <= covered / (40 * 6) <= 0.99


def test_draws_scatter_as_matches_resampled_one_by_one() -> None:
    table = played(np.array([0.6, 0.0, -0.6]), 400)
    fast = bradley_terry(Matches.of(table), resamples=800).drawn.std(axis=0)
    rng = np.random.default_rng(1)
    slow = np.array(
        [
            fit_strengths(win_matrix(Matches.of([table[i] for i in rng.integers(400, size=400)])))
            for _ in range(400)
        ]
    ).std(axis=0)
    assert fast == pytest.approx(slow, rel=0.15)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [("p", "q", "tie"), ("q", "r", "tie"), ("x", "y", "tie")],
            "'x' cannot .* no chain of matches",
        ),
        (
            [("p", "q", "tie"), ("p", "r", "A")],
            "'r' cannot .* chain of its wins or ties leads to 'p'",
        ),
        ([("p", "q", "tie"), ("r", "p", "A")], "'r' cannot .* leads from 'p' back to it"),
    ],
)
def test_a_model_out_of_reach_is_named(rows: Rows, message: str) -> None:
    with pytest.raises(CustosError, match=message):
        bradley_terry(Matches.of(rows))


def test_matches_of_one_question_are_resampled_together() -> None:
    """Ten copies of every match on one question are worth what one is worth."""
    table = played(np.array([0.5, 0.0, -0.5]), 300)
    alone = bradley_terry(Matches.of(table), np.arange(300), resamples=800).drawn.std(axis=0)
    copied = Matches.of(table * 10)
    together = bradley_terry(copied, np.tile(np.arange(300), 10), resamples=800).drawn.std(axis=0)
    assert together == pytest.approx(alone, rel=1e-6)
    assert bradley_terry(Matches.of(table)).drawn.std(axis=0) == pytest.approx(alone, rel=0.15)


def test_draws_without_finite_strengths_are_counted() -> None:
    table = [("p", "q", "A")] * 9 + [("p", "q", "B")]
    found = rank_models(Matches.of(table), resamples=400)
    # The one defeat is missing from (9/10)^10 = 35 % of the draws, all others from 1e-10.
    assert 0.58 < found["draws"] / 400 < 0.72
    assert found["models"]["p"]["rating"]["low"] > 1000 - 200


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "the data is empty"),
        ([("p", "q", "A"), ("p", "q", "None")], "match 2: outcome 'None' is not one of A, B, tie"),
        ([("p", "p", "A")], "match 1: 'p' plays itself"),
    ],
)
def test_faults_are_named(rows: Rows, message: str) -> None:
    with pytest.raises(CustosError, match=message):
        Matches.of(rows)


def test_elo_by_hand() -> None:
    matches = Matches.of([("p", "q", "A"), ("p", "q", "tie"), ("q", "r", "B")])
    p, q, r = 1000.0, 1000.0, 1000.0
    p, q = p + 16, q - 16  # expected one half of K = 32
    gain = 32 * (0.5 - 1 / (1 + 10 ** ((q - p) / 400)))
    p, q = p + gain, q - gain
    gain = 32 * (0 - 1 / (1 + 10 ** ((r - q) / 400)))
    q, r = q + gain, r - gain
    found = online_elo(matches, np.array([[0, 1, 2], [2, 1, 0]]), k=32)
    assert found[0] == pytest.approx([p, q, r])
    assert abs(found[0] - found[1]).max() > 0.5  # the order matters
    assert found.mean(axis=1) == pytest.approx([1000, 1000])


def test_elo_over_shuffles_orders_models_as_their_strengths() -> None:
    truth = np.linspace(-1.5, 1.5, 5)
    matches = Matches.of(played(truth, 3000))
    table = elo_table(matches, k=16, shuffles=20)
    means = np.array([table[name]["mean"] for name in matches.names])
    assert kendall_tau_b(means, truth) == 1
    for row in table.values():
        assert row["order_low"] < row["mean"] < row["order_high"]


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


def test_table_by_hand() -> None:
    found = rank_models(
        Matches.of([("p", "q", "B")] * 3 + [("q", "p", "B"), ("q", "r", "tie")]), resamples=50
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
    rates = rank_models(Matches.of(rows), clusters, resamples=50)["win_rate"]
    low = on / (on + Z_95**2)  # Wilson 1927 where all of them agree
    found = rates["p"]["q"]
    assert (found["value"], found["n"]) == (1, 6)
    assert (found["low"], found["high"]) == (pytest.approx(low), 1)
    assert rates["q"]["p"]["high"] == pytest.approx(1 - low)


def test_a_large_tournament_takes_seconds() -> None:
    matches = Matches.of(played(np.linspace(-2, 2, 20), 100_000))
    started = time.perf_counter()
    ratings = bradley_terry(matches, resamples=1000)
    assert time.perf_counter() - started < 30
    assert ratings.drawn.shape == (1000, 20)
    assert not np.isnan(ratings.drawn).any()
