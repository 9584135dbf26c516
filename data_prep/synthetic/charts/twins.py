"""Two pictures under one question and one response, which only the pictures tell apart.

A *twin* is a response that is faulty logic on the first picture and a misreading on the second,
both having the same answer. A *contrast* is a response that is right for the first picture and
misreads the second. The second picture is searched for: it must be one on which someone who takes
the stated values for true reaches the response by right logic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal

from data_prep.synthetic.charts.problems import Solution
from data_prep.synthetic.charts.responses import Task, score_of

Relation = Literal["twin", "contrast"]
TRIES = 300


@dataclass(frozen=True)
class Pair:
    """A response and the values of the second picture."""

    solution: Solution
    behaviour: str
    """What goes wrong (or right) on the first picture."""
    other: dict[str, int]
    other_truth: Solution


def find_pair(rng: Random, task: Task, relation: Relation) -> Pair | None:
    """Find a response to a task and a second picture; ``None`` if some tries find none."""
    if relation == "contrast":
        behaviour, solution = "right", task.truth
    else:
        slips = [
            slip
            for slip in task.problem.slips(task.view)
            if slip.name == "wrong choice"
            and score_of(slip.solution.answers, task.truth.answers) == "Wrong"
        ]
        if not slips:
            return None
        slip = rng.choice(slips)
        behaviour, solution = slip.name, slip.solution

    def suits(truth: Solution) -> bool:
        if relation == "twin":
            return set(truth.answers) == set(task.truth.answers)
        return score_of(solution.answers, truth.answers) == "Wrong"

    found = _search(rng, task, solution, suits)
    return Pair(solution, behaviour, *found) if found else None


def _search(
    rng: Random, task: Task, solution: Solution, suits: Callable[[Solution], bool]
) -> tuple[dict[str, int], Solution] | None:
    stated = {name: task.view[name] for name in solution.items}
    names = tuple(task.view)
    for _ in range(TRIES):
        other = dict(zip(names, task.kind.draw_values(rng, len(names)), strict=True))
        truth = task.problem.solve(other)
        if truth is None or not suits(truth) or all(other[name] == stated[name] for name in stated):
            continue
        if task.problem.solve(other | stated) == solution:
            return other, truth
    return None
