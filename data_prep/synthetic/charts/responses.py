"""What a responder makes of a picture, and the score and error type that follow from it.

- ``Correct``: right readings, right logic.
- ``Reasoning Error``: every reading stated is right for the picture, the logic is not.
- ``Image Misunderstanding``: a reading stated is wrong, or what is said to be all there is lacks an
  item; the logic fits the values believed in.
- ``Unanswerable``, ``Overthinking``, ``Other``: declined, not brought to an end, or without
  anything that shows the cause.

The score compares what is answered with the answer set: nothing lacking and nothing else is
``Correct``, some of it and nothing else ``Partial``, all else ``Wrong``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from data_prep.synthetic.charts.problems import Problem, Solution
from data_prep.synthetic.charts.scenes import Kind, View
from data_prep.synthetic.charts.wordings import REASONED, Form, Step

ERROR_TYPES = (
    "Reasoning Error",
    "Image Misunderstanding",
    "Unanswerable",
    "Overthinking",
    "Other",
)
TRIES = 12
"""Beliefs drawn before a misreading is given up for a problem."""


@dataclass(frozen=True)
class Task:
    """A problem about one column of a picture, and how to talk about it."""

    kind: Kind
    column: str
    view: View
    problem: Problem
    truth: Solution


@dataclass(frozen=True)
class Wording:
    """The surface of a response."""

    form: Form
    step: Step
    joint: str


@dataclass(frozen=True)
class Response:
    """A worded response and how it came about."""

    text: str
    wording: Wording
    behaviour: str


def score_of(answers: Collection[str], references: Collection[str]) -> str:
    """``Correct``, ``Partial`` or ``Wrong``."""
    given, wanted = set(answers), set(references)
    if given == wanted:
        return "Correct"
    return "Partial" if given and given < wanted else "Wrong"


def slots_of(task: Task) -> dict[str, str]:
    """What questions, steps and forms may name: the kind's words and the problem's arguments."""
    kind = task.kind
    words = {
        "noun": kind.noun,
        "nouns": kind.nouns,
        "measure": kind.measure.format(column=task.column),
        "measures": kind.measures.format(column=task.column),
    }
    items = {"a", "b"}
    return words | {
        slot: kind.item.format(name=text) if slot in items else text
        for slot, text in task.problem.slots.items()
    }


def word(task: Task, wording: Wording, believed: View, solution: Solution) -> str:
    """Put a solution, reached from values believed in, into words."""
    form, kind = wording.form, task.kind
    slots = slots_of(task)

    def read(name: str) -> str:
        item = kind.item.format(name=name)
        return form.reading.format(item=item, value=believed[name])

    named = [
        read(name) if form.family == "inline" else kind.item.format(name=name)
        for name in solution.items
    ]
    step = wording.step.template.format(**slots, items=_joined(named))
    if solution.calc:
        step += wording.joint.format(calc=solution.calc)
    listed = believed if form.family == "complete" else solution.items
    readings = _joined([read(name) for name in listed])
    return form.template.format(
        **slots,
        readings=readings,
        Readings=_capital(readings),
        step=step,
        Step=_capital(step),
        answer=_joined(solution.answers),
    )


def _joined(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def respond(
    rng: Random, task: Task, score: str, error_type: str | None, pool: Sequence[Wording]
) -> Response | None:
    """Draw a response of a score and type.

    Args:
        rng: Source of all choices.
        task: What was asked.
        score: ``Correct``, ``Partial`` or ``Wrong``.
        error_type: ``None`` for ``Correct``.
        pool: Wordings to choose from.

    Returns:
        ``None`` where the task does not allow the label, or none was found in some tries.
    """
    draw = _DRAW[error_type]
    family = rng.choice(_families(score, error_type))
    usable = [wording for wording in pool if wording.form.family == family]
    wording = rng.choice(usable)
    found = draw(rng, task, score, wording.form)
    if found is None:
        return None
    behaviour, believed, solution = found
    return Response(word(task, wording, believed, solution), wording, behaviour)


def _families(score: str, error_type: str | None) -> tuple[str, ...]:
    """Families of forms that can show an error; one that comes often is named often."""
    if error_type is None:
        return (*REASONED * 4, "bare", "label")
    if error_type == "Other":
        return ("bare", "bare", "label", "garbled")
    if error_type == "Unanswerable":
        return ("part_missing",) if score == "Partial" else ("missing",)
    if error_type == "Overthinking":
        return ("part_circling",) if score == "Partial" else ("circling",)
    # What is left out shows as dropped or as overlooked only beside everything that was read.
    return ("complete",) if score == "Partial" else REASONED


Found = tuple[str, View, Solution]
"""Name of the behaviour, values believed in, line of thought."""
Draw = Callable[[Random, Task, str, Form], "Found | None"]


def _right(rng: Random, task: Task, score: str, form: Form) -> Found | None:
    return "right", task.view, task.truth


def _faulty(rng: Random, task: Task, score: str, form: Form) -> Found | None:
    """Right readings, then a slip."""
    slips = [
        slip
        for slip in task.problem.slips(task.view)
        if score_of(slip.solution.answers, task.truth.answers) == score
        and not (slip.shows_all and form.family != "complete")
    ]
    if not slips:
        return None
    name = rng.choice(sorted({slip.name for slip in slips}))
    slip = rng.choice([slip for slip in slips if slip.name == name])
    return name, task.view, slip.solution


def _misread(rng: Random, task: Task, score: str, form: Form) -> Found | None:
    """The right logic on values that are not those of the picture, where the text shows it."""
    for behaviour, believed in _beliefs(rng, task.view, task.kind):
        solution = task.problem.solve(believed)
        if solution is None or score_of(solution.answers, task.truth.answers) != score:
            continue
        if form.family == "complete":
            return behaviour, believed, solution
        # A misreading that is not stated must not be needed to follow the response.
        stated = {name: believed[name] for name in solution.items}
        if not stated.items() <= task.view.items():
            if task.problem.solve({**task.view, **stated}) == solution:
                return behaviour, believed, solution
    return None


def _beliefs(rng: Random, view: View, kind: Kind) -> Iterator[tuple[str, dict[str, int]]]:
    """Views that differ from the picture's in a few ways a look can go wrong."""
    for _ in range(TRIES):
        believed = dict(view)
        how = rng.choices(("misread", "swapped", "overlooked", "invented"), (12, 4, 3, 1))[0]
        if how == "misread":
            for name in rng.sample(list(view), rng.choice((1, 1, 1, 2))):
                believed[name] += kind.unit * rng.choice((-4, -3, -2, -1, 1, 2, 3, 4))
        elif how == "swapped":
            a, b = rng.sample(list(view), 2)
            believed[a], believed[b] = view[b], view[a]
        elif how == "overlooked":
            del believed[rng.choice(list(view))]
        else:
            spare = [name for name in kind.names(rng, len(view) + 1) if name not in view]
            if not spare:
                continue
            believed[spare[-1]] = kind.unit * rng.randint(kind.low, kind.high)
        if all(kind.unit * kind.low <= value <= kind.unit * kind.high
               for value in believed.values()):  # fmt: skip
            yield how, believed


def _without_end_or_answer(rng: Random, task: Task, score: str, form: Form) -> Found | None:
    """Right readings; for a part of the answer set, that part."""
    if score == "Wrong":
        return "no answer", task.view, task.truth
    return _part(rng, task)


def _part(rng: Random, task: Task) -> Found | None:
    answers = task.truth.answers
    if len(answers) < 2:
        return None
    kept = set(rng.sample(answers, rng.randint(1, len(answers) - 1)))
    some = tuple(answer for answer in answers if answer in kept)
    return "part of the answer", task.view, Solution(task.truth.items, "", some)


def _bare(rng: Random, task: Task, score: str, form: Form) -> Found | None:
    """An answer that is not right, without any reason."""
    if score == "Partial":
        return _part(rng, task)
    wrong = [
        slip.solution
        for slip in task.problem.slips(task.view)
        if score_of(slip.solution.answers, task.truth.answers) == score
    ]
    return ("bare answer", task.view, rng.choice(wrong)) if wrong else None


_DRAW: dict[str | None, Draw] = {
    None: _right,
    "Reasoning Error": _faulty,
    "Image Misunderstanding": _misread,
    "Unanswerable": _without_end_or_answer,
    "Overthinking": _without_end_or_answer,
    "Other": _bare,
}
