"""Operations on a column of values: what a question asks, its right solution, and faulty ones.

An operation draws a ``Problem`` for a column. The problem can be solved for any values, those of
the picture or those that a responder believes in. Its slips read all values rightly and then go
wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from data_prep.made.charts.scenes import View

RANKS = {"largest": 0, "second largest": 1, "smallest": -1, "second smallest": -2}
Items = tuple[str, ...]
"""Names of items."""


@dataclass(frozen=True)
class Solution:
    """One line of thought, without its wording."""

    items: Items
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
    choose: Callable[[View], Items | None]
    """Picks the right items, or returns ``None`` where the values leave the answer open."""
    conclude: Callable[[Items, View], Solution]
    """Draws the conclusion from items, right ones or not."""
    faults: Callable[[Items, View], Iterator[Slip]]
    """Yields the slips beside the right items."""

    def solve(self, view: View) -> Solution | None:
        """Find the right solution; ``None`` where the values leave the answer open."""
        items = self.choose(view)
        return self.conclude(items, view) if items else None

    def slips(self, view: View) -> Iterator[Slip]:
        """Yield the slips."""
        if items := self.choose(view):
            yield from self.faults(items, view)


Operation = Callable[[Random, View], Problem | None]
"""Draws arguments that suit the values; ``None`` if there are none."""


def _named(*names: str) -> Callable[[View], Items | None]:
    """Pick named items."""
    return lambda view: names if {*names} <= set(view) else None


def _at_ranks(*ranks: str) -> Callable[[View], Items | None]:
    """Pick the items of ranks; nothing with ties or fewer than three items."""

    def choose(view: View) -> Items | None:
        if len(view) < 3 or len(set(view.values())) < len(view):
            return None
        ranked = sorted(view, key=lambda name: -view[name])
        return tuple(ranked[RANKS[rank]] for rank in ranks)

    return choose


def _value(items: Items, view: View) -> Solution:
    return Solution(items, "", (str(view[items[0]]),))


def _names(items: Items, view: View) -> Solution:
    return Solution(items, "", items)


def _sum(items: Items, view: View, off: int = 0) -> Solution:
    result = sum(view[name] for name in items) + off
    return Solution(items, f"{' + '.join(str(view[n]) for n in items)} = {result}", (str(result),))


def _difference(items: Items, view: View, off: int = 0) -> Solution:
    first, second = (view[name] for name in items)
    result = first - second + off
    return Solution(items, f"{first} - {second} = {result}", (str(result),))


def _others(items: Items, view: View) -> list[str]:
    return [name for name in view if name not in items]


def _near(items: Items, view: View) -> Sequence[Items]:
    """List the pairs with one item exchanged."""
    others = _others(items, view)
    return [(name, items[1]) for name in others] + [(items[0], name) for name in others]


def read_value(rng: Random, view: View) -> Problem:
    """Ask for the value of a named item."""
    a = rng.choice(list(view))

    def faults(items: Items, view: View) -> Iterator[Slip]:
        double = 2 * view[a]
        yield Slip("wrong operation", Solution((a,), f"2 x {view[a]} = {double}", (str(double),)))
        for b in _others(items, view):
            yield Slip("wrong item", _value((b,), view))

    return Problem("read_value", {"a": a}, _named(a), _value, faults)


def _by_rank(
    operation: str, conclude: Callable[[Items, View], Solution], rng: Random, view: View
) -> Problem:
    """Ask for the value or the name of the item of a rank."""
    rank = rng.choice(list(RANKS))

    def faults(items: Items, view: View) -> Iterator[Slip]:
        for name in _others(items, view):
            yield Slip("wrong choice", conclude((name,), view))

    return Problem(operation, {"rank": rank}, _at_ranks(rank), conclude, faults)


ranked_value = partial(_by_rank, "ranked_value", _value)
ranked_name = partial(_by_rank, "ranked_name", _names)


def _of_two(
    operation: str,
    slots: Mapping[str, str],
    choose: Callable[[View], Items | None],
    conclude: Callable[..., Solution],
    rivals: Callable[[Items, View], Sequence[Items]] = _near,
) -> Problem:
    """Ask for the sum or the difference of two items' values.

    ``conclude`` is ``_sum`` or ``_difference``; ``rivals`` lists the pairs that could be taken in
    place of a pair.
    """
    other_way, is_sum = (_difference if conclude is _sum else _sum), conclude is _sum

    def faults(items: Items, view: View) -> Iterator[Slip]:
        if view[items[0]] > view[items[1]]:
            yield Slip("wrong operation", other_way(items, view))
        for off in (-2, -1, 1, 2):
            if int(conclude(items, view, off).answers[0]) > 0:
                yield Slip("wrong arithmetic", conclude(items, view, off))
        for other in rivals(items, view):
            if is_sum or view[other[0]] > view[other[1]]:
                yield Slip("wrong choice", conclude(other, view))

    return Problem(operation, slots, choose, conclude, faults)


def sum_named(rng: Random, view: View) -> Problem:
    """Ask for the sum of two named items."""
    a, b = rng.sample(list(view), 2)
    return _of_two("sum_named", {"a": a, "b": b}, _named(a, b), _sum)


def gap_named(rng: Random, view: View) -> Problem:
    """Ask for the difference of two named items, the larger first."""
    a, b = rng.sample(list(view), 2)

    def choose(view: View) -> Items | None:
        if not {a, b} <= set(view) or view[a] == view[b]:
            return None
        return (a, b) if view[a] > view[b] else (b, a)

    return _of_two("gap_named", {"a": a, "b": b}, choose, _difference)


def sum_ends(rng: Random, view: View) -> Problem:
    """Ask for the sum of the two largest or the two smallest values."""
    end = rng.choice(("largest", "smallest"))
    return _of_two("sum_ends", {"end": end}, _at_ranks(end, f"second {end}"), _sum)


def spread(rng: Random, view: View) -> Problem:
    """Ask how far the largest value is from the smallest."""
    return _of_two("spread", {}, _at_ranks("largest", "smallest"), _difference)


def lead(rng: Random, view: View) -> Problem:
    """Ask how far the largest value is ahead of the second largest."""
    return _of_two("lead", {}, _at_ranks("largest", "second largest"), _difference)


def biggest_rise(rng: Random, view: View) -> Problem | None:
    """Ask for the largest step up from one item to the next."""

    def steps(view: View) -> list[tuple[str, str]]:
        names = list(view)
        return list(zip(names[1:], names, strict=False))

    def choose(view: View) -> Items | None:
        rises = sorted(((view[y] - view[x], y, x) for y, x in steps(view)), reverse=True)
        if len(rises) < 2 or rises[0][0] <= max(0, rises[1][0]):
            return None
        return rises[0][1:]

    def rivals(items: Items, view: View) -> Sequence[Items]:
        return [step for step in steps(view) if step != items]

    if choose(view) is None:
        return None
    return _of_two("biggest_rise", {}, choose, _difference, rivals)


def trend(rng: Random, view: View) -> Problem:
    """Ask whether the values rise or fall from one item to a later one."""
    names = list(view)
    first, second = sorted(rng.sample(range(len(names)), 2))
    a, b = names[first], names[second]

    def choose(view: View) -> Items | None:
        return (a, b) if {a, b} <= set(view) and view[a] != view[b] else None

    def conclude(items: Items, view: View, *, turned: bool = False) -> Solution:
        rises = view[b] > view[a]
        said = "it rises" if rises != turned else "it falls"
        return Solution(
            items, f"{view[b]} is {'more' if rises else 'less'} than {view[a]}", (said,)
        )

    def faults(items: Items, view: View) -> Iterator[Slip]:
        yield Slip("wrong direction", conclude(items, view, turned=True))

    return Problem("trend", {"a": a, "b": b}, choose, conclude, faults)


def exterior(rng: Random, view: View) -> Problem:
    """Ask for the exterior angle beside a named angle, degrees."""
    a = rng.choice(list(view))

    def conclude(items: Items, view: View, whole: int = 180, off: int = 0) -> Solution:
        result = whole - view[a] + off
        return Solution(items, f"{whole} - {view[a]} = {result}", (str(result),))

    def faults(items: Items, view: View) -> Iterator[Slip]:
        yield Slip("wrong operation", conclude(items, view, 360))
        for off in (-10, 10):
            yield Slip("wrong arithmetic", conclude(items, view, off=off))

    return Problem("exterior", {"a": a}, _named(a), conclude, faults)


def total(rng: Random, view: View) -> Problem:
    """Ask for the sum of all values."""

    def faults(items: Items, view: View) -> Iterator[Slip]:
        for off in (-2, -1, 1, 2, 10):
            yield Slip("wrong arithmetic", _sum(items, view, off))
        for left_out in items:
            remaining = tuple(name for name in items if name != left_out)
            yield Slip("left out", _sum(remaining, view), shows_all=True)

    return Problem("total", {}, tuple, _sum, faults)


def largest_two(rng: Random, view: View) -> Problem:
    """Ask for the names of the two largest or the two smallest items."""
    end = rng.choice(("largest", "smallest"))

    def faults(items: Items, view: View) -> Iterator[Slip]:
        for name in items:
            yield Slip("left out", _names((name,), view), shows_all=True)
        for other in _others(items, view):
            for name in items:
                yield Slip("wrong choice", _names((name, other), view))

    return Problem("largest_two", {"end": end}, _at_ranks(end, f"second {end}"), _names, faults)


def _matching(operation: str, rng: Random, view: View) -> Problem | None:
    """Ask for the names of all items whose values meet a condition, or for their number."""
    ordered = sorted(view.values())
    cut = rng.randrange(1, len(ordered))
    above, below = ordered[cut - 1], ordered[cut]
    conditions: dict[str, Callable[[int], bool]] = {
        f"above {above}": lambda value: value > above,
        f"below {below}": lambda value: value < below,
        "even": lambda value: value % 2 == 0,
        "odd": lambda value: value % 2 == 1,
    }
    text, holds = rng.choice(list(conditions.items()))

    def choose(view: View) -> Items:
        return tuple(name for name in view if holds(view[name]))

    def conclude(items: Items, view: View, off: int = 0) -> Solution:
        if operation == "matching_names":
            return _names(items, view)
        count = len(items) + off
        return Solution(items, f"that makes {count}", (str(count),))

    def faults(items: Items, view: View) -> Iterator[Slip]:
        others = tuple(_others(items, view))
        if others:
            yield Slip("opposite condition", conclude(others, view))
        if operation == "matching_count":
            for off in (-1, 1):
                if len(items) + off > 0:
                    yield Slip("wrong count", conclude(items, view, off))
        for name in items if len(items) > 1 else ():
            remaining = tuple(other for other in items if other != name)
            yield Slip("left out", conclude(remaining, view), shows_all=True)
        for name in others:
            extended = tuple(other for other in view if other in (*items, name))
            yield Slip("one too many", conclude(extended, view))

    if len({holds(value) for value in view.values()}) < 2:
        return None
    return Problem(operation, {"condition": text}, choose, conclude, faults)


matching_names = partial(_matching, "matching_names")
matching_count = partial(_matching, "matching_count")


GENERAL: dict[Operation, int] = {
    read_value: 8, ranked_value: 6, ranked_name: 7, sum_named: 5, gap_named: 5, sum_ends: 5,
    spread: 5, lead: 4, largest_two: 8, matching_names: 14, matching_count: 6,
}  # fmt: skip
"""Operations on any column, and how often each is drawn."""
TOTALLED = ("bar", "hbar", "grouped", "pie", "histogram", "table", "polygon", "counting")
TWIN_OPERATIONS: tuple[Operation, ...] = (
    ranked_value, ranked_name, sum_ends, spread, lead, largest_two,
)  # fmt: skip
"""Operations whose selection can be wrong in one picture and right in another."""


def operations_for(kind: str) -> dict[Operation, int]:
    """List the operations on a kind of scene, with their weights."""
    special: dict[Operation, int] = {total: 5} if kind in TOTALLED else {}
    if kind == "line":
        special = {trend: 6, biggest_rise: 6}
    if kind == "angles":
        special[exterior] = 6
    return GENERAL | special


def twin_operations_for(kind: str) -> tuple[Operation, ...]:
    """List the operations that twins of a kind of scene may ask for."""
    return (*TWIN_OPERATIONS, biggest_rise) if kind == "line" else TWIN_OPERATIONS
