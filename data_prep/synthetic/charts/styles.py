"""Styles: how a scene looks, apart from its data."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

SIZES = ((224, 224),) * 4 + ((280, 224), (224, 280))
"""Width and height in pixels, multiples of the 28 that one visual token covers."""
FONTS = ("DejaVu Sans", "DejaVu Sans", "DejaVu Serif", "STIXGeneral")
PALETTES = (
    ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b"),
    ("#e41a1c", "#377eb8", "#4daf4a", "#984ea3", "#ff7f00", "#a65628"),
    ("#66c2a5", "#fc8d62", "#8da0cb", "#e78ac3", "#a6d854", "#ffd92f"),
    ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"),
    ("#444444", "#bbbbbb", "#777777", "#dddddd", "#999999", "#555555"),
)
PAPERS = ("#ffffff", "#ffffff", "#ffffff", "#f7f7f2", "#eef2f7")
NAMED = {
    "red": "#d62728", "blue": "#1f5fd0", "green": "#2a9d3a", "orange": "#ff8c1a",
    "purple": "#8e44ad", "black": "#222222",
}  # fmt: skip
"""Colours that scenes name."""


@dataclass(frozen=True)
class Style:
    """Everything about a drawing that its data leave open. Rows keep it in their metadata."""

    width: int
    height: int
    font: str
    font_px: int
    """Em size in pixels; capitals are about 0.73 of it."""
    palette: int
    many_colours: bool
    """Items have colours of their own."""
    paper: str
    grid: bool
    values: bool
    """Values are written beside the marks."""
    framed: bool
    thickness: float
    """Width of bars, as a share of their room."""
    dash: str
    marker: str
    legend: Literal["upper left", "upper right", "upper center"]
    turn: int
    """Rotation of polygons, degrees."""
    layout: int
    """Seed of positions that carry no meaning."""


def draw_style(rng: Random) -> Style:
    """Draw a style; it suits every kind of scene."""
    width, height = rng.choice(SIZES)
    return Style(
        width=width,
        height=height,
        font=rng.choice(FONTS),
        font_px=rng.choice((12, 13, 14)),
        palette=rng.randrange(len(PALETTES)),
        many_colours=rng.random() < 0.5,
        paper=rng.choice(PAPERS),
        grid=rng.random() < 0.6,
        values=rng.random() < 0.5,
        framed=rng.random() < 0.5,
        thickness=rng.choice((0.5, 0.65, 0.8)),
        dash=rng.choice(("-", "-", "--", ":")),
        marker=rng.choice(("o", "s", "^", "D")),
        legend=rng.choice(("upper left", "upper right", "upper center")),
        turn=rng.choice((0, 45, 90, 130, 200)),
        layout=rng.randrange(10**6),
    )
