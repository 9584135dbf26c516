"""Every row of HiEval's tables against the paper's text."""

from __future__ import annotations

import pytest

from benchmarks.hieval import PUBLISHED
from tests.benchmarks.printed_tables import named, printed_rows
from tests.published_files import needs_published, published


@needs_published("hieval.txt")
@pytest.mark.parametrize(
    ("number", "num_rows"), [(1, 2), (2, 13), (3, 12), (4, 8), (5, 8), (6, 4), (7, 10)]
)
def test_the_rows_are_the_papers(number: int, num_rows: int) -> None:
    printed = printed_rows(published("hieval.txt"), f"Table {number}:")
    # Table 5 also prints how far its last row is ahead of the best other.
    printed = {name: row for name, row in printed.items() if "vs Best" not in name}
    assert len(printed) == num_rows
    assert named(PUBLISHED, f"Table {number}:").rows == printed
