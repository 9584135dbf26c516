"""Draw pairs of an honest and a misleading chart about the same data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from data_prep.synthetic.misleading_charts.families import FAMILIES, Family, MisleadingChart


@dataclass(frozen=True)
class ChartPair:
    """A chart of a family, to be drawn honestly and misleadingly."""

    name: str
    family: Family
    chart: MisleadingChart


def generate_chart_pairs(num_pairs: int, seed: int) -> Iterator[ChartPair]:
    """Stream pairs, all families in turn.

    Args:
        num_pairs: How many pairs to draw.
        seed: Any integer; a longer run starts with the shorter one.
    """
    for number in range(num_pairs):
        family = FAMILIES[number % len(FAMILIES)]
        rng = Random(f"chartom {seed} {number}")
        yield ChartPair(f"P{number + 1:04d}", family, family.make(rng))
