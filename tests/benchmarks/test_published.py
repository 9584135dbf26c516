"""Published tables of all benchmarks: their form, and figures that must fit each other."""

from __future__ import annotations

import hashlib
import json

import pytest

from benchmarks.charthal import PUBLISHED as CHARTHAL
from benchmarks.framework.base import PublishedTable, benchmark_names, get_benchmark
from benchmarks.truthfulvqa.benchmark import DECODINGS
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


COMPARED = {
    "charthal": "65b55a5ba403111171fd89a305f7aeb92f01c5d92d1d09f53e21717b5bdbb8bf",
    "chartom": "5e40eef211c3b9c75f272523b71c44eaeea5acb7dc0539317a00bf17812bdf62",
    "hieval": "cb23294154633e098f044e662dc1da2739e44dcf053fb1208da694d61916559c",
    "simplevqa": "3e4e7c48dd6a88d5c5ba3b858ccf0cc105759766017444497dc2620734f48a5c",
    "truthfulvqa": "78b617de596acf65bd4754781693c905295c158365af0965edb2d568f411f594",
}
"""SHA-256 of the figures. To change one, compare the figures with the paper's text first: the tests
that do it, ``test_published.py`` of each benchmark, need the texts and do not run everywhere."""


@pytest.mark.parametrize("name", benchmark_names())
def test_figures_are_those_that_were_compared_with_the_papers(name: str) -> None:
    figures = [list(table.rows.items()) for table in get_benchmark(name).published if table.rows]
    settings = [each.model_dump() for each in DECODINGS.values()] if name == "truthfulvqa" else []
    content = json.dumps([figures, settings])
    assert hashlib.sha256(content.encode()).hexdigest() == COMPARED[name]


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
