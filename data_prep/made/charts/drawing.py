"""Draw scenes with matplotlib's object interface; equal scenes and styles give equal bytes."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from data_prep.made.charts.scenes import (
    NAME,
    NAMED,
    PALETTES,
    VALUES,
    ChartScene,
    Fact,
    Style,
    diagonal_range,
)
from data_prep.tables.cells import content_name, save_image

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Point = npt.NDArray[np.float64]
"""``[2]``, or ``[N, 2]`` for many."""

DPI = 100
TOP = 10
"""Upper end of value axes."""
BESIDE_AXIS = -0.5
"""Position of tick labels, in units of the values."""
ABOVE = 0.15
"""Distance of the visible end of a bar beyond its value."""
INK = "#222222"
MARKERS = {"circles": "o", "squares": "s", "triangles": "^", "stars": "*"}


@dataclass(frozen=True)
class ItemPosition:
    """A position at which facts of an item are to be seen."""

    item: int
    x: float
    y: float
    facts: tuple[Fact, ...]


Positions = list[ItemPosition]
"""Positions of every item's name and values, each at least once."""


def render(scene: ChartScene, style: Style) -> bytes:
    """Draw a scene as a PNG of at most 32 colours, ``style.width`` x ``style.height`` pixels."""
    return render_with_positions(scene, style)[0]


def render_with_positions(scene: ChartScene, style: Style) -> tuple[bytes, Positions]:
    """Draw a scene as a PNG; return it with the positions of its names and values, in pixels.

    Positions count from the upper left corner. The value of a bar is at its end, that of a slice in
    its middle; the name and the number of counted shapes are at every shape.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    figure = Figure(figsize=(style.width / DPI, style.height / DPI), dpi=DPI, facecolor=style.paper)
    canvas: Any = FigureCanvasAgg(figure)  # its drawing methods have no types
    draw, has_axes = _DRAW[scene.kind]
    left, bottom = (28 / style.width, 28 / style.height) if has_axes else (0.02, 0.02)
    if scene.kind == "hbar":
        left = 46 / style.width
    axes = figure.add_axes((left, bottom, 0.97 - left, 0.97 - bottom), facecolor=style.paper)
    if has_axes:
        axes.tick_params(labelsize=_points(style), labelfontfamily=style.font, length=2, pad=2)
        axes.spines[["top", "right"]].set_visible(style.framed)
        if style.grid:
            axes.grid(axis="x" if scene.kind == "hbar" else "y", color="#cccccc", linewidth=0.7)
            axes.set_axisbelow(True)
    else:
        axes.set_axis_off()
    positions = draw(axes, scene, style)
    canvas.draw()
    rgba = np.asarray(canvas.buffer_rgba())
    picture = Image.fromarray(rgba[..., :3].copy())
    file = io.BytesIO()
    picture.quantize(32, dither=Image.Dither.NONE).save(file, "PNG", compress_level=9)
    pixels = axes.transData.transform([(position.x, position.y) for position in positions])
    return file.getvalue(), [
        replace(position, x=float(x), y=float(style.height - y))
        for position, (x, y) in zip(positions, pixels, strict=True)
    ]


def _points(style: Style) -> float:
    return style.font_px * 72 / DPI


def _colours(scene: ChartScene, style: Style) -> list[str]:
    palette = PALETTES[style.palette]
    return [palette[i if style.many_colours else 0] for i in range(len(scene.names))]


def _write(axes: Axes, x: float, y: float, text: str, style: Style, **options: Any) -> None:
    look = {"color": INK, "ha": "center", "va": "center", **options}
    axes.text(x, y, text, fontsize=_points(style), family=style.font, **look)


def _value_axis(axes: Axes, style: Style, top: int = TOP) -> None:
    step = 1 if style.height > 224 else 2
    axes.set_yticks(range(0, top + 1, step))
    axes.set_ylim(0, top + 0.8)


def _write_values(
    axes: Axes, xs: Iterable[float], values: Iterable[int], style: Style, gap: float = 0.1
) -> None:
    """Write values above the ends of bars, points or peaks, where the style asks for it."""
    if style.values:
        for x, value in zip(xs, values, strict=True):
            _write(axes, x, value + gap, str(value), style, va="bottom")


def _names(xs: Iterable[float]) -> Positions:
    """Return the positions of names that are the ticks of the lower axis."""
    return [ItemPosition(item, x, BESIDE_AXIS, (NAME,)) for item, x in enumerate(xs)]


def _values(xs: Iterable[float], ys: Iterable[float], column: int = 0) -> Positions:
    """Return the positions of values that are the ends of bars, points or peaks."""
    ends = enumerate(zip(xs, ys, strict=True))
    return [ItemPosition(item, x, y + ABOVE, (VALUES[column],)) for item, (x, y) in ends]


def _bar(axes: Axes, scene: ChartScene, style: Style) -> Positions:
    xs = range(len(scene.names))
    axes.bar(xs, scene.values[0], style.thickness, color=_colours(scene, style))
    axes.set_xticks(xs, scene.names)
    _value_axis(axes, style)
    _write_values(axes, xs, scene.values[0], style)
    return _names(xs) + _values(xs, scene.values[0])


def _hbar(axes: Axes, scene: ChartScene, style: Style) -> Positions:
    ys = range(len(scene.names))
    axes.barh(ys, scene.values[0], style.thickness, color=_colours(scene, style))
    axes.set_yticks(ys, scene.names)
    axes.invert_yaxis()
    axes.set_xticks(range(0, TOP + 1, 2))
    axes.set_xlim(0, TOP + 0.8)
    if style.values:
        for y, value in zip(ys, scene.values[0], strict=True):
            _write(axes, value + 0.15, y, str(value), style, ha="left")
    upright = _names(ys) + _values(ys, scene.values[0])
    return [replace(position, x=position.y, y=position.x) for position in upright]


def _grouped(axes: Axes, scene: ChartScene, style: Style) -> Positions:
    ends: Positions = []
    width = 0.4 if style.thickness > 0.6 else 0.34
    for number, (column, values) in enumerate(zip(scene.columns, scene.values, strict=True)):
        xs = [x + (number - 0.5) * width for x in range(len(scene.names))]
        axes.bar(xs, values, width, color=NAMED[column], label=column)
        ends += _values(xs, values, number)
        _write_values(axes, xs, values, style)
    axes.set_xticks(range(len(scene.names)), scene.names)
    _value_axis(axes, style)
    axes.set_ylim(0, TOP + 2.5)
    axes.legend(
        loc=style.legend, ncols=2, frameon=False, borderaxespad=0.1, handlelength=0.8,
        columnspacing=0.8, handletextpad=0.3, prop={"family": style.font, "size": _points(style)},
    )  # fmt: skip
    return _names(range(len(scene.names))) + ends


def _line(axes: Axes, scene: ChartScene, style: Style) -> Positions:
    xs = range(len(scene.names))
    colour = PALETTES[style.palette][0]
    axes.plot(xs, scene.values[0], style.dash, color=colour, marker=style.marker, markersize=5)
    axes.set_xticks(xs, scene.names)
    axes.set_xlim(-0.3, len(scene.names) - 0.7)
    _value_axis(axes, style)
    _write_values(axes, xs, scene.values[0], style, gap=0.35)
    return _names(xs) + _values(xs, scene.values[0])


def _scatter(axes: Axes, scene: ChartScene, style: Style) -> Positions:
    xs, ys = scene.values
    axes.scatter(xs, ys, s=28, c=_colours(scene, style), marker=style.marker)
    for name, x, y in zip(scene.names, xs, ys, strict=True):
        _write(axes, x + 0.3, y + 0.15, name, style, ha="left", va="bottom")
    axes.set_xticks(range(0, TOP + 1, 2))
    axes.set_xlim(0, TOP + 0.5)
    _value_axis(axes, style)
    if style.grid:
        axes.grid(color="#cccccc", linewidth=0.7)
    points = enumerate(zip(xs, ys, strict=True))
    return [ItemPosition(item, float(x), float(y), (NAME, *VALUES)) for item, (x, y) in points]


def _pie(axes: Axes, scene: ChartScene, style: Style) -> Positions:
    from matplotlib.patches import Wedge

    axes.set_xlim(-1.3, 1.3)
    axes.set_ylim(-1.3, 1.3)
    axes.set_aspect("equal")
    angle, total = 90.0, sum(scene.values[0])  # from the top: slices have an order
    positions: Positions = []
    ring = 0.55 if style.framed else None
    palette = PALETTES[style.palette]
    for number, (name, value) in enumerate(zip(scene.names, scene.values[0], strict=True)):
        end = angle + 360 * value / total
        axes.add_patch(
            Wedge((0, 0), 1, angle, end, width=ring, fc=palette[number], ec="white", lw=1)
        )
        middle = math.radians((angle + end) / 2)
        x, y = math.cos(middle), math.sin(middle)
        inside = 0.72
        ink = "white" if _is_dark(palette[number]) else INK
        positions.append(ItemPosition(number, inside * x, inside * y, VALUES[:1]))
        positions.append(ItemPosition(number, 1.13 * x, 1.13 * y, (NAME,)))
        _write(axes, inside * x, inside * y, str(value), style, weight="bold", color=ink)
        _write(axes, 1.13 * x, 1.13 * y, name, style, ha="left" if x > 0.4 else "right"
               if x < -0.4 else "center")  # fmt: skip
        angle = end
    return positions


def _is_dark(colour: str) -> bool:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return 3 * red + 6 * green + blue < 1000


def _histogram(axes: Axes, scene: ChartScene, style: Style) -> Positions:
    xs = [number + 0.5 for number in range(len(scene.names))]
    axes.bar(xs, scene.values[0], 1.0, color=PALETTES[style.palette][0], edgecolor="white")
    edges = [scene.names[0].split("-")[0], *(name.split("-")[1] for name in scene.names)]
    axes.set_xticks(range(len(edges)), edges)
    _value_axis(axes, style)
    _write_values(axes, xs, scene.values[0], style)
    return _names(xs) + _values(xs, scene.values[0])


def _table(axes: Axes, scene: ChartScene, style: Style) -> Positions:
    lines = [("", *scene.columns), *zip(scene.names, *scene.values, strict=True)]
    rows, columns = len(lines), len(lines[0])
    axes.set_xlim(0, columns)
    axes.set_ylim(rows, 0)
    for row, line in enumerate(lines):
        if row == 0 or style.grid:
            axes.axhline(row + 1, color=INK, linewidth=0.8)
        for column, cell in enumerate(line):
            weight = "bold" if row == 0 or column == 0 else "normal"
            _write(axes, column + 0.5, row + 0.5, str(cell), style, weight=weight)
    if style.many_colours:
        axes.axhspan(0, 1, color=PALETTES[style.palette][0], alpha=0.25)
    if style.framed:
        axes.axvline(1, color=INK, linewidth=0.8)
    facts = (NAME, *VALUES)
    return [
        ItemPosition(row - 1, column + 0.5, row + 0.5, (facts[column],))
        for row in range(1, rows)
        for column in range(columns)
    ]


def _spectrum(axes: Axes, scene: ChartScene, style: Style) -> Positions:
    x = np.linspace(0, 100, 401)
    y = np.zeros_like(x)
    for name, height in zip(scene.names, scene.values[0], strict=True):
        y += height * np.exp(-(((x - float(name)) / (3 * style.thickness + 0.8)) ** 2))
    axes.plot(x, y, color=PALETTES[style.palette][0], linewidth=1.4)
    tens = range(10, 100, 10)
    axes.set_xticks(tens, [str(x) if x % 20 or style.width > 224 else "" for x in tens])
    axes.set_xlim(0, 100)
    _value_axis(axes, style)
    for name, height in zip(scene.names, scene.values[0], strict=True):
        if style.values:
            _write(axes, float(name), height + 0.1, str(height), style, va="bottom")
        elif style.grid:
            axes.axvline(float(name), color="#cccccc", linewidth=0.7)
    peaks = [float(name) for name in scene.names]
    return _names(peaks) + _values(peaks, scene.values[0])


def _polygon(axes: Axes, scene: ChartScene, style: Style) -> Positions:
    sides = scene.values[0]
    if len(sides) == 3:
        corners = [(0.0, 0.0), _apex(sides[0], sides[1], sides[2]), (float(sides[2]), 0.0)]
    else:
        diagonal = sum(diagonal_range(sides)) / 2
        under = _apex(sides[3], sides[2], diagonal)
        corners = [
            (0.0, 0.0), _apex(sides[0], sides[1], diagonal), (diagonal, 0.0),
            (under[0], -under[1]),
        ]  # fmt: skip
    turned = _draw_outline(axes, corners, style)
    middle = turned.mean(axis=0)
    positions: Positions = []
    for number, (name, value) in enumerate(zip(scene.names, sides, strict=True)):
        start, end = turned[number], turned[(number + 1) % len(sides)]
        along = (end - start) / np.linalg.norm(end - start)
        normal = np.array([-along[1], along[0]])
        x, y = _label_beside(axes, (start + end) / 2, normal, middle, f"{name}={value}", style)
        positions.append(ItemPosition(number, x, y, (NAME, *VALUES[:1])))
    return positions


def _apex(left: float, right: float, base: float) -> tuple[float, float]:
    """Return the third corner of a triangle, above its base from ``(0, 0)`` to ``(base, 0)``."""
    x = (left**2 - right**2 + base**2) / (2 * base)
    return x, math.sqrt(left**2 - x**2)


def _draw_outline(axes: Axes, corners: list[tuple[float, float]], style: Style) -> Point:
    """Turn a polygon, fit it into a square of side 2, draw it; return its corners, ``[N, 2]``."""
    from matplotlib.patches import Polygon

    points: Point = np.array(corners)
    angle = math.radians(style.turn)
    points = points @ np.array(
        [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
    )
    points -= (points.max(axis=0) + points.min(axis=0)) / 2
    points /= abs(points).max()
    fill = PALETTES[style.palette][0] + "44" if style.many_colours else "none"
    axes.add_patch(Polygon(points, closed=True, fc=fill, ec=INK, lw=1.5))
    axes.set_xlim(-1.6, 1.6)
    axes.set_ylim(-1.42, 1.42)
    axes.set_aspect("equal")
    return points


def _angles(axes: Axes, scene: ChartScene, style: Style) -> Positions:
    first, second, third = (math.radians(value) for value in scene.values[0])
    corners = [
        (0.0, 0.0),
        (math.sin(third), 0.0),
        (math.sin(second) * math.cos(first), math.sin(second) * math.sin(first)),
    ]
    turned = _draw_outline(axes, corners, style)
    middle = turned.mean(axis=0)
    positions: Positions = []
    labels = zip(turned, scene.names, scene.values[0], strict=True)
    for number, (corner, name, value) in enumerate(labels):
        away = (corner - middle) / np.linalg.norm(corner - middle)
        x, y = _label_beside(axes, corner, away, middle, f"{name} {value}°", style)
        positions.append(ItemPosition(number, x, y, (NAME, *VALUES[:1])))
    return positions


def _label_beside(
    axes: Axes, spot: Point, away: Point, middle: Point, text: str, style: Style
) -> tuple[float, float]:
    """Write beside a spot of an outline, away from its middle; return the text's position."""
    if np.dot(away, spot - middle) < 0:
        away = -away
    x, y = spot + (0.1 + 0.2 * abs(away[0])) * away
    x = min(max(x, -1.3), 1.3)
    _write(axes, x, y, text, style, va="bottom" if away[1] > 0.5 else
           "top" if away[1] < -0.5 else "center")  # fmt: skip
    return float(x), float(y)


def _counting(axes: Axes, scene: ChartScene, style: Style) -> Positions:
    rng = Random(style.layout)
    cells = [(column, row) for column in range(4) for row in range(4)]
    rng.shuffle(cells)
    shaken = [(x + rng.uniform(-0.15, 0.15), y + rng.uniform(-0.15, 0.15)) for x, y in cells]
    positions: Positions = []
    for item, (name, count) in enumerate(zip(scene.names, scene.values[0], strict=True)):
        start = len(positions)
        colour, shape = name.split(" ")
        xs, ys = zip(*shaken[start : start + count], strict=True)
        size = 700 if shape == "stars" else 400
        axes.scatter(xs, ys, s=size * style.thickness, c=NAMED[colour], marker=MARKERS[shape])
        facts = (NAME, *VALUES[:1])
        positions += [ItemPosition(item, x, y, facts) for x, y in zip(xs, ys, strict=True)]
    axes.set_xlim(-0.6, 3.6)
    axes.set_ylim(-0.6, 3.6)
    return positions


_DRAW: dict[str, tuple[Callable[[Axes, ChartScene, Style], Positions], bool]] = {
    "bar": (_bar, True),
    "hbar": (_hbar, True),
    "grouped": (_grouped, True),
    "line": (_line, True),
    "scatter": (_scatter, True),
    "pie": (_pie, False),
    "histogram": (_histogram, True),
    "table": (_table, False),
    "spectrum": (_spectrum, True),
    "polygon": (_polygon, False),
    "angles": (_angles, False),
    "counting": (_counting, False),
}
"""Function that draws each kind of scene, and whether the kind has axes."""


IMAGE_FOLDER = "images"


def picture_path(png: bytes) -> str:
    """Return a picture's path relative to the folder of its data set."""
    return f"{IMAGE_FOLDER}/{content_name(png, 'png')}"


def save_picture(png: bytes, out: Path) -> None:
    """Save a picture under its ``picture_path`` in the folder of a data set."""
    save_image(png, out / IMAGE_FOLDER)
