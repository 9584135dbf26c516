"""What a picture shows: kinds of scenes, their exact data, and one line of text that names it all.

Pictures are made for a vision tower that sees one token per 28 x 28 pixels, so scenes are small:
three to six items, short names, small whole numbers. All values of a column differ, so that ranks
are never ambiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

Fact = Literal["name", "first value", "second value"]
NAME: Fact = "name"
VALUES: tuple[Fact, Fact] = ("first value", "second value")
"""By column."""
View = Mapping[str, int]
"""Values by item name, in the order drawn; what one question is about."""

LETTERS = tuple("ABCDEFGH")
WORDS = ("tea", "milk", "rice", "salt", "fish", "corn", "wool", "iron", "gold", "wood", "sand")
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
COLOURS = ("red", "blue", "green", "orange", "purple", "black")
SHAPES = ("circles", "squares", "triangles", "stars")


@dataclass(frozen=True)
class Kind:
    """How scenes of one kind are made and talked about."""

    name: str
    noun: str
    nouns: str
    measure: str
    """What an item's value is called; ``{column}`` where there are several columns."""
    measures: str
    names: Callable[[Random, int], tuple[str, ...]]
    sizes: tuple[int, ...] = (3, 4, 4, 5)
    """How many items, drawn evenly."""
    low: int = 1
    high: int = 9
    item: str = "{name}"
    """How a response refers to an item."""
    columns: Callable[[Random], tuple[str, ...]] = lambda rng: ("value",)
    fits: Callable[[tuple[int, ...]], bool] = lambda values: True
    """Whether values can be drawn."""
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


@dataclass(frozen=True)
class Scene:
    """The exact data of one picture."""

    kind: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[int, ...], ...]
    """``[column][item]``"""

    def view(self, column: str) -> dict[str, int]:
        """Values of one column by item."""
        return dict(zip(self.names, self.values[self.columns.index(column)], strict=True))

    def with_view(self, column: str, view: View) -> Scene:
        """The same scene with other values in one column."""
        changed = list(self.values)
        changed[self.columns.index(column)] = tuple(view[name] for name in self.names)
        return replace(self, values=tuple(changed))

    def readings(self) -> dict[str, dict[str, int]]:
        """All values as plain data: column, item, value."""
        return {column: self.view(column) for column in self.columns}

    def describe(self) -> str:
        """One canonical line, at most about 40 tokens: ``bar: A 3, B 7, C 5``.

        Several columns follow the kind, and every item then has one value for each.
        """
        return "".join(text for text, _, _ in self.caption())

    def caption(self) -> list[tuple[str, int, Fact | None]]:
        """The line of :meth:`describe` in pieces: text, item, and what of it the text tells."""
        head = self.kind if len(self.columns) == 1 else f"{self.kind} {' '.join(self.columns)}"
        pieces: list[tuple[str, int, Fact | None]] = [(f"{head}:", -1, None)]
        for item, (name, *values) in enumerate(zip(self.names, *self.values, strict=True)):
            pieces += [(",", -1, None)] if item else []
            pieces.append((f" {name}", item, NAME))
            pieces += [(f" {v}", item, fact) for v, fact in zip(values, VALUES, strict=False)]
        return pieces


def draw_scene(rng: Random, kind: Kind) -> Scene:
    """Draw names and data of a scene."""
    names = kind.names(rng, rng.choice(kind.sizes))
    columns = kind.columns(rng)
    return Scene(
        kind.name, names, columns, tuple(kind.draw_values(rng, len(names)) for _ in columns)
    )


def _letters(rng: Random, count: int) -> tuple[str, ...]:
    return LETTERS[:count]


def _small_letters(rng: Random, count: int) -> tuple[str, ...]:
    return tuple("abcd"[:count])


def _categories(rng: Random, count: int) -> tuple[str, ...]:
    words_fit = count <= 4
    return tuple(rng.sample(WORDS, count)) if words_fit and rng.random() < 0.5 else LETTERS[:count]


def _moments(rng: Random, count: int) -> tuple[str, ...]:
    return rng.choice((LETTERS, DAYS))[:count]


def _bins(rng: Random, count: int) -> tuple[str, ...]:
    width = rng.choice((2, 5))
    return tuple(f"{n * width}-{(n + 1) * width}" for n in range(count))


def _positions(rng: Random, count: int) -> tuple[str, ...]:
    while True:
        tens = sorted(rng.sample(range(1, 10), count))
        if all(right - left > 1 for left, right in zip(tens, tens[1:], strict=False)):
            return tuple(str(10 * ten) for ten in tens)


def _coloured_shapes(rng: Random, count: int) -> tuple[str, ...]:
    """Names like ``red circles`` that differ in colour, in an order that a caption can keep."""
    colours = sorted(rng.sample(COLOURS, count))
    return tuple(f"{colour} {rng.choice(SHAPES)}" for colour in colours)


def _two_colours(rng: Random) -> tuple[str, ...]:
    return tuple(rng.sample(COLOURS, 2))


def _headings(rng: Random) -> tuple[str, ...]:
    return tuple(rng.sample(("cost", "mass", "age", "size"), rng.choice((1, 2))))


def _closes(sides: tuple[int, ...]) -> bool:
    """Whether the sides make a triangle or a quadrilateral that is not too flat."""
    if len(sides) == 3:
        return 2 * max(sides) <= sum(sides) - 2
    low, high = diagonal_range(sides)
    return high - low >= 2


def diagonal_range(sides: tuple[int, ...]) -> tuple[int, int]:
    """Bounds of the diagonal between the first two and the last two sides of a quadrilateral."""
    a, b, c, d = sides
    return max(abs(a - b), abs(c - d)), min(a + b, c + d)


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("bar", "bar", "bars", "value", "values", _categories, (3, 4, 4, 5, 6)),
        Kind("hbar", "bar", "bars", "value", "values", _categories),
        Kind("grouped", "category", "categories", "{column} value", "{column} values", _letters,
             (3, 3, 4), columns=_two_colours),
        Kind("line", "point", "points", "value", "values", _moments, (4, 5, 5, 6)),
        Kind("scatter", "point", "points", "{column} value", "{column} values", _letters,
             (3, 4, 5), item="point {name}", columns=lambda rng: ("x", "y")),
        Kind("pie", "slice", "slices", "value", "values", _categories,
             fits=lambda values: min(values) >= 0.07 * sum(values)),
        Kind("histogram", "bin", "bins", "count", "counts", _bins, (3, 4, 4), item="bin {name}"),
        Kind("table", "row", "rows", "{column}", "{column} entries", _categories, high=19,
             columns=_headings),
        Kind("spectrum", "peak", "peaks", "height", "heights", _positions, (3, 3, 4), low=2,
             item="peak {name}"),
        Kind("polygon", "side", "sides", "length", "lengths", _small_letters, (3, 4), low=3,
             item="side {name}", fits=_closes),
        Kind("angles", "angle", "angles", "size", "sizes", _letters, (3,), low=2, high=12,
             item="angle {name}", fits=lambda values: sum(values) == 180, unit=10),
        Kind("counting", "kind of shape", "kinds of shapes", "number", "numbers",
             _coloured_shapes, (3,), high=6, fits=lambda values: sum(values) <= 14),
    )
}  # fmt: skip
"""By name; all equally frequent."""
