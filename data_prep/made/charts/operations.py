"""Problems about a column of values: the right solution of each, and faulty ones.

An operation draws a ``Problem`` for a column. The problem can be solved for any values, those of
the picture or those that a responder believes in. Its slips read all values rightly and then go
wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random

from data_prep.made.charts.scenes import View

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


def total(rng: Random, view: View) -> Problem:
    """Ask for the sum of all values."""

    def solve(view: View) -> Solution:
        return _total_solution(tuple(view), view, sum(view.values()))

    def slips(view: View) -> Iterator[Slip]:
        right = sum(view.values())
        for off in (-2, -1, 1, 2, 10):
            yield Slip("wrong arithmetic", _total_solution(tuple(view), view, right + off))
        for left_out in view:
            remaining = tuple(name for name in view if name != left_out)
            part = right - view[left_out]
            yield Slip("left out", _total_solution(remaining, view, part), shows_all=True)

    return Problem("total", {}, solve, slips)


def _total_solution(items: tuple[str, ...], view: View, result: int) -> Solution:
    terms = " + ".join(str(view[name]) for name in items)
    return Solution(items, f"{terms} = {result}", (str(result),))


def largest_two(rng: Random, view: View) -> Problem:
    """Ask for the names of the two largest or the two smallest items."""
    end = rng.choice(("largest", "smallest"))
    choose = at_ranks(end, f"second {end}")

    def solve(view: View) -> Solution | None:
        pair = choose(view)
        return Solution(pair, "", pair) if pair else None

    def slips(view: View) -> Iterator[Slip]:
        pair = choose(view)
        if not pair:
            return
        for name in pair:
            yield Slip("left out", Solution((name,), "", (name,)), shows_all=True)
        for other in view:
            if other not in pair:
                for name in pair:
                    yield Slip("wrong choice", Solution((name, other), "", (name, other)))

    return Problem("largest_two", {"end": end}, solve, slips)


Condition = Callable[[int], bool]


def _draw_condition(rng: Random, view: View) -> tuple[str, Condition]:
    ordered = sorted(view.values())
    cut = rng.randrange(1, len(ordered))
    above, below = ordered[cut - 1], ordered[cut]
    return rng.choice(
        (
            (f"above {above}", lambda value: value > above),
            (f"below {below}", lambda value: value < below),
            ("even", lambda value: value % 2 == 0),
            ("odd", lambda value: value % 2 == 1),
        )
    )


def matching_names(rng: Random, view: View) -> Problem | None:
    """Ask for the names of all items whose values meet a condition."""
    return _matching(rng, view, "matching_names")


def matching_count(rng: Random, view: View) -> Problem | None:
    """Ask how many items meet a condition."""
    return _matching(rng, view, "matching_count")


def _matching(rng: Random, view: View, operation: str) -> Problem | None:
    text, holds = _draw_condition(rng, view)

    def conclude(items: tuple[str, ...], off: int = 0) -> Solution:
        if operation == "matching_names":
            return Solution(items, "", items)
        count = len(items) + off
        return Solution(items, f"that makes {count}", (str(count),))

    def solve(view: View) -> Solution | None:
        items = tuple(name for name in view if holds(view[name]))
        return conclude(items) if items else None

    def slips(view: View) -> Iterator[Slip]:
        right = tuple(name for name in view if holds(view[name]))
        others = tuple(name for name in view if name not in right)
        if others:
            yield Slip("opposite condition", conclude(others))
        if operation == "matching_count":
            for off in (-1, 1):
                if len(right) + off > 0:
                    yield Slip("wrong count", conclude(right, off))
        for name in right:
            remaining = tuple(other for other in right if other != name)
            if remaining:
                yield Slip("left out", conclude(remaining), shows_all=True)
        for name in others:
            extended = tuple(other for other in view if other in (*right, name))
            yield Slip("one too many", conclude(extended))

    if len({holds(value) for value in view.values()}) < 2:
        return None
    return Problem(operation, {"condition": text}, solve, slips)


def read_value(rng: Random, view: View) -> Problem:
    """Ask for the value of a named item."""
    a = rng.choice(list(view))

    def solve(view: View) -> Solution | None:
        return Solution((a,), "", (str(view[a]),)) if a in view else None

    def slips(view: View) -> Iterator[Slip]:
        yield Slip(
            "wrong operation", Solution((a,), f"2 x {view[a]} = {2 * view[a]}", (str(2 * view[a]),))
        )
        for b in view:
            if b != a:
                yield Slip("wrong item", Solution((b,), "", (str(view[b]),)))

    return Problem("read_value", {"a": a}, solve, slips)


def ranked_value(rng: Random, view: View) -> Problem:
    """Ask for the value of the item of a rank."""
    return _by_rank(rng, "ranked_value", lambda name, view: str(view[name]))


def ranked_name(rng: Random, view: View) -> Problem:
    """Ask for the name of the item of a rank."""
    return _by_rank(rng, "ranked_name", lambda name, view: name)


def _by_rank(rng: Random, operation: str, answer: Callable[[str, View], str]) -> Problem:
    rank = rng.choice(list(RANKS))

    def solve(view: View) -> Solution | None:
        ranked = ranked_names(view)
        return solution_for(ranked[RANKS[rank]], view) if ranked else None

    def slips(view: View) -> Iterator[Slip]:
        right = solve(view)
        for name in view:
            if right and (name,) != right.items:
                yield Slip("wrong choice", solution_for(name, view))

    def solution_for(name: str, view: View) -> Solution:
        return Solution((name,), "", (answer(name, view),))

    return Problem(operation, {"rank": rank}, solve, slips)


Rivals = Callable[[tuple[str, str], View], list[tuple[str, str]]]
"""Lists the pairs that could be taken in place of a pair."""


def _near(pair: tuple[str, str], view: View) -> list[tuple[str, str]]:
    """Return the pairs with one item exchanged."""
    others = [name for name in view if name not in pair]
    return [(name, pair[1]) for name in others] + [(pair[0], name) for name in others]


def _of_two(
    operation: str, slots: Mapping[str, str], choose: Choose, sign: int, rivals: Rivals = _near
) -> Problem:
    """Ask for the sum (``sign`` 1) or difference (-1) of two items' values."""

    def solve(view: View) -> Solution | None:
        pair = choose(view)
        return _pair_solution(pair, view, sign) if pair else None

    def slips(view: View) -> Iterator[Slip]:
        pair = choose(view)
        if not pair:
            return
        right = _pair_solution(pair, view, sign)
        if view[pair[0]] > view[pair[1]]:
            yield Slip("wrong operation", _pair_solution(pair, view, -sign))
        for result in (int(right.answers[0]) + off for off in (-2, -1, 1, 2)):
            if result > 0:
                head = right.calc.rpartition("= ")[0]
                wrong = replace(right, calc=f"{head}= {result}", answers=(str(result),))
                yield Slip("wrong arithmetic", wrong)
        for other in rivals(pair, view):
            if sign > 0 or view[other[0]] > view[other[1]]:
                yield Slip("wrong choice", _pair_solution(other, view, sign))

    return Problem(operation, slots, solve, slips)


def _pair_solution(pair: tuple[str, str], view: View, sign: int) -> Solution:
    first, second = view[pair[0]], view[pair[1]]
    result, mark = (first + second, "+") if sign > 0 else (first - second, "-")
    return Solution(pair, f"{first} {mark} {second} = {result}", (str(result),))


def sum_named(rng: Random, view: View) -> Problem:
    """Ask for the sum of two named items."""
    a, b = rng.sample(list(view), 2)
    return _of_two("sum_named", {"a": a, "b": b}, _named(a, b), 1)


def gap_named(rng: Random, view: View) -> Problem:
    """Ask for the difference of two named items, the larger first."""
    a, b = rng.sample(list(view), 2)

    def choose(view: View) -> tuple[str, str] | None:
        if not {a, b} <= set(view) or view[a] == view[b]:
            return None
        return (a, b) if view[a] > view[b] else (b, a)

    return _of_two("gap_named", {"a": a, "b": b}, choose, -1)


def _named(a: str, b: str) -> Choose:
    return lambda view: (a, b) if {a, b} <= set(view) else None


def sum_ends(rng: Random, view: View) -> Problem:
    """Ask for the sum of the two largest or the two smallest values."""
    end = rng.choice(("largest", "smallest"))
    return _of_two("sum_ends", {"end": end}, at_ranks(end, f"second {end}"), 1)


def spread(rng: Random, view: View) -> Problem:
    """Ask how far the largest value is from the smallest."""
    return _of_two("spread", {}, at_ranks("largest", "smallest"), -1)


def lead(rng: Random, view: View) -> Problem:
    """Ask how far the largest value is ahead of the second largest."""
    return _of_two("lead", {}, at_ranks("largest", "second largest"), -1)


def biggest_rise(rng: Random, view: View) -> Problem | None:
    """Ask for the largest step up from one item to the next."""

    def choose(view: View) -> tuple[str, str] | None:
        rises = sorted(((view[y] - view[x], y, x) for y, x in _steps(view)), reverse=True)
        if len(rises) < 2 or rises[0][0] <= max(0, rises[1][0]):
            return None
        return rises[0][1], rises[0][2]

    def rivals(pair: tuple[str, str], view: View) -> list[tuple[str, str]]:
        return [step for step in _steps(view) if step != pair]

    return _of_two("biggest_rise", {}, choose, -1, rivals) if choose(view) else None


def _steps(view: View) -> list[tuple[str, str]]:
    """Return all pairs of neighbours, the later item first."""
    names = list(view)
    return list(zip(names[1:], names, strict=False))


def trend(rng: Random, view: View) -> Problem:
    """Ask whether the values rise or fall from one item to a later one."""
    names = list(view)
    first, second = sorted(rng.sample(range(len(names)), 2))
    a, b = names[first], names[second]

    def solve(view: View) -> Solution | None:
        if not {a, b} <= set(view) or view[a] == view[b]:
            return None
        return _trend_solution(view[b] > view[a], a, b, view)

    def slips(view: View) -> Iterator[Slip]:
        if solve(view):
            yield Slip("wrong direction", _trend_solution(view[b] < view[a], a, b, view))

    return Problem("trend", {"a": a, "b": b}, solve, slips)


def _trend_solution(rises: bool, a: str, b: str, view: View) -> Solution:
    word = "more" if view[b] > view[a] else "less"
    return Solution(
        (a, b), f"{view[b]} is {word} than {view[a]}", ("it rises" if rises else "it falls",)
    )


def exterior(rng: Random, view: View) -> Problem:
    """Ask for the exterior angle beside a named angle, degrees."""
    a = rng.choice(list(view))

    def solve(view: View) -> Solution | None:
        return difference(180, view[a]) if a in view else None

    def slips(view: View) -> Iterator[Slip]:
        yield Slip("wrong operation", difference(360, view[a]))
        for off in (-10, 10):
            right = difference(180, view[a])
            result = int(right.answers[0]) + off
            wrong = Solution((a,), f"180 - {view[a]} = {result}", (str(result),))
            yield Slip("wrong arithmetic", wrong)

    def difference(whole: int, angle: int) -> Solution:
        return Solution((a,), f"{whole} - {angle} = {whole - angle}", (str(whole - angle),))

    return Problem("exterior", {"a": a}, solve, slips)


GENERAL: dict[Operation, int] = {
    read_value: 8,
    ranked_value: 6,
    ranked_name: 7,
    sum_named: 5,
    gap_named: 5,
    sum_ends: 5,
    spread: 5,
    lead: 4,
    largest_two: 8,
    matching_names: 14,
    matching_count: 6,
}
"""Operations on any column, and how often each is drawn."""
TOTALLED = ("bar", "hbar", "grouped", "pie", "histogram", "table", "polygon", "counting")
TWIN_OPERATIONS: tuple[Operation, ...] = (
    ranked_value,
    ranked_name,
    sum_ends,
    spread,
    lead,
    largest_two,
)
"""Operations whose selection can be wrong in one picture and right in another."""


def operations_for(kind: str) -> dict[Operation, int]:
    """Return the operations on a kind of scene, with their weights."""
    special: dict[Operation, int] = {}
    if kind in TOTALLED:
        special[total] = 5
    if kind == "line":
        special = {trend: 6, biggest_rise: 6}
    if kind == "angles":
        special[exterior] = 6
    return GENERAL | special


def twin_operations_for(kind: str) -> tuple[Operation, ...]:
    """Return the operations that twins of a kind of scene may ask for."""
    return (*TWIN_OPERATIONS, biggest_rise) if kind == "line" else TWIN_OPERATIONS
