"""Single people's labels of rows, and how far people, or a judge and people, agree on them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluation.estimate import Draws, mean, share, without_nan
from evaluation.intervals import Floats, Ints, number_clusters, ratio
from evaluation.metrics import UNSCORED, accuracy, cohen_kappa
from evaluation.outcomes import full_label, question_numbers
from judging.tasks import get_task, worth_under
from judging.types import LabelledExample, Verdict

PERSON = " person"
FIRST, SECOND = f"first{PERSON}", f"second{PERSON}"
"""The people of a row with ``label`` and ``second_label``."""
MIN_ROWS = 30
"""Fewest rows of a person to test a judge against, as in Calderon et al. (2025)."""
KAPPA_BOUNDS = (-1.0, 1.0)


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
    worth: Mapping[str, float] = field(default_factory=dict)
    """What labels are worth by their place in the tasks; empty where they are in no order."""

    @cached_property
    def counts(self) -> Floats:
        """Count how many people gave a row each label. Shape ``[n, K]``."""
        counts = np.zeros((len(self.given), len(self.labels)))
        for of_person in self.given.T:
            rows = np.flatnonzero(of_person != UNSCORED)
            counts[rows, of_person[rows]] += 1
        return counts

    @property
    def num_people(self) -> Floats:
        """Count the people who labelled each row. Shape ``[n]``."""
        return np.asarray(self.counts.sum(axis=1))

    def others(self, person: int) -> Floats:
        """Compute the shares of everybody else's labels, ``[n, K]``; nan where there is nobody."""
        counts = self.counts.copy()
        rows = np.flatnonzero(self.given[:, person] != UNSCORED)
        counts[rows, self.given[rows, person]] -= 1
        number = counts.sum(axis=1, keepdims=True)
        return ratio(counts, number)

    def take(self, rows: npt.NDArray[Any]) -> PeoplesLabels:
        """Select rows by a mask or indices."""
        return replace(self, given=self.given[rows], clusters=self.clusters[rows])


def labels_by_person(example: LabelledExample) -> dict[str, str]:
    """Look up the labels that single people gave an example; none if only one label is known."""
    if example.second_label is None:
        return dict(example.annotator_labels)
    named = example.annotator_labels or {FIRST: full_label(example)}
    return {**named, SECOND: example.second_label}


def gather_people(
    examples: Sequence[LabelledExample], labels: Sequence[str]
) -> PeoplesLabels | None:
    """Line up the labels of single people; ``None`` if no example has those of two."""
    by_row = [labels_by_person(example) for example in examples]
    if all(len(of_row) < 2 for of_row in by_row):
        return None
    names = tuple(dict.fromkeys(name for of_row in by_row for name in of_row))
    given = np.full((len(examples), len(names)), UNSCORED, dtype=np.int64)
    for row, of_row in enumerate(by_row):
        for name, label in of_row.items():
            given[row, names.index(name)] = labels.index(label)
    worth: dict[str, float] = {}
    for rubric in {get_task(example.task).full_rubric(example) for example in examples}:
        worth |= worth_under(rubric)
    return PeoplesLabels(names, tuple(labels), given, question_numbers(examples), worth)


def commonest(labels: Mapping[str, str]) -> list[str]:
    """Find the label that most people gave; several if they are tied."""
    counts = Counter(labels.values())
    return [label for label, count in counts.items() if count == max(counts.values())]


def side_of_judge(example: LabelledExample, verdict: Verdict) -> str:
    """Name who gave the judge's label: names, ``both`` or ``all``, or ``neither``.

    The text is empty without labels of two people or without one of the judge.
    """
    by_person = labels_by_person(example)
    if len(by_person) < 2 or verdict.label is None:
        return ""
    with_judge = [name for name, label in by_person.items() if label == full_label(verdict)]
    if len(with_judge) == len(by_person):
        return "both" if len(by_person) == 2 else "all"
    return ", ".join(name.removesuffix(PERSON) for name in with_judge) or "neither"


def levels(labels: Sequence[str], worth: Mapping[str, float]) -> list[float] | None:
    """Place labels on a scale of three or more by their numbers, or by what each is worth.

    ``None`` where they are on none.
    """
    try:
        scale = [float(label) for label in labels]
    except ValueError:
        if not set(labels) <= worth.keys():
            return None
        scale = [worth[label] for label in labels]
    return scale if len(set(scale)) > 2 else None


def label_agreement(
    pairs: Sequence[tuple[str, str]],
    labels: Sequence[str],
    questions: Sequence[Hashable] | None = None,
) -> dict[str, Any]:
    """Measure how far two people agree on single labels, as in HiEval's Table 7.

    ``pairs`` are the labels of the two on each item. Items on one question, and the pairs of more
    than two people on one item, resemble each other; without ``questions`` every pair is of another
    one.

    There are ``agreement`` (share of equal labels), ``kappa`` (Cohen's over all labels),
    ``per_label`` (label to Cohen's kappa of it against all others) and ``mean_per_label``. ``None``
    stands for what does not exist, such as a kappa where both used one label throughout.
    """
    size = len(labels)
    cells = [labels.index(first) * size + labels.index(second) for first, second in pairs]
    counts = np.zeros((len(pairs), size * size))
    counts[np.arange(len(pairs)), cells] = 1
    draws = Draws.of(counts, number_clusters(range(len(pairs)) if questions is None else questions))

    def estimate(value: Callable[[Floats], Floats]) -> dict[str, Any]:
        return draws.estimate(lambda sums: value(_square(sums, size)), len(pairs), KAPPA_BOUNDS)

    def of_label(number: int) -> Callable[[Floats], Floats]:
        return lambda confusion: np.asarray(_label_kappas(confusion)[..., number])

    measured = {
        "agreement": draws.rate(
            lambda sums: accuracy(_square(sums, size)), lambda sums: sums.sum(axis=-1)
        ),
        "kappa": estimate(cohen_kappa),
        "per_label": {label: estimate(of_label(number)) for number, label in enumerate(labels)},
        "mean_per_label": estimate(lambda sums: np.asarray(_label_kappas(sums).mean(axis=-1))),
    }
    return dict(without_nan(measured))


def krippendorff_alpha(people: PeoplesLabels, seed: int = 0) -> dict[str, Any]:
    """Measure the agreement of any number of people beyond chance (Krippendorff 2011).

    Rows with one label tell nothing and are left out. There are ``nominal``, where labels are the
    same or not, and ``ordinal``, where labels that are farther apart on a scale count more; it is
    ``None`` where they are on none (:func:`levels`). Intervals are by question.
    """
    people = people.take(people.num_people >= 2)
    counts, pairs_of = people.counts, people.num_people - 1
    left = 1 - 1 / float(counts.sum())  # one label in all cannot be its own pair

    def estimate(columns: Floats, disagreement: Callable[[Floats], Floats]) -> dict[str, Any]:
        draws = Draws.of(columns, people.clusters, seed)
        return draws.estimate(lambda sums: 1 - left * disagreement(sums), len(counts), KAPPA_BOUNDS)

    same = np.sum(counts * (counts - 1), axis=1) / pairs_of
    alphas = {"nominal": estimate(np.column_stack([same, counts]), _nominal), "ordinal": None}
    if (scale := levels(people.labels, people.worth)) is not None:
        places = np.unique(scale, return_inverse=True)[1]
        placed = counts @ np.eye(int(places.max()) + 1)[places]  # labels on one place are one
        pairs = placed[:, :, None] * placed[:, None, :] - placed[:, :, None] * np.eye(len(placed.T))
        pairs /= pairs_of[:, None, None]
        alphas["ordinal"] = estimate(pairs.reshape(len(pairs), -1), _ordinal)
    return alphas


def _nominal(sums: Floats) -> Floats:
    """Divide the share of differing labels of a row by that of labels drawn from all rows.

    The sums are those of the pairs of equal labels, and of every label. Shape ``[..., 1 + K]``.
    """
    used = sums[..., 1:]
    total = used.sum(axis=-1)
    return ratio((total - sums[..., 0]) * total, total**2 - np.sum(used**2, axis=-1))


def _ordinal(sums: Floats) -> Floats:
    """Divide squared distances of mean ranks in the same way.

    The sums are those of the pairs of labels of a row, by place on a scale. ``[..., L * L]``.
    """
    pairs = _square(sums, math.isqrt(sums.shape[-1]))
    used = pairs.sum(axis=-1)
    ranks = np.cumsum(used, axis=-1) - used / 2
    apart = (ranks[..., :, None] - ranks[..., None, :]) ** 2
    expected = np.sum(used[..., :, None] * used[..., None, :] * apart, axis=(-2, -1))
    return ratio(np.sum(pairs * apart, axis=(-2, -1)) * used.sum(axis=-1), expected)


def side_columns(own: Floats, people: Floats, same: Floats | None = None) -> Floats:
    """Lay a giver of labels beside people: shares of labels of each, on the same rows, ``[n, K]``.

    ``same``, ``[n]``, is the chance of the same label; by default that of two independent ones.
    The columns are ``same``, ``own`` and ``people``, ``[n, 1 + 2 * K]``.
    """
    same = np.sum(own * people, axis=1) if same is None else same
    return np.concatenate([same[:, None], own, people], axis=1)


def agreement_and_kappa(columns: Floats, clusters: Ints, seed: int = 0) -> dict[str, Any]:
    """Estimate ``agreement``, the chance of the same label, and Cohen's ``kappa``.

    They are those of a giver, with :func:`side_columns`, and a person drawn at random.
    """
    draws = Draws.of(columns, clusters, seed)
    return {
        "agreement": mean_share(columns[:, 0].copy(), clusters, seed),
        "kappa": draws.estimate(_kappa, len(columns), KAPPA_BOUNDS),
    }


def differences(
    first: Floats,
    second: Floats,
    clusters: Ints,
    seed: int = 0,
    figures: Sequence[str] = ("agreement", "kappa"),
) -> dict[str, Any]:
    """Estimate one giver's ``agreement`` and ``kappa`` less another's, from their columns."""
    draws = Draws.of(np.concatenate([first, second], axis=1), clusters, seed)
    half, n = first.shape[1], len(first)
    values: dict[str, tuple[Callable[[Floats], Floats], float]] = {
        "agreement": (_same_share, 1.0),
        "kappa": (_kappa, 2.0),
    }

    def difference(value: Callable[[Floats], Floats], most: float) -> dict[str, Any]:
        return draws.estimate(
            lambda sums: value(sums[..., :half]) - value(sums[..., half:]),
            n,
            (-most, most),
            is_difference=True,
        )

    return {figure: difference(*values[figure]) for figure in figures}


def mean_share(shares: Floats, clusters: Ints, seed: int = 0) -> dict[str, Any]:
    """Estimate the mean of shares of people, ``[n]``, with an interval by question.

    The interval is that of a mean; where all shares are 0 or 1, or show no spread, that of a rate.
    """
    if np.any((shares > 0) & (shares < 1)):
        estimate = mean(shares, None, clusters, seed, bounds=(0.0, 1.0))
        if not np.isnan(estimate["low"]):
            return estimate
    return share(shares, None, clusters)


def people_with_each_other(people: PeoplesLabels) -> tuple[Floats, Floats]:
    """Compute, of two people of each row, drawn at random, their shares of labels, ``[n, K]``.

    Beside these stands the chance that their labels are the same, ``[n]``.
    """
    counts, number = people.counts, people.num_people
    same = np.sum(counts * (counts - 1), axis=1) / (number * (number - 1))
    return counts / number[:, None], same


def _same_share(sums: Floats) -> Floats:
    size = (sums.shape[-1] - 1) // 2
    return ratio(sums[..., 0], sums[..., 1 : size + 1].sum(axis=-1))


def _kappa(sums: Floats) -> Floats:
    """Compute Cohen's kappa from sums of :func:`side_columns`, ``[..., 1 + 2 * K]``."""
    size = (sums.shape[-1] - 1) // 2
    own, people = sums[..., 1 : size + 1], sums[..., size + 1 :]
    total, expected = own.sum(axis=-1), np.sum(own * people, axis=-1)
    return ratio(sums[..., 0] * total - expected, total**2 - expected)


def _square(sums: Floats, size: int) -> Floats:
    return sums.reshape(*sums.shape[:-1], size, size)


def _label_kappas(confusion: Floats) -> Floats:
    """Compute each label's kappa against all others. Shapes ``[..., K, K]`` to ``[..., K]``."""
    both = np.diagonal(confusion, axis1=-2, axis2=-1)
    first, second = confusion.sum(axis=-1) - both, confusion.sum(axis=-2) - both
    neither = confusion.sum(axis=(-2, -1))[..., None] - both - first - second
    rows = [np.stack(row, axis=-1) for row in ((both, first), (second, neither))]
    return cohen_kappa(np.stack(rows, axis=-2))
