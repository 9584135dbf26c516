from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.ranking.bradley_terry import MatchResults, win_matrix
from judging.errors import CustosError
from tests.evaluation.ranking.made_up_matches import TURNED, Rows, match_rows


def test_win_matrix_by_hand() -> None:
    matches = MatchResults.of(
        [("p", "q", "A"), ("q", "p", "A"), ("q", "r", "tie"), ("r", "p", "B")]
    )
    assert matches.names == ("p", "q", "r")
    assert win_matrix(matches).tolist() == [[0, 1, 1], [1, 0, 0.5], [0, 0.5, 0]]


@given(match_rows, st.lists(st.booleans(), min_size=40, max_size=40))
def test_sides_and_order_do_not_matter(drawn: Rows, turn: list[bool]) -> None:
    turned = [
        (b, a, TURNED[outcome]) if swap else (a, b, outcome)
        for (a, b, outcome), swap in zip(drawn, turn, strict=False)
    ][::-1]
    first, second = (win_matrix(MatchResults.of(table)) for table in (drawn, turned))
    np.testing.assert_array_equal(first, second)


@given(match_rows)
def test_a_tie_is_half_a_win_for_each(drawn: Rows) -> None:
    doubled = []
    for a, b, outcome in drawn:
        doubled += [(a, b, "A"), (a, b, "B")] if outcome == "tie" else [(a, b, outcome)] * 2
    np.testing.assert_array_equal(
        2 * win_matrix(MatchResults.of(drawn)), win_matrix(MatchResults.of(doubled))
    )


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
        MatchResults.of(rows)
