from __future__ import annotations

import numpy as np
import pytest

from evaluation.intervals import RESAMPLES, Z_95, wilson_interval
from evaluation.ranking.bradley_terry import MatchResults
from evaluation.ranking.tournament import rank_models


def test_draws_without_finite_strengths_leave_no_interval() -> None:
    """In a third of the resamples ``p`` wins every match: no upper end of its rating is known."""
    table = [("p", "q", "A")] * 9 + [("p", "q", "B")]
    found = rank_models(MatchResults.of(table))
    # The one defeat is missing from (9/10)^10 = 35 % of the draws, all others from 1e-10.
    assert 0.58 < found["draws"] / RESAMPLES < 0.72
    for rating in (found["models"][name]["rating"] for name in "pq"):
        assert np.isnan([rating["low"], rating["high"]]).all()


def test_ratings_have_intervals_where_nearly_all_draws_are_finite() -> None:
    found = rank_models(MatchResults.of([("p", "q", "A")] * 15 + [("p", "q", "B")] * 5))
    rating = found["models"]["p"]["rating"]
    assert RESAMPLES * 0.975 <= found["draws"] <= RESAMPLES
    assert 1500 < rating["low"] < rating["value"] < rating["high"]


def test_table_by_hand() -> None:
    found = rank_models(
        MatchResults.of([("p", "q", "B")] * 3 + [("q", "p", "B"), ("q", "r", "tie")])
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
    low = on / (on + Z_95**2)  # Wilson 1927 where all of them agree
    found = rates["p"]["q"]
    assert (found["value"], found["n"]) == (1, 6)
    assert (found["low"], found["high"]) == (pytest.approx(low), 1)
    assert rates["q"]["p"]["high"] == pytest.approx(1 - low)


def test_ties_alone_are_no_proof_of_equality() -> None:
    found = rank_models(MatchResults.of([("p", "q", "tie")] * 5))
    rating = found["models"]["p"]["rating"]
    assert rating["value"] == 1500
    assert np.isnan([rating["low"], rating["high"]]).all()
    rate = found["win_rate"]["p"]["q"]
    assert (rate["value"], rate["n"]) == (0.5, 5)
    assert (rate["low"], rate["high"]) == pytest.approx(wilson_interval(2.5, 5))


def test_a_model_that_nobody_beat_has_a_rating_and_no_interval() -> None:
    rows = [("p", "q", "A"), ("p", "r", "A"), ("q", "r", "A"), ("r", "q", "A")] * 20
    found = rank_models(MatchResults.of(rows))
    assert next(iter(found["models"])) == "p"
    assert found["penalised"]
    for model in found["models"].values():
        assert np.isfinite(model["rating"]["value"])
        assert np.isnan([model["rating"]["low"], model["rating"]["high"]]).all()
