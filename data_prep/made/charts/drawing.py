"""Draw scenes with matplotlib's object interface; equal scenes and styles give equal bytes."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from data_prep.made.charts.scenes import NAMED, PALETTES, ChartScene, Style, diagonal_range
from data_prep.tables.cells import content_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from PIL.Image import Image


Point = npt.NDArray[np.float64]
"""``[2]``, or ``[N, 2]`` for many."""

DPI = 100
TOP = 10
"""Upper end of value axes."""
INK, GRID = "#222222", "#cccccc"
WITHOUT_AXES = ("pie", "table", "polygon", "angles", "counting")
MARKERS = {"circles": "o", "squares": "s", "triangles": "^", "stars": "*"}


IMAGE_FOLDER = "images"


def render(scene: ChartScene, style: Style) -> bytes:
    """Draw a scene as a PNG of at most 32 colours, ``style.width`` x ``style.height`` pixels."""
    from matplotlib.figure import Figure
    from PIL import Image

    figure = Figure(figsize=(style.width / DPI, style.height / DPI), dpi=DPI, facecolor=style.paper)
    getattr(_Drawing(figure, scene, style), scene.kind)()
    file = io.BytesIO()
    picture = picture_of(figure).quantize(32, dither=Image.Dither.NONE)
    picture.save(file, "PNG", compress_level=9)
    return file.getvalue()


def picture_of(figure: Figure) -> Image:
    """Draw a figure as a picture without transparency."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    canvas: Any = FigureCanvasAgg(figure)  # its drawing methods have no types
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy())


class _Drawing:
    """The axes of a picture, and a method for each kind of scene that draws it on them."""

    def __init__(self, figure: Figure, scene: ChartScene, style: Style) -> None:
        self.scene, self.style = scene, style
        self.names, self.values = scene.names, scene.values[0]
        self.xs = range(len(scene.names))
        self.palette = PALETTES[style.palette]
        self.colours = [self.palette[n if style.many_colours else 0] for n in self.xs]
        self.points = style.font_px * 72 / DPI
        has_axes = scene.kind not in WITHOUT_AXES
        left, bottom = (28 / style.width, 28 / style.height) if has_axes else (0.02, 0.02)
        if scene.kind == "hbar":
            left = 46 / style.width
        size = (left, bottom, 0.97 - left, 0.97 - bottom)
        self.axes: Axes = figure.add_axes(size, facecolor=style.paper)
        if not has_axes:
            self.axes.set_axis_off()
            return
        self.axes.tick_params(labelsize=self.points, labelfontfamily=style.font, length=2, pad=2)
        self.axes.spines[["top", "right"]].set_visible(style.framed)
        if style.grid:
            self.axes.grid(axis="x" if scene.kind == "hbar" else "y", color=GRID, linewidth=0.7)
            self.axes.set_axisbelow(True)

    def _write(self, x: float, y: float, text: str, **options: Any) -> None:
        look = {"color": INK, "ha": "center", "va": "center", **options}
        self.axes.text(x, y, text, fontsize=self.points, family=self.style.font, **look)

    def _value_axis(self) -> None:
        self.axes.set_yticks(range(0, TOP + 1, 1 if self.style.height > 224 else 2))
        self.axes.set_ylim(0, TOP + 0.8)

    def _write_ends(self, xs: Iterable[float], values: Sequence[int], gap: float = 0.1) -> None:
        """Write values above the ends of bars, points or peaks, where the style asks for it."""
        if self.style.values:
            for x, value in zip(xs, values, strict=True):
                self._write(x, value + gap, str(value), va="bottom")

    def bar(self) -> None:
        self.axes.bar(self.xs, self.values, self.style.thickness, color=self.colours)
        self.axes.set_xticks(self.xs, self.names)
        self._value_axis()
        self._write_ends(self.xs, self.values)

    def hbar(self) -> None:
        self.axes.barh(self.xs, self.values, self.style.thickness, color=self.colours)
        self.axes.set_yticks(self.xs, self.names)
        self.axes.invert_yaxis()
        self.axes.set_xticks(range(0, TOP + 1, 2))
        self.axes.set_xlim(0, TOP + 0.8)
        if self.style.values:
            for y, value in zip(self.xs, self.values, strict=True):
                self._write(value + 0.15, y, str(value), ha="left")

    def grouped(self) -> None:
        width = 0.4 if self.style.thickness > 0.6 else 0.34
        for number, (column, values) in enumerate(
            zip(self.scene.columns, self.scene.values, strict=True)
        ):
            xs = [x + (number - 0.5) * width for x in self.xs]
            self.axes.bar(xs, values, width, color=NAMED[column], label=column)
            self._write_ends(xs, values)
        self.axes.set_xticks(self.xs, self.names)
        self._value_axis()
        self.axes.set_ylim(0, TOP + 2.5)
        self.axes.legend(
            loc=self.style.legend, ncols=2, frameon=False, borderaxespad=0.1, handlelength=0.8,
            columnspacing=0.8, handletextpad=0.3,
            prop={"family": self.style.font, "size": self.points},
        )  # fmt: skip

    def line(self) -> None:
        dash, marker = self.style.dash, self.style.marker
        colour = self.palette[0]
        self.axes.plot(self.xs, self.values, dash, color=colour, marker=marker, markersize=5)
        self.axes.set_xticks(self.xs, self.names)
        self.axes.set_xlim(-0.3, len(self.names) - 0.7)
        self._value_axis()
        self._write_ends(self.xs, self.values, gap=0.35)

    def scatter(self) -> None:
        xs, ys = self.scene.values
        self.axes.scatter(xs, ys, s=28, c=self.colours, marker=self.style.marker)
        for name, x, y in zip(self.names, xs, ys, strict=True):
            self._write(x + 0.3, y + 0.15, name, ha="left", va="bottom")
        self.axes.set_xticks(range(0, TOP + 1, 2))
        self.axes.set_xlim(0, TOP + 0.5)
        self._value_axis()
        if self.style.grid:
            self.axes.grid(color=GRID, linewidth=0.7)

    def pie(self) -> None:
        from matplotlib.patches import Wedge

        self.axes.set_xlim(-1.3, 1.3)
        self.axes.set_ylim(-1.3, 1.3)
        self.axes.set_aspect("equal")
        angle = 90.0  # from the top: slices have an order
        ring, inside = 0.55 if self.style.framed else None, 0.72
        for number, (name, value) in enumerate(zip(self.names, self.values, strict=True)):
            end = angle + 360 * value / sum(self.values)
            colour = self.palette[number]
            self.axes.add_patch(
                Wedge((0, 0), 1, angle, end, width=ring, fc=colour, ec="white", lw=1)
            )
            middle = math.radians((angle + end) / 2)
            x, y = math.cos(middle), math.sin(middle)
            red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
            ink = "white" if 3 * red + 6 * green + blue < 1000 else INK
            self._write(inside * x, inside * y, str(value), weight="bold", color=ink)
            side = "left" if x > 0.4 else "right" if x < -0.4 else "center"
            self._write(1.13 * x, 1.13 * y, name, ha=side)
            angle = end

    def histogram(self) -> None:
        xs = [number + 0.5 for number in self.xs]
        self.axes.bar(xs, self.values, 1.0, color=self.palette[0], edgecolor="white")
        edges = [self.names[0].split("-")[0], *(name.split("-")[1] for name in self.names)]
        self.axes.set_xticks(range(len(edges)), edges)
        self._value_axis()
        self._write_ends(xs, self.values)

    def table(self) -> None:
        lines = [("", *self.scene.columns), *zip(self.names, *self.scene.values, strict=True)]
        self.axes.set_xlim(0, len(lines[0]))
        self.axes.set_ylim(len(lines), 0)
        for row, line in enumerate(lines):
            if row == 0 or self.style.grid:
                self.axes.axhline(row + 1, color=INK, linewidth=0.8)
            for column, cell in enumerate(line):
                weight = "bold" if row == 0 or column == 0 else "normal"
                self._write(column + 0.5, row + 0.5, str(cell), weight=weight)
        if self.style.many_colours:
            self.axes.axhspan(0, 1, color=self.palette[0], alpha=0.25)
        if self.style.framed:
            self.axes.axvline(1, color=INK, linewidth=0.8)

    def spectrum(self) -> None:
        x = np.linspace(0, 100, 401)
        y = np.zeros_like(x)
        peaks = [float(name) for name in self.names]
        for peak, height in zip(peaks, self.values, strict=True):
            y += height * np.exp(-(((x - peak) / (3 * self.style.thickness + 0.8)) ** 2))
        self.axes.plot(x, y, color=self.palette[0], linewidth=1.4)
        tens = range(10, 100, 10)
        every = self.style.width > 224
        self.axes.set_xticks(tens, [str(ten) if ten % 20 or every else "" for ten in tens])
        self.axes.set_xlim(0, 100)
        self._value_axis()
        for peak in () if self.style.values or not self.style.grid else peaks:
            self.axes.axvline(peak, color=GRID, linewidth=0.7)
        self._write_ends(peaks, self.values)

    def polygon(self) -> None:
        sides = self.values
        if len(sides) == 3:
            corners = [(0.0, 0.0), _apex(sides[0], sides[1], sides[2]), (float(sides[2]), 0.0)]
        else:
            diagonal = sum(diagonal_range(sides)) / 2
            x, y = _apex(sides[3], sides[2], diagonal)
            above = _apex(sides[0], sides[1], diagonal)
            corners = [(0.0, 0.0), above, (diagonal, 0.0), (x, -y)]
        turned = self._outline(corners)
        spots = []
        for start, end in zip(turned, np.roll(turned, -1, axis=0), strict=True):
            along = (end - start) / np.linalg.norm(end - start)
            spots.append(((start + end) / 2, np.array([-along[1], along[0]])))
        texts = [f"{name}={value}" for name, value in zip(self.names, sides, strict=True)]
        self._write_beside(spots, turned.mean(axis=0), texts)

    def angles(self) -> None:
        first, second, third = (math.radians(value) for value in self.values)
        far = math.sin(second)
        corners = [
            (0.0, 0.0),
            (math.sin(third), 0.0),
            (far * math.cos(first), far * math.sin(first)),
        ]
        turned = self._outline(corners)
        middle = turned.mean(axis=0)
        spots = [(each, (each - middle) / np.linalg.norm(each - middle)) for each in turned]
        texts = [f"{name} {value}°" for name, value in zip(self.names, self.values, strict=True)]
        self._write_beside(spots, middle, texts)

    def _outline(self, corners: list[tuple[float, float]]) -> Point:
        """Turn a polygon, fit it into a square of side 2, draw it; return corners, ``[N, 2]``."""
        from matplotlib.patches import Polygon

        angle = math.radians(self.style.turn)
        points: Point = np.array(corners) @ np.array(
            [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
        )
        points -= (points.max(axis=0) + points.min(axis=0)) / 2
        points /= abs(points).max()
        fill = self.palette[0] + "44" if self.style.many_colours else "none"
        self.axes.add_patch(Polygon(points, closed=True, fc=fill, ec=INK, lw=1.5))
        self.axes.set_xlim(-1.6, 1.6)
        self.axes.set_ylim(-1.42, 1.42)
        self.axes.set_aspect("equal")
        return points

    def _write_beside(
        self, spots: Iterable[tuple[Point, Point]], middle: Point, texts: Iterable[str]
    ) -> None:
        """Write beside spots of an outline, each with a direction, away from the middle."""
        for (spot, away), text in zip(spots, texts, strict=True):
            if np.dot(away, spot - middle) < 0:
                away = -away
            x, y = spot + (0.1 + 0.2 * abs(away[0])) * away
            x = min(max(x, -1.3), 1.3)
            side = "bottom" if away[1] > 0.5 else "top" if away[1] < -0.5 else "center"
            self._write(x, y, text, va=side)

    def counting(self) -> None:
        rng = Random(self.style.layout)
        cells = [(column, row) for column in range(4) for row in range(4)]
        rng.shuffle(cells)
        shaken = [(x + rng.uniform(-0.15, 0.15), y + rng.uniform(-0.15, 0.15)) for x, y in cells]
        start = 0
        for name, count in zip(self.names, self.values, strict=True):
            colour, shape = name.split(" ")
            xs, ys = zip(*shaken[start : start + count], strict=True)
            start += count
            size = (700 if shape == "stars" else 400) * self.style.thickness
            self.axes.scatter(xs, ys, s=size, c=NAMED[colour], marker=MARKERS[shape])
        self.axes.set_xlim(-0.6, 3.6)
        self.axes.set_ylim(-0.6, 3.6)


def _apex(left: float, right: float, base: float) -> tuple[float, float]:
    """Find the third corner of a triangle, above its base from ``(0, 0)`` to ``(base, 0)``."""
    x = (left**2 - right**2 + base**2) / (2 * base)
    return x, math.sqrt(left**2 - x**2)


def picture_path(png: bytes) -> str:
    """Name a picture's path relative to the folder of its data set."""
    return f"{IMAGE_FOLDER}/{content_name(png, 'png')}"
