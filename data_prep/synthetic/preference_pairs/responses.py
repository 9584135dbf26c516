"""One response of a pair: a worded answer whose truth and faults are known."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from data_prep.synthetic.charts import wordings as chart_wordings
from data_prep.synthetic.charts.problems import Solution
from data_prep.synthetic.charts.responses import Task, Wording, score_of, slots_of, word
from data_prep.synthetic.charts.scenes import View
from data_prep.synthetic.preference_pairs.wordings import (
    FORMS,
    MADE_UP,
    MISREAD,
    OFF_TOPIC,
    PADDED,
    Form,
)

FormSplit = Literal["train", "test"]

ADDITIONS = {PADDED: "padding", MADE_UP: "guess"}
"""Tags of what may stand beside an answer, and the family of its forms."""
SHORT = ("selected", "inline")
"""Families of chart forms that state what they work with and no more."""
WORDED = (*SHORT, *SHORT, "bare", "label")
"""What right responses and those with a misreading or faulty logic are worded in, alike: that a
response says no more than its answer must not tell whether it is right."""
TRIES = 12


@dataclass(frozen=True)
class Side:
    """A response and what is true of it."""

    text: str
    answers: tuple[str, ...]
    """What it answers; empty if nothing."""
    right: bool
    fault: str | None
    """Tag of why the answer is not right, where the response shows it."""
    forms: tuple[str, ...]
    """Ids of the wordings it is made of."""
    addition: str | None = None
    """Tag of what stands beside the answer."""

    @property
    def tags(self) -> tuple[str, ...]:
        """Its faults under the paper's names."""
        return tuple(tag for tag in (self.fault, self.addition) if tag)


def right_side(rng: Random, task: Task, forms: FormSplit) -> Side:
    """Right readings, right logic."""
    wording = rng.choice(_wordings(task, forms, WORDED))
    text = word(task, wording, task.view, task.truth)
    return Side(text, task.truth.answers, True, None, (wording.form.id, wording.step.id))


def wrong_side(rng: Random, task: Task, fault: str, forms: FormSplit) -> Side | None:
    """A response that is wrong for a reason; ``None`` where the task does not lend itself to it.

    A misreading or faulty logic shows only where more than the answer is said.
    """
    if fault == OFF_TOPIC:
        form = rng.choice(_own("off_topic", forms))
        return Side(form.template.format(**slots_of(task)), (), False, fault, (form.id,))
    found = _misread(rng, task) if fault == MISREAD else _slip(rng, task)
    if found is None:
        return None
    believed, solution = found
    if fault == MADE_UP:
        form = rng.choice(_own("made_up", forms))
        text = form.template.format(answer=joined(solution.answers), **slots_of(task))
        return Side(text, solution.answers, False, fault, (form.id,))
    wording = rng.choice(_wordings(task, forms, WORDED))
    text = word(task, wording, believed, solution)
    shown = fault if wording.form.family in SHORT else None
    return Side(text, solution.answers, False, shown, (wording.form.id, wording.step.id))


def with_addition(rng: Random, side: Side, tag: str, task: Task, forms: FormSplit) -> Side:
    """The same response with something beside its answer."""
    form = rng.choice(_own(ADDITIONS[tag], forms))
    stop = "" if side.text[-1] in ".!?" else "."
    text = f"{side.text}{stop} {form.template.format(**slots_of(task))}"
    return replace(side, text=text, addition=tag, forms=(*side.forms, form.id))


def joined(parts: Sequence[str]) -> str:
    """``A, B and C``."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else ""


def _wordings(task: Task, forms: FormSplit, families: Sequence[str]) -> list[Wording]:
    held_out = forms == "test"
    chosen = [
        form
        for family in families
        for form in chart_wordings.FORMS
        if form.family == family and form.held_out == held_out
    ]
    steps = [
        step
        for step in chart_wordings.STEPS
        if step.operation == task.problem.operation and step.held_out == held_out
    ]
    return [Wording(*one) for one in itertools.product(chosen, steps, chart_wordings.CALC_JOINTS)]


def _own(family: str, forms: FormSplit) -> list[Form]:
    return [f for f in FORMS if f.family == family and f.held_out == (forms == "test")]


def _slip(rng: Random, task: Task) -> tuple[View, Solution] | None:
    """Right readings, then faulty logic that shows without the other readings."""
    slips = [
        slip.solution
        for slip in task.problem.slips(task.view)
        if not slip.shows_all and _is_wrong(slip.solution, task)
    ]
    return (task.view, rng.choice(slips)) if slips else None


def _misread(rng: Random, task: Task) -> tuple[View, Solution] | None:
    """The right logic on a value misread, which the response states."""
    kind, view = task.kind, task.view
    for _ in range(TRIES):
        believed = dict(view)
        believed[rng.choice(list(view))] += kind.unit * rng.choice((-3, -2, -1, 1, 2, 3))
        if not all(kind.unit * kind.low <= x <= kind.unit * kind.high for x in believed.values()):
            continue
        solution = task.problem.solve(believed)
        if solution is None or not _is_wrong(solution, task):
            continue
        stated = {name: believed[name] for name in solution.items}
        followed = task.problem.solve({**view, **stated}) == solution
        if followed and not stated.items() <= view.items():
            return believed, solution
    return None


def _is_wrong(solution: Solution, task: Task) -> bool:
    return score_of(solution.answers, task.truth.answers) == "Wrong"
