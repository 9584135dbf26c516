from __future__ import annotations

import numpy as np
import pytest

from evaluation.ranking.agreement import kendall_tau_b
from evaluation.ranking.bradley_terry import MatchResults
from evaluation.ranking.tournament import elo_table, online_elo
from tests.evaluation.ranking.made_up_matches import played


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


def test_elo_over_shuffles_orders_models_as_their_strengths() -> None:
    truth = np.linspace(-1.5, 1.5, 5)
    matches = MatchResults.of(played(truth, 3000))
    table = elo_table(matches, k=16, shuffles=20)
    means = np.array([table[name]["mean"] for name in matches.names])
    assert kendall_tau_b(means, truth) == 1
    for row in table.values():
        assert row["order_low"] < row["mean"] < row["order_high"]
