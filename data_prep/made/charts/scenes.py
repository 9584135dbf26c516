"""Scenes: the exact data of a picture, the kinds there are, and a line of text that names it all.

Pictures are made for a vision tower that sees one token per 28 x 28 pixels, so scenes are small:
three to six items, short names, small whole numbers. All values of a column differ, so that ranks
are never ambiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

View = Mapping[str, int]
"""Values of one column by item name, in the order drawn."""

LETTERS = tuple("ABCDEFGH")
WORDS = ("tea", "milk", "rice", "salt", "fish", "corn", "wool", "iron", "gold", "wood", "sand")
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
COLOURS = ("red", "blue", "green", "orange", "purple", "black")
SHAPES = ("circles", "squares", "triangles", "stars")
HEADINGS = ("cost", "mass", "age", "size")


@dataclass(frozen=True)
class SceneKind:
    """A kind of scene: how its data are made and which words speak of it."""

    name: str
    noun: str
    nouns: str
    measure: str
    """Word for an item's value; ``{column}`` where there are several columns."""
    measures: str
    names: Callable[[Random, int], tuple[str, ...]]
    sizes: tuple[int, ...] = (3, 4, 4, 5)
    """How many items, drawn evenly."""
    low: int = 1
    high: int = 9
    item: str = "{name}"
    """Words for an item in a response."""
    columns: Callable[[Random], tuple[str, ...]] = lambda rng: ("value",)
    fits: Callable[[tuple[int, ...]], bool] = lambda values: True
    """Tells whether values can be drawn."""
    unit: int = 1
    """Values are multiples of this."""

    def draw_values(self, rng: Random, count: int) -> tuple[int, ...]:
        """Draw ``count`` distinct values that fit."""
        while True:
            values = tuple(
                self.unit * value for value in rng.sample(range(self.low, self.high + 1), count)
            )
            if self.fits(values):
                return values

    def allows(self, values: Iterable[int]) -> bool:
        """Tell whether values lie in the range that this kind draws from."""
        low, high = self.unit * self.low, self.unit * self.high
        return all(low <= value <= high for value in values)


@dataclass(frozen=True)
class ChartScene:
    """The exact data of one picture."""

    kind: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[int, ...], ...]
    """``[column][item]``"""

    def view(self, column: str) -> dict[str, int]:
        """Look up the values of one column by item."""
        return dict(zip(self.names, self.values[self.columns.index(column)], strict=True))

    def with_view(self, column: str, view: View) -> ChartScene:
        """Make the same scene with other values in one column."""
        changed = list(self.values)
        changed[self.columns.index(column)] = tuple(view[name] for name in self.names)
        return replace(self, values=tuple(changed))

    def readings(self) -> dict[str, dict[str, int]]:
        """List all values as plain data: column, item, value."""
        return {column: self.view(column) for column in self.columns}

    def describe(self) -> str:
        """Write the scene in one line of at most about 40 tokens: ``bar: A 3, B 7, C 5``.

        Several columns follow the kind, and every item then has one value for each.
        """
        head = self.kind if len(self.columns) == 1 else f"{self.kind} {' '.join(self.columns)}"
        items = zip(self.names, *self.values, strict=True)
        return f"{head}: {', '.join(' '.join(map(str, item)) for item in items)}"


def draw_scene(rng: Random, kind: SceneKind) -> ChartScene:
    """Draw names and data of a scene."""
    names = kind.names(rng, rng.choice(kind.sizes))
    columns = kind.columns(rng)
    return ChartScene(
        kind.name, names, columns, tuple(kind.draw_values(rng, len(names)) for _ in columns)
    )


def _categories(rng: Random, count: int) -> tuple[str, ...]:
    words_fit = count <= 4
    return tuple(rng.sample(WORDS, count)) if words_fit and rng.random() < 0.5 else LETTERS[:count]


def _bins(rng: Random, count: int) -> tuple[str, ...]:
    width = rng.choice((2, 5))
    return tuple(f"{n * width}-{(n + 1) * width}" for n in range(count))


def _positions(rng: Random, count: int) -> tuple[str, ...]:
    while True:
        tens = sorted(rng.sample(range(1, 10), count))
        if all(right - left > 1 for left, right in zip(tens, tens[1:], strict=False)):
            return tuple(str(10 * ten) for ten in tens)


def _coloured_shapes(rng: Random, count: int) -> tuple[str, ...]:
    """Draw names like ``red circles`` that differ in colour, sorted as captions name them."""
    colours = sorted(rng.sample(COLOURS, count))
    return tuple(f"{colour} {rng.choice(SHAPES)}" for colour in colours)


def _closes(sides: tuple[int, ...]) -> bool:
    """Tell whether the sides make a triangle or a quadrilateral that is not too flat."""
    if len(sides) == 3:
        return 2 * max(sides) <= sum(sides) - 2
    low, high = diagonal_range(sides)
    return high - low >= 2


def diagonal_range(sides: tuple[int, ...]) -> tuple[int, int]:
    """Bound the diagonal that has sides 1 and 2 of a quadrilateral on one side."""
    a, b, c, d = sides
    return max(abs(a - b), abs(c - d)), min(a + b, c + d)


def _letters(rng: Random, count: int) -> tuple[str, ...]:
    return LETTERS[:count]


K = SceneKind
KINDS: dict[str, SceneKind] = {
    kind.name: kind
    for kind in (
        K("bar", "bar", "bars", "value", "values", _categories, (3, 4, 4, 5, 6)),
        K("hbar", "bar", "bars", "value", "values", _categories),
        K("grouped", "category", "categories", "{column} value", "{column} values", _letters,
             (3, 3, 4), columns=lambda rng: tuple(rng.sample(COLOURS, 2))),
        K("line", "point", "points", "value", "values",
             lambda rng, count: rng.choice((LETTERS, DAYS))[:count], (4, 5, 5, 6)),
        K("scatter", "point", "points", "{column} value", "{column} values", _letters,
             (3, 4, 5), item="point {name}", columns=lambda rng: ("x", "y")),
        K("pie", "slice", "slices", "value", "values", _categories,
             fits=lambda values: min(values) >= 0.07 * sum(values)),
        K("histogram", "bin", "bins", "count", "counts", _bins, (3, 4, 4), item="bin {name}"),
        K("table", "row", "rows", "{column}", "{column} entries", _categories, high=19,
             columns=lambda rng: tuple(rng.sample(HEADINGS, rng.choice((1, 2))))),
        K("spectrum", "peak", "peaks", "height", "heights", _positions, (3, 3, 4), low=2,
             item="peak {name}"),
        K("polygon", "side", "sides", "length", "lengths",
             lambda rng, count: tuple("abcd"[:count]), (3, 4), low=3,
             item="side {name}", fits=_closes),
        K("angles", "angle", "angles", "size", "sizes", _letters, (3,), low=2, high=12,
             item="angle {name}", fits=lambda values: sum(values) == 180, unit=10),
        K("counting", "kind of shape", "kinds of shapes", "number", "numbers",
             _coloured_shapes, (3,), high=6, fits=lambda values: sum(values) <= 14),
    )
}  # fmt: skip
"""Kinds of scenes by name; all are equally frequent."""


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
