"""The labels that single people gave, as arrays; any number of people, each on any of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluation.intervals import Floats, Ints, number_clusters
from evaluation.metrics import UNSCORED, ratio
from evaluation.outcomes import full_label
from judging.types import LabelledExample, Verdict, score_of

PERSON = " person"
FIRST, SECOND = f"first{PERSON}", f"second{PERSON}"
"""The people of a row with ``label`` and ``second_label``."""
MIN_ROWS = 30
"""Fewest rows of a person to test a judge against, as in Calderon et al. (2025)."""
SCORES = ("Correct", "Partial", "Wrong")
"""Scores that are levels, from right to wrong."""


@dataclass(frozen=True)
class PeoplesLabels:
    """Labels of ``P`` people on ``n`` rows, over ``K`` labels; any may be missing."""

    names: tuple[str, ...]
    """The people."""
    labels: tuple[str, ...]
    given: Ints
    """Index of each person's label, or ``UNSCORED``. Shape ``[n, P]``."""
    clusters: Ints
    """Question (or group) of each row. Shape ``[n]``."""

    @cached_property
    def counts(self) -> Floats:
        """Return how many people gave a row each label. Shape ``[n, K]``."""
        counts = np.zeros((len(self.given), len(self.labels)))
        for of_person in self.given.T:
            rows = np.flatnonzero(of_person != UNSCORED)
            counts[rows, of_person[rows]] += 1
        return counts

    @property
    def num_people(self) -> Floats:
        """Return the number of people who labelled each row. Shape ``[n]``."""
        return np.asarray(self.counts.sum(axis=1))

    def others(self, person: int) -> Floats:
        """Return the labels of all but one person: their share by row; nan where nobody else is.

        Args:
            person: Index of the person who is left out.

        Returns:
            Shape ``[n, K]``.
        """
        counts = self.counts.copy()
        rows = np.flatnonzero(self.given[:, person] != UNSCORED)
        counts[rows, self.given[rows, person]] -= 1
        number = counts.sum(axis=1, keepdims=True)
        return ratio(counts, number)

    def take(self, rows: npt.NDArray[Any]) -> PeoplesLabels:
        """Return the rows that a mask or indices select."""
        return replace(self, given=self.given[rows], clusters=self.clusters[rows])


def labels_by_person(example: LabelledExample) -> dict[str, str]:
    """Return the labels that single people gave an example; none if only one label is known.

    Where there are a label and a second one, these are of the first and the second person.
    """
    if example.second_label is None:
        return dict(example.annotator_labels)
    named = example.annotator_labels or {FIRST: full_label(example)}
    return {**named, SECOND: example.second_label}


def gather_people(
    examples: Sequence[LabelledExample], labels: Sequence[str]
) -> PeoplesLabels | None:
    """Line up the labels of single people; ``None`` if no example has those of two.

    Args:
        examples: Examples, those of one label among them.
        labels: Every label that occurs.
    """
    by_row = [labels_by_person(example) for example in examples]
    if all(len(of_row) < 2 for of_row in by_row):
        return None
    names = list(dict.fromkeys(name for of_row in by_row for name in of_row))
    place = {name: number for number, name in enumerate(names)}
    index = {label: number for number, label in enumerate(labels)}
    given = np.full((len(examples), len(names)), UNSCORED, dtype=np.int64)
    for row, of_row in enumerate(by_row):
        for name, label in of_row.items():
            given[row, place[name]] = index[label]
    clusters = number_clusters([example.group or example.question for example in examples])
    return PeoplesLabels(tuple(names), tuple(labels), given, clusters)


def commonest(labels: Mapping[str, str]) -> list[str]:
    """Return the label that most people gave; several if they are tied."""
    counts: dict[str, int] = {}
    for label in labels.values():
        counts[label] = counts.get(label, 0) + 1
    return [label for label, count in counts.items() if count == max(counts.values())]


def side_of_judge(example: LabelledExample, verdict: Verdict) -> str:
    """Return who gave the judge's label: names, ``both`` or ``all``, or ``neither``.

    A first and a second person are called ``first`` and ``second``. Return an empty text without
    labels of two people or without one of the judge.
    """
    by_person = labels_by_person(example)
    if len(by_person) < 2 or verdict.label is None:
        return ""
    with_judge = [name for name, label in by_person.items() if label == full_label(verdict)]
    if len(with_judge) == len(by_person):
        return "both" if len(by_person) == 2 else "all"
    return ", ".join(name.removesuffix(PERSON) for name in with_judge) or "neither"


def levels(labels: Sequence[str]) -> list[float] | None:
    """Return the place of each label on a scale; ``None`` if they are on none of three or more.

    Numbers are a scale, and so are Correct, Partial and Wrong, whatever the type of an error.
    """
    try:
        scale = [float(label) for label in labels]
    except ValueError:
        scores = [score_of(label) for label in labels]
        if not set(scores) <= set(SCORES):
            return None
        scale = [float(SCORES.index(score)) for score in scores]
    return scale if len(set(scale)) > 2 else None
