"""One response of a pair: a worded answer whose truth and faults are known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from random import Random

from data_prep.synthetic.charts.problems import Solution
from data_prep.synthetic.charts.responses import (
    Exercise,
    ResponseWording,
    put_into_words,
    score_answers,
    slots_of,
    states_misreading,
    wordings_for,
)
from data_prep.synthetic.charts.scenes import View
from data_prep.synthetic.sentences import join_list
from data_prep.synthetic.words import Wording, WordingSplit, read_wordings, wordings_of
from data_prep.truthfulness_tags import MADE_UP, MISREAD, OFF_TOPIC, PADDED
from judging.tasks.hieval_qs import WRONG

ADDITIONS = {PADDED: "padding", MADE_UP: "guess"}
"""Tags of what may be added to an answer, and the family that words it."""
SHORT = ("selected", "inline")
"""Families of chart frames that state what they work with and no more."""
WORDED = (*SHORT, *SHORT, "bare", "label")
"""Families for right responses and, alike, for those with a misreading or faulty logic: a bare
answer must not tell a judge whether it is right."""
TRIES = 12


@dataclass(frozen=True)
class PairedResponse:
    """A response with what is true of it."""

    text: str
    answers: tuple[str, ...]
    """Answers that it gives; empty if none."""
    right: bool
    fault: str | None
    """Tag of why the answer is not right, where the response shows it."""
    wording_ids: tuple[str, ...]
    """Ids of the wordings that it is made of."""
    addition: str | None = None
    """Tag of what is added to the answer."""

    @property
    def tags(self) -> tuple[str, ...]:
        """Return its faults under the paper's names."""
        return tuple(tag for tag in (self.fault, self.addition) if tag)


def right_response(rng: Random, exercise: Exercise, split: WordingSplit) -> PairedResponse:
    """Draw a response with right readings and right logic."""
    wording = rng.choice(wordings_for(exercise, split, WORDED))
    text = put_into_words(exercise, wording, exercise.view, exercise.truth)
    return PairedResponse(text, exercise.truth.answers, True, None, _ids(wording))


def wrong_response(
    rng: Random, exercise: Exercise, fault: str, split: WordingSplit
) -> PairedResponse | None:
    """Draw a response with a fault; ``None`` where the exercise does not lend itself to it.

    A misreading or faulty logic shows only where more than the answer is stated.
    """
    if fault == OFF_TOPIC:
        evasion = _draw_wording(rng, "off_topic", split)
        text = evasion.template.format(**slots_of(exercise))
        return PairedResponse(text, (), False, fault, (evasion.id,))
    draw = _misread if fault == MISREAD else _slip
    draft = draw(rng, exercise)
    if draft is None:
        return None
    believed, solution = draft
    answers = solution.answers
    if fault == MADE_UP:
        invention = _draw_wording(rng, "made_up", split)
        text = invention.template.format(answer=join_list(answers), **slots_of(exercise))
        return PairedResponse(text, answers, False, fault, (invention.id,))
    wording = rng.choice(wordings_for(exercise, split, WORDED))
    text = put_into_words(exercise, wording, believed, solution)
    visible_fault = fault if wording.frame.family in SHORT else None
    return PairedResponse(text, answers, False, visible_fault, _ids(wording))


def with_addition(
    rng: Random, response: PairedResponse, tag: str, exercise: Exercise, split: WordingSplit
) -> PairedResponse:
    """Add a sentence that is beside the answer to a response."""
    wording = _draw_wording(rng, ADDITIONS[tag], split)
    stop = "" if response.text[-1] in ".!?" else "."
    text = f"{response.text}{stop} {wording.template.format(**slots_of(exercise))}"
    ids = (*response.wording_ids, wording.id)
    return replace(response, text=text, addition=tag, wording_ids=ids)


def _ids(wording: ResponseWording) -> tuple[str, str]:
    return wording.frame.id, wording.step.id


@cache
def wordings() -> tuple[Wording, ...]:
    """Return all wordings of what pairs say beyond the responses of the chart rows."""
    return read_wordings("preference_pairs", "responses", Wording)


def _draw_wording(rng: Random, family: str, split: WordingSplit) -> Wording:
    return rng.choice([w for w in wordings_of(wordings(), split) if w.family == family])


def _slip(rng: Random, exercise: Exercise) -> tuple[View, Solution] | None:
    """Draw faulty logic on right readings that shows without the other readings."""
    slips = [
        slip.solution
        for slip in exercise.problem.slips(exercise.view)
        if not slip.shows_all and _is_wrong(slip.solution, exercise)
    ]
    return (exercise.view, rng.choice(slips)) if slips else None


def _misread(rng: Random, exercise: Exercise) -> tuple[View, Solution] | None:
    """Draw right logic on a value that is misread and that the response states."""
    kind, view = exercise.kind, exercise.view
    for _ in range(TRIES):
        believed = dict(view)
        believed[rng.choice(list(view))] += kind.unit * rng.choice((-3, -2, -1, 1, 2, 3))
        if not kind.allows(believed.values()):
            continue
        solution = exercise.problem.solve(believed)
        if solution is None or not _is_wrong(solution, exercise):
            continue
        if states_misreading(exercise, believed, solution):
            return believed, solution
    return None


def _is_wrong(solution: Solution, exercise: Exercise) -> bool:
    return score_answers(solution.answers, exercise.truth.answers) == WRONG
