"""HiEval's figures for judges that name error types."""

from __future__ import annotations

import pytest

from evaluation.report.markdown import JUDGES_IN_REPORTS, TABLE_4, TABLE_5, published_shares
from judging.tasks.hieval_ea import ERROR_TYPES

COUNTS = (260, 265, 100, 210, 165)
"""Responses of each error type in the paper's test."""


@pytest.mark.parametrize(
    "judge", sorted(set(TABLE_5) - {"Mimo-RL-7B"})
)  # whose row counts otherwise
def test_shares_of_the_types_give_the_share_of_all(judge: str) -> None:
    *by_type, overall = TABLE_5[judge]
    total = sum(count * share for count, share in zip(COUNTS, by_type, strict=True)) / sum(COUNTS)
    assert total == pytest.approx(overall, abs=0.06)


@pytest.mark.parametrize("judge", JUDGES_IN_REPORTS)
def test_reports_show_shares(judge: str) -> None:
    shares = published_shares(judge)
    assert list(shares) == [*ERROR_TYPES, "type_accuracy", "score_accuracy"]
    assert all(0 <= share <= 1 for share in shares.values())
    assert 100 * shares["type_accuracy"] == pytest.approx(TABLE_4[judge][2])
    assert 100 * shares["score_accuracy"] == pytest.approx(TABLE_4[judge][3])
