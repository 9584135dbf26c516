"""Problems about a column of values: the right solution of each, and faulty ones.

An operation draws a ``Problem`` for a column. The problem can be solved for any values, those of
the picture or those that a responder believes in. Its slips read all values rightly and then go
wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random

from data_prep.synthetic.charts.scenes import View

RANKS = {"largest": 0, "second largest": 1, "smallest": -1, "second smallest": -2}


@dataclass(frozen=True)
class Solution:
    """One line of thought, without its wording."""

    items: tuple[str, ...]
    """Items that it works with."""
    calc: str
    """Calculation with their values; empty if there is none."""
    answers: tuple[str, ...]


@dataclass(frozen=True)
class Slip:
    """A faulty solution from right readings."""

    name: str
    solution: Solution
    shows_all: bool = False
    """Faulty only beside all values; otherwise a value could as well have been overlooked."""


@dataclass(frozen=True)
class Problem:
    """An operation with its arguments: what a question asks."""

    operation: str
    slots: Mapping[str, str]
    """Arguments for the wording of questions and steps; items by name."""
    solve: Callable[[View], Solution | None]
    """Returns ``None`` where the values leave the answer open."""
    slips: Callable[[View], Iterator[Slip]]


Operation = Callable[[Random, View], Problem | None]
"""Draws arguments that suit the values; ``None`` if there are none."""


def ranked_names(view: View) -> list[str] | None:
    """Sort names from the largest value to the smallest; ``None`` with ties or fewer than three."""
    if len(view) < 3 or len(set(view.values())) < len(view):
        return None
    return sorted(view, key=lambda name: -view[name])


Choose = Callable[[View], "tuple[str, str] | None"]
"""Picks two items, or ``None`` where the values leave it open."""


def at_ranks(first: str, second: str) -> Choose:
    """Return a function that picks the items of two ranks."""

    def choose(view: View) -> tuple[str, str] | None:
        ranked = ranked_names(view)
        return (ranked[RANKS[first]], ranked[RANKS[second]]) if ranked else None

    return choose
