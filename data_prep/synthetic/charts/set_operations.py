"""Operations on any number of items: totals, and questions with several answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from data_prep.synthetic.charts.problems import Problem, Slip, Solution, at_ranks
from data_prep.synthetic.charts.scenes import View


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
