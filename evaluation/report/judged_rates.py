"""What the judge adds to the error bar of a rate, in words and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.report.markdown import number, with_interval
from evaluation.report.page import drawn_url
from evaluation.report.plots import BLUE, GREEN, GREY, error_bars, figure_file
from judging.log_lines import one_line

UNCORRECTED = "uncorrected"
BARS = (
    ("people", "people", GREEN, "o"),
    ("raw", "as judged", GREY, "s"),
    ("corrected", "corrected", BLUE, "D"),
)
"""Parts of a rate that are drawn, their names, colours and marks."""


def rate_lines(report: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each rubric of a report: what the judge adds to an error bar."""
    return [
        f"share of {measured['label']}, on as many rows without people's labels: "
        f"{judged_text(measured['judged'])} ({rubric})"
        for rubric, measured in report["error_rates"].items()
    ]


def judged_text(judged: Mapping[str, Any]) -> str:
    """Return a judged rate beside the corrected one, and what the judge adds to the interval.

    Args:
        judged: What ``JudgedRate.as_json`` returns.
    """
    raw = f"as judged {with_interval(judged['raw'])}"
    if judged["corrected"] is None:
        return f"{raw}, {UNCORRECTED}: {judged['source']}"
    return (
        f"{raw}, corrected {with_interval(judged['corrected'])} by the errors on "
        f"{judged['source']}, which add {judged['added_width']:.3f} to the interval's width"
    )


def rate_url(report: Mapping[str, Any]) -> str | None:
    """Return the picture of a report's rates as a data URL; ``None`` without any."""
    rates = {
        f"{measured['label']}, {rubric}": {"people": measured["people"], **measured["judged"]}
        for rubric, measured in report["error_rates"].items()
    }
    return drawn_url(partial(draw_rates, rates)) if rates else None


def draw_rates(rates: Mapping[str, Mapping[str, Any]], path: Path, full: float = 1.0) -> None:
    """Draw the interval of each rate as judged, corrected and, if known, by people.

    Args:
        rates: Name of each to ``raw`` and ``corrected`` (which may be ``None``), and ``people`` if
            known, each with ``value``, ``low`` and ``high``.
        path: PNG file to write.
        full: What a rate of 1 is in the unit of the figures.
    """
    names = list(rates)
    with figure_file(path, 7.5, 1.5 + 0.75 * len(names)) as figure:
        axes = figure.subplots()
        shown = [bar for bar in BARS if any(rate.get(bar[0]) for rate in rates.values())]
        for place, (part, label, colour, mark) in enumerate(shown):
            offset = 0.24 * (place - (len(shown) - 1) / 2)
            drawn = [(at, rates[name].get(part)) for at, name in enumerate(names)]
            known: Sequence[tuple[int, Any]] = [(at, rate) for at, rate in drawn if rate]
            axes.errorbar(
                np.array([rate["value"] for _, rate in known], dtype=float) / full,
                np.array([at + offset for at, _ in known]),
                xerr=error_bars([rate for _, rate in known]) / full,
                fmt=mark,
                color=colour,
                capsize=4,
                linewidth=2.5,
                label=label,
            )
        # A name may hold dollar signs, which are no formula, and control characters.
        axes.set_yticks(range(len(names)), [one_line(name) for name in names], parse_math=False)
        axes.set_ylim(len(names) - 0.45, -0.55)
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
        axes.set_xlabel("rate, 95 % interval")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside right upper", frameon=False)


def order_line(probabilities: Mapping[str, Any]) -> str:
    """Return in words what ``order_probabilities`` returns; empty where nothing is known."""
    names = {
        "same_winner": "people's best is the judge's",
        "same_order": "people's order is the judge's",
    }
    return " and ".join(
        f"{name} with probability {number(probabilities[key])}"
        for key, name in names.items()
        if probabilities.get(key) is not None
    )
