"""Every row of ChartHal's tables against the paper's text."""

from __future__ import annotations

import pytest

from benchmarks.charthal import PUBLISHED
from tests.benchmarks.printed_tables import named, printed_rows
from tests.published_files import needs_published, published


@needs_published("charthal.txt")
@pytest.mark.parametrize(("table", "num_rows"), [("Table 1", 5), ("Table 2", 19)])
def test_the_rows_are_the_papers(table: str, num_rows: int) -> None:
    printed = printed_rows(published("charthal.txt"), f"{table}:")
    assert len(printed) == num_rows
    assert named(PUBLISHED, table).rows == printed


def test_items_add_up() -> None:
    *parts, total = named(PUBLISHED, "Table 1").rows.values()
    assert [sum(int(str(count)) for count in column) for column in zip(*parts, strict=True)] == [
        *total
    ]
