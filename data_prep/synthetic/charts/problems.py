"""What a question asks of a column of values: its right solution, and faulty ones.

An operation draws a ``Problem`` for a column. The problem can be solved for any values, those of
the picture or those a responder believes in; its slips use values as they are and go wrong after.
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
    """Items it works with."""
    calc: str
    """What is worked out from them; empty if nothing."""
    answers: tuple[str, ...]


@dataclass(frozen=True)
class Slip:
    """A faulty solution from right readings."""

    name: str
    solution: Solution
    shows_all: bool = False
    """Faulty only beside all values: otherwise it could as well be a value overlooked."""


@dataclass(frozen=True)
class Problem:
    """An operation with its arguments."""

    operation: str
    slots: Mapping[str, str]
    """For the wording of questions and steps; items by name."""
    solve: Callable[[View], Solution | None]
    """``None`` where the values leave the answer open."""
    slips: Callable[[View], Iterator[Slip]]


Operation = Callable[[Random, View], Problem | None]
"""Draws arguments that suit the values, if there are any."""


def ranked_names(view: View) -> list[str] | None:
    """Names from the largest value to the smallest; ``None`` with ties or fewer than three."""
    if len(view) < 3 or len(set(view.values())) < len(view):
        return None
    return sorted(view, key=lambda name: -view[name])


Choose = Callable[[View], "tuple[str, str] | None"]
"""Picks two items, or ``None`` where the values leave it open."""


def at_ranks(first: str, second: str) -> Choose:
    """Pick the items of two ranks."""

    def choose(view: View) -> tuple[str, str] | None:
        ranked = ranked_names(view)
        return (ranked[RANKS[first]], ranked[RANKS[second]]) if ranked else None

    return choose
