"""Families of chart pairs: data, a FACT question, its answer and what other strategies answer.

There is one family per kind of chart and manipulation of CHARTOM's Table 1. All data are made up.
Both charts of a pair show all data: a reader of axes, scales and angles can answer from either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from data_prep.made.words.wordings import words_of

FactAnswer = float | str | tuple[str, ...]
"""Answer of a numeric, a multiple-choice (the option's text) or a ranking question."""

SHAPE_3D = 0.5
"""Height of a tilted pie's ellipse by its width."""
WALL_3D = 0.32
"""Height of a tilted pie's wall by its radius."""
POP_RADIUS = 1.25
"""Radius of a popped-out slice by the others'."""
POP_DISTANCE = 0.14
"""Distance of its tip from the middle, by the others' radius."""
RECEDING = 0.45
"""Size at the far end of a wall in perspective by size at its near end."""
MOST_AT_FRONT = 40
"""Largest share, in percent, of a slice that stands out to the front: its sides do not show."""


@dataclass(frozen=True)
class MisleadingChart:
    """Data to be drawn honestly or misleadingly, a question, and the answers of strategies."""

    title: str
    question: str
    labels: tuple[str, ...]
    """Years, items or regions, in the order drawn."""
    values: Mapping[str, tuple[float, ...]]
    """Name of each quantity to its values, one for each label."""
    answer: FactAnswer
    misled: FactAnswer
    """Answer of a reader whom the manipulation misleads."""
    choices: tuple[str, ...] = ()
    unit: str = ""
    skimming: float | None = None
    """Numeric questions: answer of a reader who copies the value off the chart."""
    drawing_values: Mapping[str, float] = field(default_factory=dict)
    """Numbers that only the drawing needs; the function that makes the chart names them."""

    @property
    def question_type(self) -> str:
        """Name the type: ``number``, ``choice`` or ``ranking``."""
        if isinstance(self.answer, str):
            return "choice"
        return "ranking" if isinstance(self.answer, tuple) else "number"


@dataclass(frozen=True)
class Family:
    """One kind of chart with one manipulation."""

    kind: str
    manipulation: str
    like: str
    """The pair of CHARTOM's Table 1 with this kind and manipulation."""
    make: Callable[[Random], MisleadingChart]


def _topics(name: str) -> list[Any]:
    """Look up a list of the word file: titles, topics or word problems."""
    topics: list[Any] = words_of("misleading_charts")[name]
    return topics


def _years(rng: Random, count: int) -> tuple[str, ...]:
    start = rng.randint(1990, 2018)
    return tuple(str(start + number) for number in range(count))


def _proportion(rng: Random, way: str, count: int) -> MisleadingChart:
    """Make a chart of years and ask for a proportion between the last and the first one.

    It is ``truncated``: its manipulated axis starts above zero; or ``compressed``: it looks flat
    because that axis ends far above the data; or ``pictorial``: its figures grow in both
    directions, so that ratios of areas are squared.

    Drawing values: ``base`` and ``top`` of a manipulated axis; ``step`` between ticks.
    """
    step = rng.choice((5, 10, 20, 50))
    base = rng.randint(10, 24) if way == "truncated" else 0
    firsts, rises = {
        "truncated": ((1, 3), (3, 6)),
        "compressed": ((4, 6), (2, 4)),
        "pictorial": ((3, 5), (2, 5)),
    }[way]
    first = rng.randint(*firsts)
    last = first + rng.randint(*rises)
    heights = (first, *sorted(rng.randint(first, last) for _ in range(count - 2)), last)
    values = tuple(float(step * (base + height)) for height in heights)
    years, ratio = _years(rng, count), last / first
    apparent = {"truncated": ratio, "compressed": 1.0, "pictorial": ratio**2}[way]
    problem = rng.choice(_topics("word_problems"))
    amount = rng.choice((2, 3, 4, 5))
    return MisleadingChart(
        title=problem["title"],
        question=problem["question"].format(a=years[0], b=years[-1], k=amount),
        labels=years,
        values={problem["title"]: values},
        answer=amount * values[-1] / values[0],
        misled=amount * apparent,
        unit=problem["unit"],
        skimming=values[-1],
        drawing_values={"base": step * base, "top": 60 * step, "step": step},
    )


TREND = ("It has risen.", "It has fallen.", "It has stayed the same.")


def _trend(rng: Random) -> MisleadingChart:
    """Make a chart whose line seems to run the other way when one of its axes does.

    Drawing value: ``step`` between ticks.
    """
    step, years = rng.choice((1, 5, 10)), _years(rng, 6)
    heights = sorted(rng.sample(range(2, 12), 6), reverse=rng.random() < 0.5)
    title = rng.choice(_topics("trends"))
    answer, misled = (TREND[0], TREND[1]) if heights[-1] > heights[0] else (TREND[1], TREND[0])
    return MisleadingChart(
        title=title,
        question=f"What is the trend of {title.lower()} from {years[0]} to {years[-1]}?",
        labels=years,
        values={title: tuple(float(step * height) for height in heights)},
        answer=answer,
        misled=misled,
        choices=TREND,
        drawing_values={"step": step},
    )


def _dual_axes(rng: Random) -> MisleadingChart:
    """Make a chart of two lines; manipulated, each gets an axis of its own.

    Drawing values: ``first_top`` and ``second_top`` of these axes; ``step`` between ticks.
    """
    things, (first, second) = rng.choice(_topics("rivals")), rng.sample(_topics("countries"), 2)
    years, step = _years(rng, 5), rng.choice((2, 20))
    high = [step * rng.randint(13, 19) for _ in years]
    low = [step * rng.randint(7, 10) for _ in years]
    named = {first: tuple(map(float, high)), second: tuple(map(float, low))}
    if rng.random() < 0.5:  # either country may come first
        named = dict(reversed(named.items()))
    year = rng.choice(years)
    tops = {first: 40.0 * step, second: 11.0 * step}
    first_top, second_top = (tops[name] for name in named)
    return MisleadingChart(
        title=f"Number of {things}",
        question=f"Which country had more {things} in {year}?",
        labels=years,
        values=named,
        answer=first,
        misled=second,
        choices=tuple(sorted(named)),
        drawing_values={"first_top": first_top, "second_top": second_top, "step": step},
    )


def _perspective_bars(rng: Random) -> MisleadingChart:
    """Make a chart whose first bar, in perspective, looks higher than the last one, which is not.

    Drawing value: ``step`` between ticks.
    """
    count = rng.choice((4, 5))
    years, last = _years(rng, count), rng.randint(7, 10)
    first = rng.choice((last, last - 1))
    middle = [rng.randint(2, 5) for _ in range(count - 2)]
    choices = (years[0], years[-1], f"{years[0]} and {years[-1]} were the same.")
    return MisleadingChart(
        title="Profit (millions)",
        question=f"In which year was {rng.choice(_topics('companies'))} most profitable?",
        labels=years,
        values={"Profit (millions)": tuple(map(float, (first, *middle, last)))},
        answer=choices[2] if first == last else choices[1],
        misled=choices[0],
        choices=choices,
        drawing_values={"step": 1},
    )


def _swapped_ends(rng: Random) -> MisleadingChart:
    """Make a chart of two quantities; manipulated, the ends of the axis across are swapped."""
    title, cause, effect = rng.choice(_topics("trade_offs"))
    causes = sorted(rng.sample(range(2, 19), 5))
    effects = [18.0 - 3 * rank + rng.choice((0, 1)) for rank in range(5)]
    rises = rng.random() < 0.5
    if rises:
        effects.reverse()
    names = {cause: cause.partition(" (")[0].lower(), effect: effect.partition(" (")[0].lower()}
    choices = (f"The {names[effect]} grows.", f"The {names[effect]} shrinks.")
    return MisleadingChart(
        title=title,
        question=f"As the {names[cause]} of {title.lower()} grows, what happens to their "
        f"{names[effect]}?",
        labels=tuple("ABCDE"),
        values={cause: tuple(map(float, causes)), effect: tuple(effects)},
        answer=choices[0 if rises else 1],
        misled=choices[1 if rises else 0],
        choices=choices,
    )


def _logarithmic(rng: Random) -> MisleadingChart:
    """Make a chart whose growth slows down in ratio and not in number.

    Drawing value: ``event``, a month from 1.
    """
    title, event = rng.choice(_topics("outbreaks"))
    values = [float(rng.choice((2, 3, 5)))]
    for factor in (3, 3, 2.5, 2, 1.6, 1.5, 1.4, 1.3):
        values.append(float(round(values[-1] * factor * rng.uniform(0.95, 1.05))))
    month = 4
    choices = (f"Before month {month}.", f"After month {month}.", "By the same number.")
    return MisleadingChart(
        title=title,
        question=f"In month {month}, {event}. When did the number of {title.lower()} grow more?",
        labels=tuple(str(number) for number in range(1, len(values) + 1)),
        values={title: tuple(values)},
        answer=choices[1],
        misled=choices[0],
        choices=choices,
        drawing_values={"event": month},
    )


def _inverted_colours(rng: Random) -> MisleadingChart:
    """Make a map whose colour scale is inverted when manipulated.

    Drawing value: ``layout``, a seed for the shapes of the regions.
    """
    names = tuple(f"{letter}{letter.lower()}" for letter in "ABCDEFGHKLMN")
    values = [10.0 * rng.randint(1, 9) for _ in names]
    higher, lower = rng.sample(range(len(names)), 2)
    values[higher], values[lower] = 10.0 * rng.randint(7, 9), 10.0 * rng.randint(1, 4)
    pair = tuple(sorted((names[higher], names[lower])))
    return MisleadingChart(
        title="Inhabitants by region (thousands)",
        question=f"Which region has more inhabitants, {pair[0]} or {pair[1]}?",
        labels=names,
        values={"Inhabitants (thousands)": tuple(values)},
        answer=names[higher],
        misled=names[lower],
        choices=pair,
        drawing_values={"layout": rng.randrange(10**6)},
    )


def tilted_areas(shares: Sequence[float], start: float) -> list[float]:
    """Compute the visible area of every slice of a tilted pie, in percent of its upper face."""
    areas = []
    for share in shares:
        end, width = start + 3.6 * share, 0.0
        for turn in (-360, 0, 360):  # what the arc covers on the front, the lower half of a circle
            low, high = max(start + turn, 180.0), min(end + turn, 360.0)
            if low < high:
                width += math.cos(math.radians(high)) - math.cos(math.radians(low))
        areas.append(share + 100 * WALL_3D * width / (math.pi * SHAPE_3D))
        start = end
    return areas


def popped_areas(shares: Sequence[float], start: float) -> list[float]:
    """Compute the areas of a tilted pie whose first slice, at the front, is popped out."""
    first, *others = tilted_areas(shares, start)
    wall = first - shares[0]
    return [POP_RADIUS**2 * shares[0] + POP_RADIUS * wall, *others]


def _are_apart(sizes: Sequence[float]) -> bool:
    """Tell whether an eye can tell all sizes, in percent of a pie, from each other."""
    ordered = sorted(sizes)
    return all(b - a >= 2 for a, b in zip(ordered, ordered[1:], strict=False))


def _pie(
    rng: Random,
    visible: Callable[[Sequence[float], float], list[float]],
    *,
    first_at_front: bool = False,
) -> MisleadingChart:
    """Make a pie whose slices rank otherwise by their ``visible`` areas than by their shares.

    Drawing value: ``start`` of the first slice, degrees counter-clockwise.
    """

    def ranked(sizes: Sequence[float]) -> tuple[str, ...]:
        return tuple(sorted(names, key=lambda name: -sizes[names.index(name)]))

    while True:
        cuts = sorted(rng.sample(range(6, 95), 4))
        shares = [b - a for a, b in zip((0, *cuts), (*cuts, 100), strict=True)]
        if min(shares) < 8 or not _are_apart(shares):
            continue
        names = tuple(rng.sample(_topics("companies"), 5))
        start = float(rng.randrange(0, 360, 5))
        if first_at_front:
            if shares[0] > MOST_AT_FRONT:
                continue
            start = 270 - 1.8 * shares[0] + rng.randrange(-15, 16, 5)
        areas = visible(shares, start)
        if ranked(shares) != ranked(areas) and _are_apart(areas):
            break
    return MisleadingChart(
        title="Market share",
        question="Rank the companies by market share, from the largest to the smallest.",
        labels=names,
        values={"Market share": tuple(map(float, shares))},
        answer=ranked(shares),
        misled=ranked(areas),
        drawing_values={"start": start},
    )


FAMILIES = tuple(
    Family(*fields)
    for fields in (
        ("line", "inconsistent x-axis", "G4_Q1", _trend),
        ("line", "inverted y-axis", "G3_Q1", _trend),
        ("line", "dual axes", "G9_Q1", _dual_axes),
        ("line", "truncated y-axis", "G1_Q1", lambda rng: _proportion(rng, "truncated", 5)),
        ("line", "compressed y-axis", "G2_Q1", lambda rng: _proportion(rng, "compressed", 5)),
        ("bar", "3D effect", "G12_Q1", _perspective_bars),
        ("bar", "truncated y-axis", "G7_Q1",
         lambda rng: _proportion(rng, "truncated", rng.choice((2, 3)))),
        ("bar", "compressed y-axis", "G8_Q1",
         lambda rng: _proportion(rng, "compressed", rng.choice((2, 3)))),
        ("bar", "pictorial bars", "G10_Q1", lambda rng: _proportion(rng, "pictorial", 3)),
        ("scatter", "swapped axis", "G6_Q1", _swapped_ends),
        ("scatter", "logarithmic y-axis", "G5_Q1", _logarithmic),
        ("map", "inverted color scale", "G15_Q1", _inverted_colours),
        ("pie", "3D effect", "G13_Q1", lambda rng: _pie(rng, tilted_areas)),
        ("pie", "3D effect + pop out", "G14_Q1",
         lambda rng: _pie(rng, popped_areas, first_at_front=True)),
    )
)  # fmt: skip
"""In the order of Table 1: eleven manipulations, some on two kinds, and one together with another.
Questions are of the form that the paper's appendix prints. It does not print the charts: that the
inconsistent axis has its years from last to first, and the swapped one its ends exchanged, are the
ways in which these questions mislead."""


def generate_chart_pairs(num_pairs: int, seed: int) -> Iterator[tuple[Family, MisleadingChart]]:
    """Stream charts to be drawn honestly and misleadingly, all families in turn."""
    for number in range(num_pairs):
        family = FAMILIES[number % len(FAMILIES)]
        yield family, family.make(Random(f"chartom {seed} {number}"))
