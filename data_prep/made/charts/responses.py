"""Responses to a question about a picture, and the score and error type that follow from each.

- ``Correct``: right readings, right logic.
- ``Reasoning Error``: every reading stated is right for the picture, the logic is not.
- ``Image Misunderstanding``: a reading stated is wrong, or a response that claims to list all items
  lacks one; the logic fits the values believed in.
- ``Unanswerable``, ``Overthinking``, ``Other``: declined, not brought to an end, or without
  anything that shows the cause.

The score compares the answers claimed with the answer set: nothing lacking and nothing else is
``Correct``, a part of it and nothing else ``Partial``, all else ``Wrong``.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from random import Random

from data_prep.made.charts.operations import Operation, Problem, Solution
from data_prep.made.charts.scenes import ChartScene, SceneKind, View
from data_prep.made.words.wordings import (
    Wording,
    WordingSplit,
    capital,
    draw_weighted,
    join_list,
    read_wordings,
    wordings_of,
    words_of,
)
from judging.tasks.hieval_ea import IMAGE, OTHER, OVERTHINKING, REASONING, UNANSWERABLE
from judging.tasks.hieval_qs import CORRECT, PARTIAL, WRONG

REASONED = ("complete", "selected", "inline")
"""Families of frames that state readings, step and answer."""
TRIES = 12
"""Beliefs that are drawn before a misreading is given up for a problem."""


@dataclass(frozen=True)
class Exercise:
    """A problem about one column of a picture, with its solution and the words to speak of it."""

    kind: SceneKind
    column: str
    view: View
    problem: Problem
    truth: Solution

    @property
    def references(self) -> tuple[str, ...]:
        """Spell the answer set: several names stand in the picture's order, not by rank."""
        answers = self.truth.answers
        return tuple(sorted(answers, key=list(self.view).index)) if len(answers) > 1 else answers


@dataclass(frozen=True)
class ChartQuestion(Wording):
    """One wording of a question; its family is the operation that it asks for."""

    kind: str = ""
    """Kind of scene to which the wording is limited; empty: every kind."""


@dataclass(frozen=True)
class ResponseFrame(Wording):
    """One frame of a response."""

    reading: str = "{item} is {value}"
    """Wording of one reading; the family ``inline`` puts it inside the step."""


questions = cache(partial(read_wordings, "charts", "questions", ChartQuestion))
frames = cache(partial(read_wordings, "charts", "frames", ResponseFrame))
steps = cache(partial(read_wordings, "charts", "steps", Wording))
"""Reads all wordings of lines of thought, each of the operation that is its family."""


@dataclass(frozen=True)
class ResponseWording:
    """The wording of a whole response."""

    frame: ResponseFrame
    step: Wording
    joint: str
    """How the calculation follows the step."""


@dataclass(frozen=True)
class ChartResponse:
    """A worded response and how it came about."""

    text: str
    wording: ResponseWording
    behaviour: str


def draw_exercise(
    rng: Random, kind: SceneKind, scene: ChartScene, operations: Mapping[Operation, int]
) -> Exercise:
    """Draw a column of a scene and a problem whose answer its values leave no doubt about."""
    while True:
        column = rng.choice(scene.columns)
        view = scene.view(column)
        problem = rng.choices(list(operations), list(operations.values()))[0](rng, view)
        truth = problem.solve(view) if problem else None
        if problem and truth:
            return Exercise(kind, column, view, problem, truth)


def score_answers(answers: Collection[str], references: Collection[str]) -> str:
    """Compare the answers claimed with the answer set: ``Correct``, ``Partial`` or ``Wrong``."""
    claimed, expected = set(answers), set(references)
    if claimed == expected:
        return CORRECT
    return PARTIAL if claimed and claimed < expected else WRONG


def questions_for(exercise: Exercise, wordings: Iterable[ChartQuestion]) -> list[ChartQuestion]:
    """Choose the questions that ask for an exercise's operation on its kind of scene."""
    return [
        question
        for question in wordings
        if question.family == exercise.problem.operation
        and question.kind in ("", exercise.kind.name)
    ]


def wordings_for(
    exercise: Exercise, split: WordingSplit, families: Sequence[str] | None = None
) -> list[ResponseWording]:
    """List the wordings that a response to an exercise may have in a split of the data.

    Frames come by the order of ``families``; a family named twice comes twice. By default all come,
    in the order of their table.
    """
    framed = wordings_of(frames(), split)
    if families is not None:
        framed = [frame for family in families for frame in framed if frame.family == family]
    thought = [s for s in wordings_of(steps(), split) if s.family == exercise.problem.operation]
    joints = words_of("charts")["joints"]
    return [ResponseWording(*parts) for parts in itertools.product(framed, thought, joints)]


def slots_of(exercise: Exercise) -> dict[str, str]:
    """Fill the slots of questions, steps and frames from the kind and the problem."""
    kind = exercise.kind
    items = {"a", "b"}
    return {
        "noun": kind.noun,
        "nouns": kind.nouns,
        "measure": kind.measure.format(column=exercise.column),
        "measures": kind.measures.format(column=exercise.column),
        **{
            slot: kind.item.format(name=text) if slot in items else text
            for slot, text in exercise.problem.slots.items()
        },
    }


def put_into_words(
    exercise: Exercise, wording: ResponseWording, believed: View, solution: Solution
) -> str:
    """Word a solution that was reached from the values believed in."""
    frame, kind = wording.frame, exercise.kind
    slots = slots_of(exercise)

    def read(name: str) -> str:
        item = kind.item.format(name=name)
        return frame.reading.format(item=item, value=believed[name])

    items = [
        read(name) if frame.family == "inline" else kind.item.format(name=name)
        for name in solution.items
    ]
    step = wording.step.template.format(**slots, items=join_list(items))
    if solution.calc:
        step += wording.joint.format(calc=solution.calc)
    listed = believed if frame.family == "complete" else solution.items
    readings = join_list([read(name) for name in listed])
    return frame.template.format(
        **slots,
        readings=readings,
        Readings=capital(readings),
        step=step,
        Step=capital(step),
        answer=join_list(solution.answers),
    )


def respond(
    rng: Random,
    exercise: Exercise,
    score: str,
    error_type: str | None,
    wordings: Sequence[ResponseWording],
) -> ChartResponse | None:
    """Draw a response of a score and type (``None`` for ``Correct``) in one of several wordings.

    ``None`` where the exercise does not allow the label, or if a number of tries do not give such a
    response.
    """
    family = rng.choice(_families(score, error_type))
    wording = rng.choice([wording for wording in wordings if wording.frame.family == family])
    draft = _draft(rng, exercise, score, error_type, shows_all=family == "complete")
    if draft is None:
        return None
    behaviour, believed, solution = draft
    return ChartResponse(put_into_words(exercise, wording, believed, solution), wording, behaviour)


def _families(score: str, error_type: str | None) -> tuple[str, ...]:
    """List the families of frames that can show an error; more frequent ones come repeatedly."""
    if error_type is None:
        return (*REASONED * 4, "bare", "label")
    if error_type == OTHER:
        return ("bare", "bare", "label", "garbled")
    if error_type == UNANSWERABLE:
        return ("part_missing",) if score == PARTIAL else ("missing",)
    if error_type == OVERTHINKING:
        return ("part_circling",) if score == PARTIAL else ("circling",)
    # An item left out is seen to be dropped or overlooked only beside everything that was read.
    return ("complete",) if score == PARTIAL else REASONED


Draft = tuple[str, View, Solution]
"""Behaviour, values believed in and solution of a response before it is worded."""


def _draft(
    rng: Random, exercise: Exercise, score: str, error_type: str | None, *, shows_all: bool
) -> Draft | None:
    """Draw how a response of a score and type comes about; ``None`` where it cannot."""
    view, truth = exercise.view, exercise.truth
    if error_type is None:
        return "right", view, truth
    if error_type == IMAGE:
        return _misread(rng, exercise, score, shows_all=shows_all)
    if error_type in (UNANSWERABLE, OVERTHINKING) and score == WRONG:
        return "no answer", view, truth
    if error_type != REASONING and score == PARTIAL:
        if len(truth.answers) < 2:
            return None
        chosen = set(rng.sample(truth.answers, rng.randint(1, len(truth.answers) - 1)))
        part = tuple(answer for answer in truth.answers if answer in chosen)
        return "part of the answer", view, Solution(truth.items, "", part)
    slips = [
        slip
        for slip in exercise.problem.slips(view)
        if score_answers(slip.solution.answers, truth.answers) == score
    ]
    if error_type == OTHER:  # an answer that is not right, without any reason
        return ("bare answer", view, rng.choice(slips).solution) if slips else None
    slips = [slip for slip in slips if shows_all or not slip.shows_all]
    if not slips:
        return None
    name = rng.choice(sorted({slip.name for slip in slips}))
    return name, view, rng.choice([slip for slip in slips if slip.name == name]).solution


def _misread(rng: Random, exercise: Exercise, score: str, *, shows_all: bool) -> Draft | None:
    """Draw right logic on values that are not the picture's, where the text shows it."""
    for behaviour, believed in _beliefs(rng, exercise.view, exercise.kind):
        solution = exercise.problem.solve(believed)
        if solution is None or score_answers(solution.answers, exercise.truth.answers) != score:
            continue
        if shows_all or states_misreading(exercise, believed, solution):
            return behaviour, believed, solution
    return None


def states_misreading(exercise: Exercise, believed: View, solution: Solution) -> bool:
    """Tell whether a response that states what it works with shows its misreading.

    A value that is misread must be stated, and no misreading that is not stated may be needed to
    follow the response.
    """
    view = exercise.view
    stated = {name: believed[name] for name in solution.items}
    if stated.items() <= view.items():
        return False
    return exercise.problem.solve({**view, **stated}) == solution


def _beliefs(rng: Random, view: View, kind: SceneKind) -> Iterator[tuple[str, dict[str, int]]]:
    """Draw views that differ from the picture's in the ways a look can go wrong."""
    for _ in range(TRIES):
        believed = dict(view)
        mistake = draw_weighted(rng, {"misread": 12, "swapped": 4, "overlooked": 3, "invented": 1})
        if mistake == "misread":
            for name in rng.sample(list(view), rng.choice((1, 1, 1, 2))):
                believed[name] += kind.unit * rng.choice((-4, -3, -2, -1, 1, 2, 3, 4))
        elif mistake == "swapped":
            a, b = rng.sample(list(view), 2)
            believed[a], believed[b] = view[b], view[a]
        elif mistake == "overlooked":
            del believed[rng.choice(list(view))]
        else:
            spare = [name for name in kind.names(rng, len(view) + 1) if name not in view]
            if not spare:
                continue
            believed[spare[-1]] = kind.unit * rng.randint(kind.low, kind.high)
        if kind.allows(believed.values()):
            yield mistake, believed
