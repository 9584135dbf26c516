"""The page on several models, which needs no other file, and its pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.framework.base import Benchmark
from benchmarks.framework.leaderboard import number_of
from benchmarks.framework.report.page import (
    TEMPLATES,
    figure_parts,
    points,
    rate_charts,
    reversed_difference,
    several_models,
)
from evaluation.report.page import drawn_url, page_templates
from evaluation.report.plots import BLUE, GREEN, GREY, ORANGE, error_bars, figure_file

RADAR_MODELS = 5
"""Most models of ours in a radar picture; the best published ones are added."""
RADAR_PUBLISHED = 3
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", "#000000")
RING = 20
"""The outer circle of a radar is a multiple of this many per cent."""
PUBLISHED_LINES = ("--", "-.", ":")
SMALLEST_BAND = 5
"""Fewest answers in a band of confidence that is drawn."""
STEEP = 0.05
"""Names of a radar's axes that are this near to upright are centred above or below it."""
SHIFT = 0.012
"""Distance between the lines of two models, whose intervals would hide each other."""
CALIBRATION_TITLE = f"Accuracy by stated confidence, in bands of at least {SMALLEST_BAND} answers"


def render_leaderboard_html(benchmark: Benchmark, leaderboard: Mapping[str, Any]) -> str:
    """Render a page with the models among the published rows, their differences and pictures.

    Texts from outside are escaped, and no script runs on the page.
    """
    environment = page_templates(TEMPLATES)
    environment.filters["parts"] = figure_parts
    return environment.get_template("leaderboard.html").render(
        matrix=difference_matrix(leaderboard, benchmark.full_score),
        charts=_draw_charts(benchmark, leaderboard),
        **several_models(benchmark, leaderboard),
    )


def difference_matrix(leaderboard: Mapping[str, Any], full_score: float) -> list[dict[str, Any]]:
    """Write the paired differences, row minus column, in points of 100, as rows of a square.

    Per model there are ``name`` and ``cells``: ``text`` and ``side`` (``higher`` or ``lower`` where
    the interval leaves out 0, else empty); ``None`` where the two were not compared.
    """
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for pair in leaderboard["differences"]:
        first, second = pair["models"]
        backward = reversed_difference(pair["difference"])
        for names, difference in (
            ((first, second), backward),
            ((second, first), pair["difference"]),
        ):
            low, high = difference["low"], difference["high"]
            side = ""
            if low is not None and (low > 0 or high < 0):
                side = "higher" if low > 0 else "lower"
            value, interval = points(difference, full_score)
            cells[names] = {"text": f"{value} [{interval}]", "side": side}
    names_of = list(leaderboard["models"])
    return [
        {"name": row, "cells": [cells.get((row, each)) for each in names_of]} for row in names_of
    ]


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
        if (calibration := table["intervals"].get("calibration")) and _large_bands(calibration)
    }
    if curves:
        url = drawn_url(partial(draw_calibration, curves))
        charts.append({"title": CALIBRATION_TITLE, "url": url})
    return charts


def radar_shapes(paper: Mapping[str, Any], axes: Sequence[str]) -> dict[str, list[float | None]]:
    """Choose the figures of our best models and the best published ones on the axes of a picture.

    ``paper`` is a table of ``paper_tables``, and ``axes`` name columns of it. Names of rows lead to
    figures; published rows are marked as such. Empty without rows of ours.
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


def draw_radar(
    axes_names: Sequence[str], shapes: Mapping[str, Sequence[float | None]], path: Path
) -> None:
    """Draw one closed line per model over axes from 0 on.

    ``shapes`` maps each model to its figures in per cent, one an axis; a figure that does not exist
    leaves a gap. Rows of a paper, whose names end in ``(published)``, are grey and dashed.
    """
    angles = np.linspace(0, 2 * np.pi, len(axes_names), endpoint=False)
    with figure_file(path, 8.5, 4.8, is_cut=True) as figure:
        axes = figure.add_axes((0.2, 0.1, 0.45, 0.8), projection="polar")
        num_ours = num_published = 0
        for name, figures in shapes.items():
            values = np.array([np.nan if value is None else value for value in figures])
            if name.endswith("(published)"):
                line = PUBLISHED_LINES[num_published % len(PUBLISHED_LINES)]
                style: dict[str, Any] = {"color": GREY, "linestyle": line, "linewidth": 1.2}
                num_published += 1
            else:
                style = {"color": COLOURS[num_ours % len(COLOURS)], "marker": "o", "markersize": 3}
                num_ours += 1
            closed = np.append(angles, angles[0]), np.append(values, values[0])
            axes.plot(*closed, label=name, **style)
        highest = max((value or 0 for figures in shapes.values() for value in figures), default=0)
        outer = RING * max(1, math.ceil(highest / RING))
        axes.set_ylim(0, outer)
        axes.grid(alpha=0.3)
        axes.set_xticks(angles, [""] * len(angles))
        # Tick labels would lie across the outer circle.
        for name, angle in zip(axes_names, angles, strict=True):
            is_upright = np.cos(angle) ** 2 < STEEP
            axes.text(
                angle,
                1.08 * outer,
                name.replace(" ", "\n"),
                ha=_side(np.cos(angle), "left", "right"),
                va=_side(np.sin(angle), "bottom", "top") if is_upright else "center",
                fontsize=11,
            )
        figure.legend(loc="upper left", bbox_to_anchor=(0.8, 0.97), frameon=False, fontsize=11)


def _side(direction: float, positive: str, negative: str) -> str:
    """Choose the alignment of a text that is written outwards from the middle of a circle."""
    if abs(direction) < STEEP:
        return "center"
    return positive if direction > 0 else negative


def _large_bands(curve: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Pick the accuracy in each band of stated confidence with enough answers."""
    bands = {band: part["accuracy"] for band, part in curve["by_confidence"].items()}
    return {band: accuracy for band, accuracy in bands.items() if accuracy["n"] >= SMALLEST_BAND}


def draw_calibration(curves: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Draw the accuracy of bands of stated confidence, one line per model.

    ``curves`` maps models to what ``measure_stated_confidence`` returns. Bands with fewer than
    ``SMALLEST_BAND`` answers are left out.
    """
    with figure_file(path, 8.5, 4.8) as figure:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=GREY, linestyle=":", label="confidence = accuracy")
        for number, (name, curve) in enumerate(curves.items()):
            drawn = _large_bands(curve)
            bands = [tuple(map(float, band.split("-"))) for band in drawn]
            accuracies = list(drawn.values())
            shift = SHIFT * (number - (len(curves) - 1) / 2)
            axes.errorbar(
                np.array([sum(band) / 2 + shift for band in bands]),
                np.array([accuracy["value"] for accuracy in accuracies], dtype=np.float64),
                yerr=error_bars(accuracies),
                color=COLOURS[number % len(COLOURS)],
                marker="o",
                markersize=4,
                capsize=2,
                label=f"{name}, ECE {curve['ece_equal_width']['value']:.3f}",
            )
        axes.set_xlim(0, 1.01)
        axes.set_ylim(0, 1.01)
        axes.set_xlabel("stated confidence")
        axes.set_ylabel("accuracy, 95 % interval")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside right upper", frameon=False, fontsize=11)
