"""The report on several models: a page that needs no other file, and Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from benchmarks.framework.base import Benchmark
from benchmarks.framework.report.markdown import TEMPLATES, report_templates
from benchmarks.framework.report.page import rate_charts
from benchmarks.framework.report.pictures import (
    SMALLEST_BAND,
    draw_calibration,
    draw_radar,
    large_bands,
)
from benchmarks.framework.report.report import (
    figure_parts,
    number_of,
    summary_lines,
)
from evaluation.report.markdown import UNCORRECTED, order_line, p_value
from evaluation.report.page import drawn_url, page_templates

RADAR_MODELS = 5
"""Most models of ours in a radar picture; the best published ones are added."""
RADAR_PUBLISHED = 3
CALIBRATION_TITLE = f"Accuracy by stated confidence, in bands of at least {SMALLEST_BAND} answers"


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
        matrix=difference_matrix(leaderboard, benchmark.full_score),
        charts=_draw_charts(benchmark, leaderboard),
        **_content(benchmark, leaderboard),
    )


def render_leaderboard_markdown(benchmark: Benchmark, leaderboard: Mapping[str, Any]) -> str:
    """Lay out the models among the published rows, and their differences.

    Arguments as ``render_leaderboard_html``.
    """
    template = report_templates().get_template("leaderboard.md")
    return template.render(
        benchmark=benchmark,
        **_content(benchmark, leaderboard),
    )


def _content(benchmark: Benchmark, leaderboard: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "metric": leaderboard["metric"],
        "difference_rows": difference_rows(leaderboard, benchmark.full_score),
        "models": [
            {"name": name, "source": table["source"], "summary": summary_lines(table)}
            for name, table in leaderboard["models"].items()
        ],
        "papers": leaderboard["tables"],
        "not_compared": leaderboard["not_compared"],
        "order": order_text(leaderboard["order"]),
    }


def order_text(order: Mapping[str, Any] | None) -> str:
    """Return how likely people's ranking is the judge's, in words; empty where nothing is asked.

    Args:
        order: Result of ``order_by_people``.
    """
    if order is None:
        return ""
    if order["uncorrected"]:
        return f"Ranking {UNCORRECTED}, as are the scores of {', '.join(order['uncorrected'])}"
    return f"Ranking: {order_line(order) or 'two models have the same score'}"


def difference_rows(leaderboard: Mapping[str, Any], full_score: float) -> list[list[str]]:
    """Return the paired differences, in points of 100, as cells of a table.

    They are: which models, difference, interval, number of items, p-value, and the p-value that is
    corrected for the number of pairs.

    Args:
        leaderboard: Result of ``build_leaderboard``.
        full_score: Score of an item that is right throughout.
    """
    return [
        [
            f"{first} minus {second}",
            *_points(_reversed(pair["difference"]), full_score),
            str(pair["difference"]["n"]),
            p_value(pair["p"]),
            p_value(pair["p_holm"]),
        ]
        for pair in leaderboard["differences"]
        for first, second in (pair["models"],)
    ]


def difference_matrix(leaderboard: Mapping[str, Any], full_score: float) -> list[dict[str, Any]]:
    """Return the paired differences, row minus column, in points of 100, as rows of a square.

    Args:
        leaderboard: Result of ``build_leaderboard``.
        full_score: Score of an item that is right throughout.

    Returns:
        Per model ``name`` and ``cells``: ``text``, ``side`` (``higher`` or ``lower`` where the
        interval leaves out 0, else empty); ``None`` where the two were not compared.
    """
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for pair in leaderboard["differences"]:
        first, second = pair["models"]
        cells[first, second] = _matrix_cell(_reversed(pair["difference"]), full_score)
        cells[second, first] = _matrix_cell(pair["difference"], full_score)
    names = list(leaderboard["models"])
    return [{"name": row, "cells": [cells.get((row, other)) for other in names]} for row in names]


def _matrix_cell(difference: Mapping[str, Any], full_score: float) -> dict[str, str]:
    low, high = difference["low"], difference["high"]
    side = ""
    if low is not None and (low > 0 or high < 0):
        side = "higher" if low > 0 else "lower"
    value, interval = _points(difference, full_score)
    return {"text": f"{value} [{interval}]", "side": side}


def _points(difference: Mapping[str, Any], full_score: float) -> tuple[str, str]:
    """Return a difference and its interval in points of 100, as the published tables have them."""
    value, low, high = (
        "-" if difference[end] is None else f"{100 * difference[end] / full_score:.2f}"
        for end in ("value", "low", "high")
    )
    return value, f"{low} to {high}"


def _reversed(difference: Mapping[str, Any]) -> dict[str, Any]:
    """Return the difference A minus B of B minus A."""
    value, low, high = (
        None if difference[end] is None else 0.0 - difference[end]  # -0.0 would be printed as -0.00
        for end in ("value", "high", "low")
    )
    return {"value": value, "low": low, "high": high, "n": difference["n"]}


def _draw_charts(benchmark: Benchmark, leaderboard: Mapping[str, Any]) -> list[dict[str, str]]:
    """Draw rates, radar and calibration, each a ``title`` and the ``url`` of a PNG."""
    charts = rate_charts(benchmark, leaderboard["models"])
    axes_of = {table.source: table.radar for table in benchmark.published}
    for paper in leaderboard["tables"]:
        if (axes := axes_of[paper["source"]]) and (shapes := radar_shapes(paper, axes)):
            url = drawn_url(partial(draw_radar, axes, shapes))
            charts.append({"title": paper["source"], "url": url})
    curves = {
        name: calibration
        for name, table in leaderboard["models"].items()
        if (calibration := benchmark.calibration(table)) and large_bands(calibration)
    }
    if curves:
        url = drawn_url(partial(draw_calibration, curves))
        charts.append({"title": CALIBRATION_TITLE, "url": url})
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
