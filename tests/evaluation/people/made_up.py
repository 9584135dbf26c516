"""Rows that several made-up people labelled, and a judge of a stated error."""

from collections.abc import Mapping

import numpy as np

from evaluation.intervals import Ints
from evaluation.people.agreement import PeoplesLabels
from judging.labels import worth_by_place
from judging.types import LabelledExample, Verdict
from tests.evaluation.made_up import example, scored

LEVELS = ("Correct", "Partial", "Wrong")
PEOPLE = {"anna": 0.1, "ben": 0.15, "carla": 0.2, "dan": 0.4}
"""Share of rows on which each guesses."""


def labels_of_people(
    rng: np.random.Generator,
    questions: int = 40,
    rows: int = 3,
    people: Mapping[str, float] = PEOPLE,
    judge: float = 0.05,
    present: float = 0.7,
    levels: tuple[str, ...] = LEVELS,
) -> tuple[PeoplesLabels, Ints]:
    """Draw labels: half of the rows of a question share their truth, and a third are hard.

    Of hard questions people guess twice as often, and of others half as often. ``people`` and
    ``judge`` are the shares of rows on which they guess, ``present`` that which a person labels.
    """
    n, size = questions * rows, len(levels)
    clusters = np.repeat(np.arange(questions), rows)
    is_shared = rng.random(n) < 0.5
    of_question = rng.integers(size, size=questions)[clusters]
    truth = np.where(is_shared, of_question, rng.integers(size, size=n))
    doubt = np.where(rng.random(questions) < 1 / 3, 2.0, 0.5)[clusters]

    def labels(guesses: float) -> Ints:
        guess = rng.integers(size, size=n)
        return np.where(rng.random(n) < guesses * doubt, guess, truth)

    given = np.stack([labels(guesses) for guesses in people.values()], axis=1)
    given[rng.random(given.shape) > present] = -1
    worth = worth_by_place(levels)
    return PeoplesLabels(tuple(people), levels, given, clusters, worth), labels(judge)


def several(seed: int = 0, questions: int = 40) -> tuple[list[LabelledExample], list[Verdict]]:
    """Return examples that four people labelled, not each all of them, with verdicts."""
    rng = np.random.default_rng(seed)
    people, judge = labels_of_people(rng, questions)
    examples, verdicts = [], []
    for row, (of_row, label) in enumerate(zip(people.given, judge, strict=True)):
        by_person = {
            name: LEVELS[number]
            for name, number in zip(people.names, of_row, strict=True)
            if number != -1
        }
        counts = np.bincount([number for number in of_row if number != -1], minlength=3)
        fields = {"question": f"Question {people.clusters[row]}?", "annotator_labels": by_person}
        examples.append(example(LEVELS[int(counts.argmax())], id=str(row), **fields))
        given, other = LEVELS[int(label)], LEVELS[(int(label) + 1) % 3]
        verdicts.append(scored(given, 0.6 + 0.4 * rng.random(), other, str(row), judge="made-up"))
    return examples, verdicts
