"""What pairs are about: data, a FACT question, its answer and what other strategies answer.

One family per kind of chart and manipulation of CHARTOM's Table 1. All data are made up. Both
charts of a pair show all of them: whoever reads axes, scales and angles finds the answer on either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from data_prep.synthetic.misleading_charts.topics import (
    COMPANIES,
    COUNTRIES,
    OUTBREAKS,
    RIVALS,
    TRADE_OFFS,
    TRENDS,
    WORD_PROBLEMS,
)

Answer = float | str | tuple[str, ...]
"""Of a numeric, a multiple-choice (the option's text) or a ranking question."""

SHAPE_3D = 0.5
"""Height of a tilted pie's ellipse by its width."""
WALL_3D = 0.32
"""Height of a tilted pie's wall by its radius."""
POP_RADIUS = 1.25
"""Radius of a popped-out slice by the others'."""
RECEDING = 0.45
"""Size at the far end of a wall in perspective by size at its near end."""


@dataclass(frozen=True)
class Scene:
    """The data that both charts of a pair show, the question, and what each strategy answers."""

    title: str
    question: str
    labels: tuple[str, ...]
    """Years, items or regions, in the order drawn."""
    values: Mapping[str, tuple[float, ...]]
    """What is measured to its values, one for each label."""
    answer: Answer
    misled: Answer
    """What a reader answers whom the manipulation deceives."""
    choices: tuple[str, ...] = ()
    unit: str = ""
    skimming: float | None = None
    """Numeric questions: what a reader answers who copies the value off the chart."""
    trick: Mapping[str, float] = field(default_factory=dict)
    """Numbers that only drawing needs, as the family defines them."""

    @property
    def question_type(self) -> str:
        """``number``, ``choice`` or ``ranking``."""
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
    make: Callable[[Random], Scene]


def _years(rng: Random, count: int) -> tuple[str, ...]:
    start = rng.randint(1990, 2018)
    return tuple(str(start + number) for number in range(count))


def _word_problem(
    rng: Random, years: tuple[str, ...], values: tuple[float, ...], seen: float, **trick: float
) -> Scene:
    """A proportion between the last and the first year.

    Args:
        rng: Source of the wording.
        years: Labels.
        values: One for each year.
        seen: Ratio of last to first year that a deceived reader sees.
        trick: For drawing.
    """
    title, question, unit = rng.choice(WORD_PROBLEMS)
    amount = rng.choice((2, 3, 4, 5))
    return Scene(
        title=title,
        question=question.format(a=years[0], b=years[-1], k=amount),
        labels=years,
        values={title: values},
        answer=amount * values[-1] / values[0],
        misled=amount * seen,
        unit=unit,
        skimming=values[-1],
        trick=trick,
    )


def _between(rng: Random, first: int, last: int, count: int) -> tuple[int, ...]:
    """``count`` whole numbers from ``first`` to ``last`` that never fall."""
    return (first, *sorted(rng.randint(first, last) for _ in range(count - 2)), last)


def _truncated(rng: Random, count: int) -> Scene:
    """``trick``: ``base``, where the manipulated axis starts; ``step`` between ticks."""
    step, base = rng.choice((5, 10, 20, 50)), rng.randint(10, 24)
    above = rng.randint(1, 3)
    heights = _between(rng, above, above + rng.randint(3, 6), count)
    values = tuple(float(step * (base + height)) for height in heights)
    return _word_problem(
        rng, _years(rng, count), values, heights[-1] / heights[0], base=step * base, step=step
    )


def _compressed(rng: Random, count: int) -> Scene:
    """All looks flat. ``trick``: ``top``, where the manipulated axis ends; ``step``."""
    step, first = rng.choice((5, 10, 20, 50)), rng.randint(4, 6)
    heights = _between(rng, first, first + rng.randint(2, 4), count)
    values = tuple(float(step * height) for height in heights)
    return _word_problem(rng, _years(rng, count), values, 1.0, top=60 * step, step=step)


def _pictorial(rng: Random) -> Scene:
    """Figures grow in both directions, so areas go with squares. ``trick``: ``step``."""
    step, first = rng.choice((5, 10, 20, 50)), rng.randint(3, 5)
    heights = _between(rng, first, first + rng.randint(2, 5), 3)
    values = tuple(float(step * height) for height in heights)
    return _word_problem(rng, _years(rng, 3), values, (heights[-1] / heights[0]) ** 2, step=step)


TREND = ("It has risen.", "It has fallen.", "It has stayed the same.")


def _inverted_axis(rng: Random) -> Scene:
    step, years = rng.choice((1, 5, 10)), _years(rng, 6)
    heights = sorted(rng.sample(range(2, 12), 6), reverse=rng.random() < 0.5)
    title = rng.choice(TRENDS)
    seen = (TREND[0], TREND[1]) if heights[-1] > heights[0] else (TREND[1], TREND[0])
    return Scene(
        title=title,
        question=f"What is the trend of {title.lower()} from {years[0]} to {years[-1]}?",
        labels=years,
        values={title: tuple(float(step * height) for height in heights)},
        answer=seen[0],
        misled=seen[1],
        choices=TREND,
        trick={"step": step},
    )


def _inconsistent_axis(rng: Random) -> Scene:
    """Years far apart and years close together get the same room on the manipulated chart."""
    gaps, growth = (5, 1), rng.choice(((2, 4), (2, 5), (1, 3), (2, 2), (3, 3)))
    if rng.random() < 0.5:
        gaps, growth = gaps[::-1], growth[::-1]
    year, value = rng.randint(1960, 1990), rng.randint(5, 15)
    years, values = [year], [float(value)]
    for gap, rise in zip(
        (gaps[0],) * 3 + (gaps[1],) * 3, (growth[0],) * 3 + (growth[1],) * 3, strict=True
    ):
        years.append(years[-1] + gap)
        values.append(values[-1] + gap * rise)
    title = rng.choice(TRENDS)
    choices = (
        f"From {years[0]} to {years[3]}.",
        f"From {years[3]} to {years[6]}.",
        "Equally fast in both periods.",
    )

    def faster(first: float, second: float) -> str:
        return choices[2] if first == second else choices[first < second]

    return Scene(
        title=title,
        question=f"When did {title.lower()} rise faster, in number per year?",
        labels=tuple(map(str, years)),
        values={title: tuple(values)},
        answer=faster(*growth),
        misled=faster(growth[0] * gaps[0], growth[1] * gaps[1]),
        choices=choices,
        trick={"step": 1},
    )


def _dual_axes(rng: Random) -> Scene:
    """``trick``: ``first_top`` and ``second_top``, ends of the two manipulated axes; ``step``."""
    things, (first, second) = rng.choice(RIVALS), rng.sample(COUNTRIES, 2)
    years, step = _years(rng, 5), rng.choice((2, 20))
    more = [step * rng.randint(13, 19) for _ in years]
    fewer = [step * rng.randint(7, 10) for _ in years]
    named = {first: tuple(map(float, more)), second: tuple(map(float, fewer))}
    if rng.random() < 0.5:  # either country may come first
        named = dict(reversed(named.items()))
    year = rng.choice(years)
    tops = {first: 40.0 * step, second: 11.0 * step}
    return Scene(
        title=f"Number of {things}",
        question=f"Which country had more {things} in {year}?",
        labels=years,
        values=named,
        answer=first,
        misled=second,
        choices=tuple(sorted(named)),
        trick=dict(zip(("first_top", "second_top"), (tops[name] for name in named), strict=True))
        | {"step": step},
    )


def _perspective_bars(rng: Random) -> Scene:
    """The near first bar towers above the far last one, which is as high or higher."""
    count = rng.choice((4, 5))
    years, last = _years(rng, count), rng.randint(7, 10)
    first = rng.choice((last, last - 1))
    middle = [rng.randint(2, 5) for _ in range(count - 2)]
    choices = (years[0], years[-1], f"{years[0]} and {years[-1]} were the same.")
    return Scene(
        title="Profit (millions)",
        question=f"In which year was {rng.choice(COMPANIES)} most profitable?",
        labels=years,
        values={"Profit (millions)": tuple(map(float, (first, *middle, last)))},
        answer=choices[2] if first == last else choices[1],
        misled=choices[0],
        choices=choices,
        trick={"step": 1},
    )


def _swapped_axes(rng: Random) -> Scene:
    """What is asked for lies across, where readers look for it upwards."""
    title, cause, effect, thing, most = rng.choice(TRADE_OFFS)
    names = tuple("ABCDE")
    causes = rng.sample(range(2, 19), 5)
    ranks = sorted(range(5), key=lambda number: causes[number])
    effects = [0.0] * 5
    for place, number in enumerate(ranks):
        effects[number] = 18.0 - 3 * place + rng.choice((0, 1))
    return Scene(
        title=title,
        question=f"Which {thing} has {most}?",
        labels=names,
        values={cause: tuple(map(float, causes)), effect: tuple(effects)},
        answer=names[ranks[0]],
        misled=names[ranks[-1]],
        choices=names,
    )


def _logarithmic(rng: Random) -> Scene:
    """Growth slows down in ratio and goes on in number. ``trick``: ``event``, a month from 1."""
    title, event = rng.choice(OUTBREAKS)
    values = [float(rng.choice((2, 3, 5)))]
    for factor in (3, 3, 2.5, 2, 1.6, 1.5, 1.4, 1.3):
        values.append(float(round(values[-1] * factor * rng.uniform(0.95, 1.05))))
    month = 4
    choices = (f"Before month {month}.", f"After month {month}.", "By the same number.")
    return Scene(
        title=title,
        question=f"In month {month}, {event}. When did the number of {title.lower()} grow more?",
        labels=tuple(str(number) for number in range(1, len(values) + 1)),
        values={title: tuple(values)},
        answer=choices[1],
        misled=choices[0],
        choices=choices,
        trick={"event": month},
    )


def _inverted_colours(rng: Random) -> Scene:
    """``trick``: ``layout``, a seed for the shapes of the regions."""
    names = tuple(f"{letter}{letter.lower()}" for letter in "ABCDEFGHKLMN")
    values = [10.0 * rng.randint(1, 9) for _ in names]
    more, less = rng.sample(range(len(names)), 2)
    values[more], values[less] = 10.0 * rng.randint(7, 9), 10.0 * rng.randint(1, 4)
    pair = tuple(sorted((names[more], names[less])))
    return Scene(
        title="Inhabitants by region (thousands)",
        question=f"Which region has more inhabitants, {pair[0]} or {pair[1]}?",
        labels=names,
        values={"Inhabitants (thousands)": tuple(values)},
        answer=names[more],
        misled=names[less],
        choices=pair,
        trick={"layout": rng.randrange(10**6)},
    )


def _shares(rng: Random) -> tuple[tuple[str, ...], list[int]]:
    """Five companies and their shares in percent, all different by two or more."""
    while True:
        cuts = sorted(rng.sample(range(6, 95), 4))
        shares = [b - a for a, b in zip((0, *cuts), (*cuts, 100), strict=True)]
        if min(shares) >= 8 and _are_apart(shares):
            return tuple(rng.sample(COMPANIES, 5)), shares


def _are_apart(sizes: Sequence[float]) -> bool:
    """Whether an eye can tell all sizes, in percent of a pie, from each other."""
    ordered = sorted(sizes)
    return all(b - a >= 2 for a, b in zip(ordered, ordered[1:], strict=False))


def _pie(rng: Random, seen: Callable[[Sequence[float], float], list[float]]) -> Scene:
    """A pie whose slices rank otherwise by ``seen``, their areas, than by their shares.

    ``trick``: ``start``, where the first slice begins (degrees, counter-clockwise).
    """
    while True:
        names, shares = _shares(rng)
        start = float(rng.randrange(0, 360, 5))
        areas = seen(shares, start)
        answer, misled = _ranked(names, shares), _ranked(names, areas)
        if answer != misled and _are_apart(areas):
            break
    return Scene(
        title="Market share",
        question="Rank the companies by market share, from the largest to the smallest.",
        labels=names,
        values={"Market share": tuple(map(float, shares))},
        answer=answer,
        misled=misled,
        trick={"start": start},
    )


def _ranked(names: tuple[str, ...], sizes: Sequence[float]) -> tuple[str, ...]:
    return tuple(sorted(names, key=lambda name: -sizes[names.index(name)]))


def tilted_areas(shares: Sequence[float], start: float) -> list[float]:
    """Visible area of every slice of a tilted pie, wall included, in percent of its upper face."""
    areas, angle = [], start
    for share in shares:
        turn = 3.6 * share
        width = _front_width(angle, angle + turn)
        areas.append(share + 100 * WALL_3D * width / (math.pi * SHAPE_3D))
        angle += turn
    return areas


def _front_width(start: float, end: float) -> float:
    """How much of the width of a unit circle an arc covers on its front, the lower half."""
    width = 0.0
    for turn in (-360, 0, 360):
        low, high = max(start + turn, 180.0), min(end + turn, 360.0)
        if low < high:
            width += math.cos(math.radians(high)) - math.cos(math.radians(low))
    return width


def popped_areas(shares: Sequence[float], start: float) -> list[float]:
    """Area of every slice, in percent of the pie, when the first is popped out."""
    return [POP_RADIUS**2 * shares[0], *shares[1:]]


FAMILIES: tuple[Family, ...] = (
    Family("line", "inconsistent x-axis", "G4_Q1", _inconsistent_axis),
    Family("line", "inverted y-axis", "G3_Q1", _inverted_axis),
    Family("line", "dual axes", "G9_Q1", _dual_axes),
    Family("line", "truncated y-axis", "G1_Q1", lambda rng: _truncated(rng, 5)),
    Family("line", "compressed y-axis", "G2_Q1", lambda rng: _compressed(rng, 5)),
    Family("bar", "3D effect", "G12_Q1", _perspective_bars),
    Family("bar", "truncated y-axis", "G7_Q1", lambda rng: _truncated(rng, rng.choice((2, 3)))),
    Family("bar", "compressed y-axis", "G8_Q1", lambda rng: _compressed(rng, rng.choice((2, 3)))),
    Family("bar", "pictorial bars", "G10_Q1", _pictorial),
    Family("scatter", "swapped axis", "G6_Q1", _swapped_axes),
    Family("scatter", "logarithmic y-axis", "G5_Q1", _logarithmic),
    Family("map", "inverted color scale", "G15_Q1", _inverted_colours),
    Family("pie", "3D effect", "G13_Q1", lambda rng: _pie(rng, tilted_areas)),
    Family("pie", "pop out", "G14_Q1", lambda rng: _pie(rng, popped_areas)),
)
"""In the order of Table 1: eleven manipulations, some on two kinds. G14 tilts its pie as well."""
