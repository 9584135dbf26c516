"""How far people agree with each other, and how far a judge agrees with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from evaluation.estimate import Draws, mean, without_nan
from evaluation.intervals import Floats, Ints, number_clusters
from evaluation.metrics import cohen_kappa, ratio
from evaluation.people.given import PeoplesLabels, levels

KAPPA_BOUNDS = (-1.0, 1.0)
ALPHA_ITEMS = 2
"""Fewest labels of a row that tell of agreement."""


def label_agreement(
    pairs: Sequence[tuple[str, str]],
    labels: Sequence[str],
    questions: Sequence[Hashable] | None = None,
) -> dict[str, Any]:
    """Measure how far two people agree on single labels.

    HiEval's Table 7 has a kappa for each label, which sets that label against all others, and one
    over all labels.

    Args:
        pairs: Labels of the two on each item.
        labels: All labels that there are.
        questions: Question of each pair: items on one question, and the pairs of more than two
            people on one item, resemble each other. Default: every pair is of another.

    Returns:
        ``agreement`` (share of equal labels), ``kappa`` (Cohen's over all labels), ``per_label``
        (label to Cohen's kappa of it against all others) and ``mean_per_label``, each with
        ``value``, ``low``, ``high`` and ``n``. ``None`` stands for what does not exist, such as a
        kappa where both used one label throughout.

    Raises:
        ValueError: If a label is not among ``labels``.
    """
    size = len(labels)
    cells = [labels.index(first) * size + labels.index(second) for first, second in pairs]
    counts = np.zeros((len(pairs), size * size))
    counts[np.arange(len(pairs)), cells] = 1
    draws = Draws.of(counts, number_clusters(range(len(pairs)) if questions is None else questions))

    def estimate(value: Callable[[Floats], Floats]) -> dict[str, Any]:
        return draws.estimate(lambda sums: value(_square(sums, size)), len(pairs), KAPPA_BOUNDS)

    measured = {
        "agreement": draws.rate(
            lambda sums: _share_of_equal(_square(sums, size)), lambda sums: sums.sum(axis=-1)
        ),
        "kappa": estimate(cohen_kappa),
        "per_label": {
            label: estimate(partial(_label_kappa, number)) for number, label in enumerate(labels)
        },
        "mean_per_label": estimate(_mean_of_label_kappas),
    }
    return dict(without_nan(measured))


def krippendorff_alpha(people: PeoplesLabels, seed: int = 0) -> dict[str, Any]:
    """Measure the agreement of any number of people beyond chance (Krippendorff 2011).

    Rows with one label tell nothing and are left out. It is 1 for full agreement and 0 for labels
    that are shuffled over all rows.

    Args:
        people: Their labels.
        seed: Seed of the resamples.

    Returns:
        ``nominal``, where labels are the same or not, and ``ordinal``, where labels that are
        farther apart on a scale count more; ``None`` where the labels are no scale of three or
        more. ``value``, ``low``, ``high`` and ``n`` (rows) each, with intervals by question.
    """
    people = people.take(people.num_people >= ALPHA_ITEMS)
    counts, pairs_of = people.counts, people.num_people - 1
    left = 1 - 1 / float(counts.sum())  # one label in all cannot be its own pair

    def estimate(columns: Floats, disagreement: Callable[[Floats], Floats]) -> dict[str, Any]:
        draws = Draws.of(columns, people.clusters, seed)
        return draws.estimate(lambda sums: 1 - left * disagreement(sums), len(counts), KAPPA_BOUNDS)

    same = np.sum(counts * (counts - 1), axis=1) / pairs_of
    alphas = {"nominal": estimate(np.column_stack([same, counts]), _nominal), "ordinal": None}
    if (scale := levels(people.labels)) is not None:
        places = np.unique(scale, return_inverse=True)[1]
        placed = counts @ np.eye(int(places.max()) + 1)[places]  # labels on one place are one
        pairs = placed[:, :, None] * placed[:, None, :] - placed[:, :, None] * np.eye(len(placed.T))
        pairs /= pairs_of[:, None, None]
        alphas["ordinal"] = estimate(pairs.reshape(len(pairs), -1), _ordinal)
    return alphas


def _nominal(sums: Floats) -> Floats:
    """Return the share of differing labels of a row over that of labels drawn from all rows.

    Args:
        sums: Sums of the pairs of equal labels, and of every label. Shape ``[..., 1 + K]``.
    """
    used = sums[..., 1:]
    total = used.sum(axis=-1)
    return ratio((total - sums[..., 0]) * total, total**2 - np.sum(used**2, axis=-1))


def _ordinal(sums: Floats) -> Floats:
    """Return the same for squared distances of mean ranks.

    Args:
        sums: Sums of the pairs of labels of a row, by place on a scale. Shape ``[..., L * L]``.
    """
    pairs = _square(sums, math.isqrt(sums.shape[-1]))
    used = pairs.sum(axis=-1)
    ranks = np.cumsum(used, axis=-1) - used / 2
    apart = (ranks[..., :, None] - ranks[..., None, :]) ** 2
    expected = np.sum(used[..., :, None] * used[..., None, :] * apart, axis=(-2, -1))
    return ratio(np.sum(pairs * apart, axis=(-2, -1)) * used.sum(axis=-1), expected)


class Sides:
    """Agreement of several givers of labels with people, on the same rows.

    Every giver has for each row the chance that a label of its own is one that a person gave, and
    the shares of both sides' labels.
    """

    def __init__(self, clusters: Ints, seed: int = 0) -> None:
        """Begin without a giver.

        Args:
            clusters: Question of each row. Shape ``[n]``.
            seed: Seed of the resamples.
        """
        self._clusters = clusters
        self._seed = seed
        self._columns: dict[str, Floats] = {}
        self._same: dict[str, Floats] = {}

    def add(self, name: str, own: Floats, people: Floats, same: Floats | None = None) -> None:
        """Add a giver of labels.

        Args:
            name: Its name.
            own: Shares of its labels. Shape ``[n, K]``.
            people: Shares of people's labels on the same rows. Shape ``[n, K]``.
            same: Chance of the same label; by default that of two independent ones. ``[n]``.
        """
        same = np.sum(own * people, axis=1) if same is None else same
        self._same[name] = same
        self._columns[name] = np.concatenate([same[:, None], own, people], axis=1)

    def agreement(self, name: str) -> dict[str, Any]:
        """Estimate the chance of the same label, with an interval by question."""
        return mean_share(self._same[name], self._clusters, self._seed)

    def kappa(self, name: str) -> dict[str, Any]:
        """Estimate Cohen's kappa of a giver and a person drawn at random."""
        draws = Draws.of(self._columns[name], self._clusters, self._seed)
        return draws.estimate(_kappa, len(self._clusters), KAPPA_BOUNDS)

    def both(self, name: str) -> dict[str, Any]:
        """Estimate ``agreement`` and ``kappa``."""
        return {"agreement": self.agreement(name), "kappa": self.kappa(name)}

    def differences(
        self, name: str, other: str, figures: Sequence[str] = ("agreement", "kappa")
    ) -> dict[str, Any]:
        """Estimate one giver's ``agreement`` and ``kappa`` less another's, on the same rows."""
        columns = np.concatenate([self._columns[name], self._columns[other]], axis=1)
        draws = Draws.of(columns, self._clusters, self._seed)
        half, n = columns.shape[1] // 2, len(self._clusters)
        values: dict[str, Callable[[Floats], Floats]] = {"agreement": _same_share, "kappa": _kappa}

        def difference(value: Callable[[Floats], Floats]) -> dict[str, Any]:
            return draws.estimate(
                lambda sums: value(sums[..., :half]) - value(sums[..., half:]),
                n,
                (-2.0, 2.0),
                is_difference=True,
            )

        return {figure: difference(values[figure]) for figure in figures}


def mean_share(shares: Floats, clusters: Ints, seed: int = 0) -> dict[str, Any]:
    """Estimate the mean of shares of people, 0 to 1, with an interval by question.

    The interval is that of a mean; where all shares are 0 or 1, or show no spread, that of a rate.

    Args:
        shares: Shape ``[n]``.
        clusters: Question of each row. Shape ``[n]``.
        seed: Seed of the resamples.
    """
    all_rows = np.ones(len(shares), dtype=bool)
    if np.any((shares > 0) & (shares < 1)):
        estimate = mean(shares, all_rows, clusters, seed)
        if not np.isnan(estimate["low"]):
            return {
                **estimate,
                "low": max(0.0, estimate["low"]),
                "high": min(1.0, estimate["high"]),
            }
    return mean(shares, all_rows, clusters, seed, is_rate=True)


def people_with_each_other(people: PeoplesLabels) -> tuple[Floats, Floats]:
    """Return what two people of a row who are drawn at random give.

    Args:
        people: Labels of rows that two people or more labelled.

    Returns:
        Shares of their labels, shape ``[n, K]``, and the chance that they are the same, ``[n]``.
    """
    counts, number = people.counts, people.num_people
    same = np.sum(counts * (counts - 1), axis=1) / (number * (number - 1))
    return counts / number[:, None], same


def _same_share(sums: Floats) -> Floats:
    """Return the chance of the same label. Shapes as in :func:`_kappa`."""
    size = (sums.shape[-1] - 1) // 2
    return ratio(sums[..., 0], sums[..., 1 : size + 1].sum(axis=-1))


def _kappa(sums: Floats) -> Floats:
    """Return Cohen's kappa of sums of the chance of the same label and of both sides' shares.

    Args:
        sums: Shape ``[..., 1 + 2 * K]``.

    Returns:
        Shape ``[...]``; nan where both sides gave one label throughout.
    """
    size = (sums.shape[-1] - 1) // 2
    own, people = sums[..., 1 : size + 1], sums[..., size + 1 :]
    total, expected = own.sum(axis=-1), np.sum(own * people, axis=-1)
    return ratio(sums[..., 0] * total - expected, total**2 - expected)


def _square(sums: Floats, size: int) -> Floats:
    return sums.reshape(*sums.shape[:-1], size, size)


def _share_of_equal(confusion: Floats) -> Floats:
    return ratio(np.trace(confusion, axis1=-2, axis2=-1), confusion.sum(axis=(-2, -1)))


def _label_kappas(confusion: Floats) -> Floats:
    """Return the kappa of each label against all others.

    Args:
        confusion: Shape ``[..., K, K]``.

    Returns:
        Shape ``[..., K]``.
    """
    both = np.diagonal(confusion, axis1=-2, axis2=-1)
    first, second = confusion.sum(axis=-1) - both, confusion.sum(axis=-2) - both
    neither = confusion.sum(axis=(-2, -1))[..., None] - both - first - second
    rows = [np.stack(row, axis=-1) for row in ((both, first), (second, neither))]
    return cohen_kappa(np.stack(rows, axis=-2))


def _label_kappa(number: int, confusion: Floats) -> Floats:
    return np.asarray(_label_kappas(confusion)[..., number])


def _mean_of_label_kappas(confusion: Floats) -> Floats:
    return np.asarray(_label_kappas(confusion).mean(axis=-1))
