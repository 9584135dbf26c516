"""Draw a chart honestly or with its manipulation; equal charts give equal bytes.

Both charts of a pair share data, title, colours and size; the manipulation is all that differs.
"""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from data_prep.made.charts.drawing import IMAGE_FOLDER, picture_of
from data_prep.made.misleading_charts import (
    POP_DISTANCE,
    POP_RADIUS,
    RECEDING,
    SHAPE_3D,
    WALL_3D,
    Family,
    MisleadingChart,
)
from data_prep.splits.manifest import check_replaceable, write_with_manifest
from judging.files.atomic import atomic_write
from judging.fingerprint import file_sha256

if TYPE_CHECKING:
    from matplotlib.axes import Axes


DPI = 100
WIDTH, HEIGHT = 640, 480
"""Pixels."""
COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd")
TOWER = ((-0.6, 0), (0.6, 0), (0.6, 0.6), (1, 0.6), (0, 1), (-1, 0.6), (-0.6, 0.6))
"""Corners of a figure of height 1 that points upwards."""
DARK, DEEP = 0.65, 0.45
"""Brightness of sides in the shade, and of the sides of a gap."""
GRID: dict[str, Any] = {"color": "#d0d0d0", "linewidth": 0.8}

OVER_YEARS = {
    "inconsistent x-axis": "turn x", "inverted y-axis": "turn y", "truncated y-axis": "base",
    "compressed y-axis": "top",
}  # fmt: skip
"""Manipulations of an axis of values over years."""

Points = Sequence[tuple[float, float]]


def render(family: Family, chart: MisleadingChart, manipulated: bool) -> bytes:
    """Draw a chart, honestly or manipulated, as a PNG of ``WIDTH`` x ``HEIGHT`` pixels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI, facecolor="white")
    _Drawing(figure.add_axes((0.14, 0.13, 0.74, 0.76)), family, chart, manipulated)
    file = io.BytesIO()
    picture_of(figure).save(file, "PNG")
    return file.getvalue()


class _Drawing:
    """Axes with a chart drawn on them, honestly or manipulated."""

    def __init__(
        self, axes: Axes, family: Family, chart: MisleadingChart, manipulated: bool
    ) -> None:
        self.axes, self.chart, self.manipulated = axes, chart, manipulated
        self.values = next(iter(chart.values.values()))
        """Those of the first quantity; most charts have one."""
        axes.set_title(chart.title)
        if family.manipulation in OVER_YEARS:
            self._over_years(family.kind == "bar", OVER_YEARS[family.manipulation])
        else:
            _DRAW[family.kind, family.manipulation](self)

    def _value_axis(self, bottom: float, top: float, axes: Axes | None = None) -> None:
        """Set a linear axis with a small tick at every step and large ones at a few grid lines."""
        from matplotlib.ticker import MultipleLocator

        axes = axes or self.axes
        step = self.chart.drawing_values["step"]
        most = (top - bottom) / step
        every = next(number for number in (1, 2, 5, 10, 20, 50) if most / number <= 10)
        axes.set_ylim(bottom, top)
        axes.yaxis.set_major_locator(MultipleLocator(every * step))
        axes.yaxis.set_minor_locator(MultipleLocator(step))
        axes.grid(axis="y", **GRID)
        axes.set_axisbelow(True)

    def _honest_top(self) -> float:
        """Find the end of an axis from zero that leaves a little room: the next step above."""
        step = self.chart.drawing_values["step"]
        return step * (math.floor(1.08 * max(map(max, self.chart.values.values())) / step) + 1)

    def _bars(self) -> None:
        self.axes.bar(range(len(self.values)), self.values, 0.5, color=COLOURS[0])
        self.axes.set_xticks(range(len(self.values)), self.chart.labels)
        self.axes.set_xlim(-0.8, len(self.values) - 0.2)

    def _over_years(self, as_bars: bool, way: str) -> None:
        """Draw values over years.

        Manipulated, the value axis begins or ends where the chart's drawing value says, or an axis
        runs the other way.
        """
        if as_bars:
            self._bars()
        else:
            years = range(len(self.values))
            self.axes.plot(years, self.values, color=COLOURS[0], marker="o")
            self.axes.set_xticks(years, self.chart.labels)
        ends = {"base": 0.0, "top": self._honest_top()}
        if self.manipulated and way in ends:
            ends[way] = self.chart.drawing_values[way]
        self._value_axis(ends["base"], ends["top"])
        if self.manipulated and way == "turn x":
            self.axes.invert_xaxis()
        if self.manipulated and way == "turn y":
            self.axes.invert_yaxis()

    def _dual_axes(self) -> None:
        xs = range(len(self.chart.labels))
        (first, below), (second, above) = self.chart.values.items()
        self.axes.set_xticks(xs, self.chart.labels)
        lines = self.axes.plot(xs, below, color=COLOURS[0], marker="o", label=first)
        if not self.manipulated:
            lines += self.axes.plot(xs, above, color=COLOURS[3], marker="s", label=second)
            self._value_axis(0, self._honest_top())
        else:
            right = self.axes.twinx()
            lines += right.plot(xs, above, color=COLOURS[3], marker="s", label=second)
            for side, name, colour, top in (
                (self.axes, first, COLOURS[0], self.chart.drawing_values["first_top"]),
                (right, second, COLOURS[3], self.chart.drawing_values["second_top"]),
            ):
                self._value_axis(0, top, side)
                side.set_ylabel(name, color=colour)
                side.tick_params(axis="y", which="both", colors=colour)
            right.grid(False)
        self.axes.legend(handles=lines, loc="lower left")

    def _perspective_bars(self) -> None:
        """Draw bars against a wall that recedes to the right, with its grid lines."""
        if not self.manipulated:
            self._bars()
            self._value_axis(0, self._honest_top())
            return
        count, top = len(self.chart.labels), self._honest_top()

        def project(along: float, height: float) -> tuple[float, float]:
            """Project a point of the wall; sizes shrink evenly, eyes are at half height."""
            size = 1 / (1 + (1 / RECEDING - 1) * along / count)
            across = (1 - size) / (1 - RECEDING)
            return across, 0.5 + (height / top - 0.5) * size

        for value in range(int(top) + 1):
            self.axes.plot(
                *zip(project(0, value), project(count, value), strict=True), zorder=0, **GRID
            )
            self.axes.text(
                -0.02, project(0, value)[1], str(value), ha="right", va="center", fontsize=8
            )
        for number, (label, high) in enumerate(zip(self.chart.labels, self.values, strict=True)):
            left, right = number + 0.25, number + 0.7
            face = [project(left, 0), project(right, 0), project(right, high), project(left, high)]
            side = [project(right, 0), project(right + 0.15, 0), project(right + 0.15, high),
                    project(right, high)]  # fmt: skip
            self._fill(face, COLOURS[0])
            self._fill(side, COLOURS[0], DARK)
            x, y = project((left + right) / 2, 0)
            self.axes.text(x, y - 0.02, label, ha="center", va="top", fontsize=9)
        self.axes.set_xlim(-0.08, 1.02)
        self.axes.set_ylim(-0.08, 1.04)
        self.axes.set_axis_off()

    def _fill(self, corners: Points, colour: str, brightness: float = 1.0) -> None:
        from matplotlib.colors import to_rgb
        from matplotlib.patches import Polygon

        shade = tuple(brightness * part for part in to_rgb(colour))
        self.axes.add_patch(Polygon(corners, closed=True, facecolor=shade, edgecolor="none"))

    def _pictorial(self) -> None:
        """Draw bars, or towers of one shape whose width grows with their height."""
        if not self.manipulated:
            self._bars()
        else:
            values = self.values
            half = 0.45 / max(values)
            for x_middle, value in enumerate(values):
                corners = [(x_middle + half * value * x, value * y) for x, y in TOWER]
                self._fill(corners, COLOURS[0])
            self.axes.set_xticks(range(len(values)), self.chart.labels)
            self.axes.set_xlim(-0.8, len(values) - 0.2)
        self._value_axis(0, self._honest_top())

    def _swapped_ends(self) -> None:
        across, up = self.chart.values.items()
        self.axes.scatter(across[1], up[1], color=COLOURS[0], s=45, zorder=2)
        for name, x, y in zip(self.chart.labels, across[1], up[1], strict=True):
            self.axes.text(x + 0.4, y + 0.4, name)
        self.axes.set_xlabel(across[0])
        self.axes.set_ylabel(up[0])
        self.axes.set(xlim=(0, 21), ylim=(0, 21), xticks=range(0, 21, 2), yticks=range(0, 21, 2))
        self.axes.grid(**GRID)
        self.axes.set_axisbelow(True)
        if self.manipulated:
            self.axes.invert_xaxis()

    def _logarithmic(self) -> None:
        from matplotlib.ticker import FuncFormatter, LogLocator

        months, values = list(map(int, self.chart.labels)), self.values
        self.axes.scatter(months, values, color=COLOURS[0], s=45, zorder=2)
        self.axes.axvline(self.chart.drawing_values["event"], color=COLOURS[3], linestyle="--")
        self.axes.set_xticks(months)
        self.axes.set_xlabel("Month")
        if self.manipulated:
            self.axes.set_yscale("log")
            self.axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            self.axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        else:
            self.axes.set_ylim(0, None)
        self.axes.grid(**GRID)
        self.axes.set_axisbelow(True)

    def _inverted_colours(self) -> None:
        """Draw made-up regions: dark for high values or, manipulated, for low ones."""
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize, to_hex

        rng, columns, rows = Random(int(self.chart.drawing_values["layout"])), 4, 3
        corners = {
            (x, y): (x + rng.uniform(-0.25, 0.25), y + rng.uniform(-0.25, 0.25))
            for x in range(columns + 1)
            for y in range(rows + 1)
        }
        scale: Any = ScalarMappable(Normalize(0, 100), "Blues_r" if self.manipulated else "Blues")
        for number, (name, value) in enumerate(zip(self.chart.labels, self.values, strict=True)):
            x, y = number % columns, number // columns
            around = [corners[x, y], corners[x + 1, y], corners[x + 1, y + 1], corners[x, y + 1]]
            colour = to_hex(scale.to_rgba(value))
            self._fill(around, colour)
            self.axes.plot(*zip(*around, around[0], strict=True), color="#555555", linewidth=1)
            middle = np.mean(around, axis=0)
            ink = "white" if int(colour[1:3], 16) < 110 else "black"
            self.axes.text(middle[0], middle[1], name, ha="center", va="center", color=ink)
        self.axes.set_axis_off()
        self.axes.figure.colorbar(scale, ax=self.axes, ticks=range(0, 101, 10))

    def _pie_3d(self) -> None:
        """Draw a flat pie, or a tilted one with the wall of its front half in the shade."""
        self._slices(range(len(self.chart.labels)), SHAPE_3D if self.manipulated else 1.0)
        self._frame_pie()

    def _pop_out(self) -> None:
        """Draw a flat pie, or a tilted one whose first slice, enlarged, is pulled to the front."""
        first, *others = range(len(self.chart.labels))
        if not self.manipulated:
            self._slices((first, *others), 1.0)
        else:
            self._slices(others, SHAPE_3D)
            self._cut_faces()
            self._slices([first], SHAPE_3D, radius=POP_RADIUS, away=POP_DISTANCE)
        self._frame_pie()

    def _slices(
        self, numbers: Sequence[int], shape: float, radius: float = 1.0, away: float = 0.0
    ) -> None:
        """Draw numbered slices of a pie, of a tilted one with their walls at the front.

        ``shape`` is the height of the pie by its width; below 1 it is tilted. The slices have this
        radius and are this far ``away`` from the middle.
        """
        arcs = self._arcs()
        tips = {}
        for number in numbers:
            middle = math.radians(sum(arcs[number]) / 2)
            tips[number] = (away * math.cos(middle), away * shape * math.sin(middle))

        def moved(number: int, points: Points) -> list[tuple[float, float]]:
            return [(tips[number][0] + x, tips[number][1] + y) for x, y in points]

        for number in numbers if shape < 1 else ():
            for turn in (-360, 0, 360):
                low, high = max(arcs[number][0] + turn, 180.0), min(arcs[number][1] + turn, 360.0)
                if low < high:
                    edge = moved(number, _arc(low, high, radius, shape))
                    wall = [*edge, *((x, y - WALL_3D) for x, y in reversed(edge))]
                    self._fill(wall, COLOURS[number], DARK)
        for number in numbers:
            top = [(0.0, 0.0), *_arc(*arcs[number], radius, shape)]
            self._fill(moved(number, top), COLOURS[number])

    def _cut_faces(self) -> None:
        """Draw the walls of the gap that a slice at the front leaves in a tilted pie."""
        for angle, number in zip(self._arcs()[0], (-1, 1), strict=True):
            [_, rim] = _arc(angle, angle, 1.0, SHAPE_3D)
            face = [(0.0, 0.0), rim, (rim[0], rim[1] - WALL_3D), (0.0, -WALL_3D)]
            self._fill(face, COLOURS[number % len(self.chart.labels)], DEEP)

    def _arcs(self) -> list[tuple[float, float]]:
        """Compute start and end of every slice, in degrees counter-clockwise."""
        ends = self.chart.drawing_values["start"] + 3.6 * np.cumsum((0.0, *self.values))
        return list(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))

    def _frame_pie(self) -> None:
        from matplotlib.patches import Patch

        names = [Patch(color=colour, label=name)
                 for name, colour in zip(self.chart.labels, COLOURS, strict=True)]  # fmt: skip
        self.axes.legend(handles=names, loc="center left", bbox_to_anchor=(1.0, 0.5))
        self.axes.set_aspect("equal", anchor="W")
        self.axes.set_xlim(-1.45, 1.45)
        self.axes.set_ylim(-1.45, 1.45)
        self.axes.set_axis_off()


def _arc(start: float, end: float, radius: float, shape: float) -> list[tuple[float, float]]:
    angles = np.radians(np.linspace(start, end, max(2, int(end - start))))
    return [(radius * math.cos(angle), radius * shape * math.sin(angle)) for angle in angles]


_DRAW: dict[tuple[str, str], Callable[[_Drawing], None]] = {
    ("line", "dual axes"): _Drawing._dual_axes,
    ("bar", "3D effect"): _Drawing._perspective_bars,
    ("bar", "pictorial bars"): _Drawing._pictorial,
    ("scatter", "swapped axis"): _Drawing._swapped_ends,
    ("scatter", "logarithmic y-axis"): _Drawing._logarithmic,
    ("map", "inverted color scale"): _Drawing._inverted_colours,
    ("pie", "3D effect"): _Drawing._pie_3d,
    ("pie", "3D effect + pop out"): _Drawing._pop_out,
}
"""Methods that draw the other kinds and manipulations, as ``FAMILIES`` names them."""


ITEMS = "items.jsonl"


def write_chart_pairs(
    out: Path,
    pairs: Iterable[tuple[Family, MisleadingChart]],
    published: Mapping[str, tuple[float, float]],
    *,
    source: Mapping[str, Any],
    command: str,
) -> dict[str, Any]:
    """Write ``items.jsonl``, ``images/`` and, last, ``manifest.json``; equal input, equal bytes.

    Two rows to a pair, ``_1`` original and ``_2`` manipulated. ``hmi`` is what people scored on the
    published pair of the same kind and manipulation (``hmi_source``): nobody has answered these
    charts. ``published`` has it of the original and the manipulated chart, by pair of CHARTOM's
    Table 1. People's own answers, in ``human_answers``, replace it when the items are loaded.
    ``source`` says what the pairs were made from. Return the manifest.
    """
    check_replaceable(out, [ITEMS])
    counts = {name: Counter[str]() for name in ("kinds", "manipulations", "question_types")}
    path = out / ITEMS
    with write_with_manifest(out, source=source, command=command) as manifest:
        (out / IMAGE_FOLDER).mkdir(exist_ok=True)
        with atomic_write(path) as file:
            for number, (family, chart) in enumerate(pairs, 1):
                for manipulated in (False, True):
                    hmi = published[family.like][manipulated]
                    item = _item(f"P{number:04d}", family, chart, manipulated, hmi)
                    png = render(family, chart, manipulated)
                    (out / item["image"]).write_bytes(png)
                    file.write(json.dumps(item, ensure_ascii=False) + "\n")
                named = (family.kind, family.manipulation, chart.question_type)
                for counter, name in zip(counts.values(), named, strict=True):
                    counter[name] += 1
        manifest.update(
            outputs={path.name: file_sha256(path)},
            pairs=counts["kinds"].total(),
            **{name: dict(sorted(counter.items())) for name, counter in counts.items()},
        )
    return manifest


def _item(
    name: str, family: Family, chart: MisleadingChart, manipulated: bool, hmi: float
) -> dict[str, Any]:
    """Describe one chart of a pair; ``strategies`` holds what each way of reading it answers."""
    item_id = f"{name}_{1 + manipulated}"
    others = {"misled": chart.misled if manipulated else None, "skimming": chart.skimming}
    others = {name: answer for name, answer in others.items() if answer is not None}
    item: dict[str, Any] = {
        "id": item_id,
        "kind": family.kind,
        "manipulation": family.manipulation if manipulated else "",
        "image": f"{IMAGE_FOLDER}/{item_id}.png",
        "question": chart.question,
        "question_type": chart.question_type,
        "choices": chart.choices,
        "answer": chart.answer,
        "unit": chart.unit,
        "strategies": {"correct": chart.answer, **others},
        "hmi": hmi,
        "hmi_source": f"published: {family.like}_{1 + manipulated}",
        "data": {"labels": chart.labels, **chart.values},
    }
    if chart.question_type == "number":
        item["alternatives"] = list(others.values())
    return item
