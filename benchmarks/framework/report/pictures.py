"""Pictures of several models: radar by part of a benchmark, accuracy by stated confidence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.report.plots import GREY, error_bars, figure_file

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, which colour-blind readers can tell apart."""
RING = 20
"""The outer circle of a radar is a multiple of this many per cent."""
PUBLISHED_LINES = ("--", "-.", ":")
SMALLEST_BAND = 5
"""Fewest answers in a band of confidence that is drawn."""
STEEP = 0.05
"""Names of a radar's axes that are this near to upright are centred above or below it."""
SHIFT = 0.012
"""Distance between the lines of two models, whose intervals would hide each other."""


def draw_radar(
    axes_names: Sequence[str], shapes: Mapping[str, Sequence[float | None]], path: Path
) -> None:
    """Draw one closed line per model over axes from 0 on.

    A figure that does not exist leaves a gap. Rows of a paper, whose names end in ``(published)``,
    are grey and dashed.

    Args:
        axes_names: Names of the axes.
        shapes: Name of each model to its figures in per cent, one an axis.
        path: PNG file to write.
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
            axes.text(
                angle,
                1.08 * outer,
                name.replace(" ", "\n"),
                ha=_side(np.cos(angle), "left", "right"),
                va=_side(np.sin(angle), "bottom", "top")
                if np.cos(angle) ** 2 < STEEP
                else "center",
                fontsize=11,
            )
        figure.legend(loc="upper left", bbox_to_anchor=(0.8, 0.97), frameon=False, fontsize=11)


def _side(direction: float, positive: str, negative: str) -> str:
    """Return how a text is aligned that is written outwards from the middle of a circle."""
    if abs(direction) < STEEP:
        return "center"
    return positive if direction > 0 else negative


def large_bands(curve: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the bands of stated confidence with enough answers, and the accuracy in each.

    Args:
        curve: What ``Benchmark.calibration`` returns.
    """
    return {
        band: part["accuracy"]
        for band, part in curve["by_confidence"].items()
        if part["accuracy"]["n"] >= SMALLEST_BAND
    }


def draw_calibration(curves: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Draw the accuracy of bands of stated confidence, one line per model.

    Bands with fewer than ``SMALLEST_BAND`` answers are left out.

    Args:
        curves: Name of each model to what ``Benchmark.calibration`` returns.
        path: PNG file to write.
    """
    with figure_file(path, 8.5, 4.8) as figure:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=GREY, linestyle=":", label="confidence = accuracy")
        for number, (name, curve) in enumerate(curves.items()):
            drawn = large_bands(curve)
            bands = [tuple(map(float, band.split("-"))) for band in drawn]
            accuracies = list(drawn.values())
            shift = SHIFT * (number - (len(curves) - 1) / 2)
            middles = np.array([sum(band) / 2 + shift for band in bands])
            axes.errorbar(
                middles,
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
