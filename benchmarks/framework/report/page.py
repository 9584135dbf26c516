"""The report on one graded file as an HTML page that needs no other file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from benchmarks.framework.base import Benchmark, ItemScore
from benchmarks.framework.corrected_by_people import labels_of_both
from benchmarks.framework.files import Row
from benchmarks.framework.report.items import ItemView, view_items
from benchmarks.framework.report.markdown import TEMPLATES
from benchmarks.framework.report.report import (
    figure_parts,
    interval_cells,
    model_name,
    paper_tables,
    sections,
    summary_lines,
)
from benchmarks.framework.tables import in_order
from evaluation.report.page import MAX_ITEMS, drawn_url, page_templates, thumbnails
from evaluation.report.plots import draw_rates


def render_html(
    benchmark: Benchmark,
    rows: Sequence[Row],
    table: Mapping[str, Any],
    source: str,
    people: Sequence[Row] = (),
) -> str:
    """Return a page with figures, charts, and every item to browse.

    Texts from outside are escaped, and the page's policy lets no script run but its own.

    Args:
        benchmark: The benchmark that the items belong to.
        rows: Graded items, with their pictures in ``images``.
        table: Result of ``build_table`` for them.
        source: Name of the graded file.
        people: Items as people graded them.
    """
    environment = page_templates(TEMPLATES)
    environment.filters |= {"cells": interval_cells, "parts": figure_parts}
    return environment.get_template("page.html").render(
        benchmark=benchmark,
        source=source,
        summary=summary_lines(table),
        sections=sections(table["intervals"]),
        papers=paper_tables(benchmark, {model_name(table): table}),
        charts=[
            *rate_charts(benchmark, {model_name(table): table}),
            *draw_charts(table.get("agreement")),
        ],
        **_item_browser(benchmark, rows, people),
        full_score=benchmark.full_score,
    )


def _item_browser(
    benchmark: Benchmark, rows: Sequence[Row], people: Sequence[Row]
) -> dict[str, Any]:
    """Return the part of the page that is about single items."""
    scores = benchmark.scores(rows)
    human = labels_of_both(benchmark, rows, people)[2]
    items = view_items(
        benchmark, rows[:MAX_ITEMS], {score.id: score.value for score in scores}, human
    )
    return {
        "cells": cell_map(benchmark, rows, scores),
        "items": items,
        "num_items": len(rows),
        "facets": {name: facet_values(benchmark, items, name) for name in benchmark.facets},
        "verdicts": sorted({item.verdict for item in items}),
        "images": thumbnails(source for item in items for source in item.images),
    }


def facet_values(benchmark: Benchmark, items: Sequence[ItemView], name: str) -> list[str]:
    """Return the values of a facet among the items, in the benchmark's order."""
    values = {item.facets[name] for item in items if name in item.facets}
    return in_order(values, benchmark.facets[name])


def cell_map(
    benchmark: Benchmark, rows: Sequence[Row], scores: Sequence[ItemScore]
) -> dict[str, Any] | None:
    """Return the mean headline score by the first two facets.

    Returns:
        ``rows``, ``columns`` (their names), ``row_facet``, ``column_facet`` and ``cells``, rows of
        ``value`` (a share of the full score) and ``n`` or ``None``. ``None`` without two facets or
        without scores.
    """
    if len(benchmark.facets) < 2:
        return None
    row_facet, column_facet, *_ = benchmark.facets
    shares: dict[tuple[str, str], list[float]] = {}
    for row, score in zip(rows, scores, strict=True):
        facets = benchmark.facets_of(row)
        if score.value is not None and {row_facet, column_facet} <= facets.keys():
            cell = facets[row_facet], facets[column_facet]
            shares.setdefault(cell, []).append(score.value / benchmark.full_score)
    if not shares:
        return None
    row_names = in_order({row for row, _ in shares}, benchmark.facets[row_facet])
    column_names = in_order({column for _, column in shares}, benchmark.facets[column_facet])
    return {
        "row_facet": row_facet,
        "column_facet": column_facet,
        "rows": row_names,
        "columns": column_names,
        "cells": [
            [_mean_cell(shares.get((row, column))) for column in column_names] for row in row_names
        ],
    }


def _mean_cell(shares: Sequence[float] | None) -> dict[str, float] | None:
    return {"value": sum(shares) / len(shares), "n": len(shares)} if shares else None


def rate_charts(
    benchmark: Benchmark, tables: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, str]]:
    """Draw the scores of models as judged and corrected, if any is corrected.

    Args:
        benchmark: The benchmark that the items belong to.
        tables: Results of ``build_table`` by name of the model.
    """
    rates = {
        name: known
        for name, table in tables.items()
        if (known := table.get("corrected") or table["judged"]) and known["corrected"]
    }
    if not rates:
        return []
    url = drawn_url(partial(draw_rates, rates, full=benchmark.full_score))
    title = f"{benchmark.headline} as judged and corrected"
    return [{"title": title[0].upper() + title[1:], "url": url}]


def draw_charts(agreement: Mapping[str, Any] | None) -> list[dict[str, str]]:
    """Draw confusion and calibration against people, each a ``title`` and the ``url`` of a PNG."""
    if agreement is None:
        return []
    from evaluation.report import plots

    confusion, calibration = agreement["confusion"], agreement["calibration"]
    url = drawn_url(partial(plots.draw_confusion, confusion))
    charts = [{"title": "Judge against people", "url": url}]
    if calibration:
        url = drawn_url(partial(plots.draw_reliability, calibration))
        charts.append({"title": "Calibration of the judge's confidence", "url": url})
    return charts
