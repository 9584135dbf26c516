"""The report on several models: a page that needs no other file, and Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from benchmarks.framework.base import Benchmark
from benchmarks.framework.report.markdown import TEMPLATES, report_templates
from benchmarks.framework.report.pictures import draw_calibration, draw_radar
from benchmarks.framework.report.report import (
    figure_parts,
    interval_cells,
    number_of,
    summary_lines,
)
from evaluation.report.page import drawn_url, page_templates

RADAR_MODELS = 5
"""Most models of ours in a radar picture; the best published ones are added."""
RADAR_PUBLISHED = 3


def render_leaderboard_html(benchmark: Benchmark, leaderboard: Mapping[str, Any]) -> str:
    """Return a page with the models among the published rows, their differences and pictures.

    Texts from outside are escaped, and no script runs on the page.

    Args:
        benchmark: The benchmark that the items belong to.
        leaderboard: Result of ``build_leaderboard``.
    """
    environment = page_templates(TEMPLATES)
    environment.filters["parts"] = figure_parts
    return environment.get_template("leaderboard.html").render(
        benchmark=benchmark,
        matrix=difference_matrix(leaderboard),
        charts=_draw_charts(benchmark, leaderboard),
        **_content(leaderboard),
    )


def render_leaderboard_markdown(benchmark: Benchmark, leaderboard: Mapping[str, Any]) -> str:
    """Lay out the models among the published rows, and their differences.

    Arguments as ``render_leaderboard_html``.
    """
    template = report_templates().get_template("leaderboard.md")
    return template.render(
        benchmark=benchmark,
        difference_rows=difference_rows(leaderboard),
        **_content(leaderboard),
    )


def _content(leaderboard: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "metric": leaderboard["metric"],
        "models": [
            {"name": name, "source": table["source"], "summary": summary_lines(table)}
            for name, table in leaderboard["models"].items()
        ],
        "papers": leaderboard["tables"],
        "not_compared": leaderboard["not_compared"],
    }


def difference_rows(leaderboard: Mapping[str, Any]) -> list[list[str]]:
    """Return the paired differences as cells of a table.

    They are: which models, difference, interval, number of items, p-value, and the p-value that is
    corrected for the number of pairs.
    """
    return [
        [
            f"{first} minus {second}",
            *interval_cells(_reversed(pair["difference"])),
            f"{pair['mcnemar_p']:.4f}",
            f"{pair['mcnemar_p_holm']:.4f}",
        ]
        for pair in leaderboard["differences"]
        for first, second in (pair["models"],)
    ]


def difference_matrix(leaderboard: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the paired differences, row minus column, as rows of a square.

    Returns:
        Per model ``name`` and ``cells``: ``text``, ``side`` (``higher`` or ``lower`` where the
        interval leaves out 0, else empty); ``None`` where the two were not compared.
    """
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for pair in leaderboard["differences"]:
        first, second = pair["models"]
        cells[first, second] = _matrix_cell(_reversed(pair["difference"]))
        cells[second, first] = _matrix_cell(pair["difference"])
    names = list(leaderboard["models"])
    return [{"name": row, "cells": [cells.get((row, other)) for other in names]} for row in names]


def _matrix_cell(difference: Mapping[str, Any]) -> dict[str, str]:
    low, high = difference["low"], difference["high"]
    side = ""
    if low is not None and (low > 0 or high < 0):
        side = "higher" if low > 0 else "lower"
    value, interval, _ = interval_cells(difference)
    return {"text": f"{value} [{interval}]", "side": side}


def _reversed(difference: Mapping[str, Any]) -> dict[str, Any]:
    """Return the difference A minus B of B minus A."""
    value, low, high = (
        None if difference[end] is None else -difference[end] for end in ("value", "high", "low")
    )
    return {"value": value, "low": low, "high": high, "n": difference["n"]}


def _draw_charts(benchmark: Benchmark, leaderboard: Mapping[str, Any]) -> list[dict[str, str]]:
    """Draw radar and calibration pictures, each a ``title`` and the ``url`` of a PNG."""
    charts = []
    axes_of = {table.source: table.radar for table in benchmark.published}
    for paper in leaderboard["tables"]:
        if (axes := axes_of[paper["source"]]) and (shapes := radar_shapes(paper, axes)):
            url = drawn_url(partial(draw_radar, axes, shapes))
            charts.append({"title": paper["source"], "url": url})
    curves = {
        name: calibration
        for name, table in leaderboard["models"].items()
        if (calibration := benchmark.calibration(table)) is not None
    }
    if curves:
        url = drawn_url(partial(draw_calibration, curves))
        charts.append({"title": "Accuracy by stated confidence", "url": url})
    return charts


def radar_shapes(paper: Mapping[str, Any], axes: Sequence[str]) -> dict[str, list[float | None]]:
    """Return the figures of our best models and the best published ones on the axes of a picture.

    Args:
        paper: A table of ``paper_tables``.
        axes: Names of columns.

    Returns:
        Name of the row to its figures; published rows are marked as such. Empty without rows of
        ours.
    """
    columns = [paper["columns"].index(name) for name in axes]
    ours = [row for row in paper["rows"] if row["ours"]][:RADAR_MODELS]
    published = [row for row in paper["rows"] if not row["ours"]][:RADAR_PUBLISHED] if ours else []
    return {
        row["name"] if row["ours"] else f"{row['name']} (published)": [
            number_of(row["figures"][column]) for column in columns
        ]
        for row in (*ours, *published)
    }
