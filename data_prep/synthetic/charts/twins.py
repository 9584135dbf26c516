"""Two pictures under one question and one response, which only the pictures tell apart.

A *twin* is a response that is faulty logic on the first picture and a misreading on the second,
both having the same answer. A *contrast* is a response that is right for the first picture and
misreads the second. The second picture is searched for: a reader of it who takes the stated values
for true must reach the response by right logic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal

from data_prep.synthetic.charts.problems import Solution
from data_prep.synthetic.charts.responses import Exercise, score_answers
from judging.tasks.hieval_qs import WRONG

Relation = Literal["twin", "contrast"]
TRIES = 300


@dataclass(frozen=True)
class SharedResponse:
    """A response that fits two pictures, and the values of the second."""

    solution: Solution
    behaviour: str
    """What goes wrong (or right) on the first picture."""
    second_view: dict[str, int]
    second_truth: Solution


def find_shared_response(
    rng: Random, exercise: Exercise, relation: Relation
) -> SharedResponse | None:
    """Find a response to an exercise and a second picture; ``None`` after some tries in vain."""
    if relation == "contrast":
        behaviour, solution = "right", exercise.truth
    else:
        slips = [
            slip
            for slip in exercise.problem.slips(exercise.view)
            if slip.name == "wrong choice"
            and score_answers(slip.solution.answers, exercise.truth.answers) == WRONG
        ]
        if not slips:
            return None
        slip = rng.choice(slips)
        behaviour, solution = slip.name, slip.solution

    def suits(truth: Solution) -> bool:
        if relation == "twin":
            return set(truth.answers) == set(exercise.truth.answers)
        return score_answers(solution.answers, truth.answers) == WRONG

    second = _search(rng, exercise, solution, suits)
    return SharedResponse(solution, behaviour, *second) if second else None


def _search(
    rng: Random, exercise: Exercise, solution: Solution, suits: Callable[[Solution], bool]
) -> tuple[dict[str, int], Solution] | None:
    """Draw values until one of their readings, the stated one, leads to the solution."""
    stated = {name: exercise.view[name] for name in solution.items}
    names = tuple(exercise.view)
    for _ in range(TRIES):
        values = exercise.kind.draw_values(rng, len(names))
        view = dict(zip(names, values, strict=True))
        truth = exercise.problem.solve(view)
        if truth is None or not suits(truth) or all(view[name] == stated[name] for name in stated):
            continue
        if exercise.problem.solve(view | stated) == solution:
            return view, truth
    return None
