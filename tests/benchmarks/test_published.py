"""Published tables of all benchmarks: their form, and figures that must fit each other."""

from __future__ import annotations

import pytest

from benchmarks.charthal.published import PUBLISHED as CHARTHAL
from benchmarks.framework.base import PublishedTable, benchmark_names, get_benchmark
from tests.benchmarks.printed_tables import named

TABLES = [
    pytest.param(table, id=f"{name} {table.source}")
    for name in benchmark_names()
    for table in get_benchmark(name).published
]


@pytest.mark.parametrize("table", TABLES)
def test_rows_have_a_figure_for_every_column(table: PublishedTable) -> None:
    assert len(set(table.columns)) == len(table.columns)
    assert all(len(row) == len(table.columns) for row in table.rows.values())
    used = {table.ranked_by, table.corrected, *table.radar} - {None}
    assert used <= set(table.columns)


@pytest.mark.parametrize("name", benchmark_names())
def test_tables_are_told_apart_by_their_source(name: str) -> None:
    sources = [table.source for table in get_benchmark(name).published]
    assert len(set(sources)) == len(sources)


def test_charthals_parts_give_its_overall_scores() -> None:
    """Weighted by the items of Table 1, both by type and by relation."""
    *relations, types = (
        [float(str(count)) for count in counts]
        for counts in named(CHARTHAL, "Table 1").rows.values()
    )
    weights = (types[:-1], [counts[-1] for counts in relations])
    for name, figures in named(CHARTHAL, "Table 2").rows.items():
        *parts, overall = (float(str(figure)) for figure in figures)
        for counts, shares in zip(weights, (parts[:3], parts[3:]), strict=True):
            total = sum(n * share for n, share in zip(counts, shares, strict=True)) / 1062
            assert total == pytest.approx(overall, abs=0.011), name
