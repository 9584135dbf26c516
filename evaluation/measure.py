"""Every metric of one judge on one set of items, each with an interval by clusters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from evaluation import metrics
from evaluation.calibration_error import chance_band
from evaluation.estimate import NO_INTERVAL, Draws
from evaluation.intervals import Floats, Ints, cluster_standard_error
from evaluation.outcomes import Outcomes
from judging.types import score_of, type_of

CORRECT = "Correct"
WRONG = ("Wrong", "Incorrect")
"""Scores that mean a wrong answer, over all tasks that grade one."""


@dataclass(frozen=True)
class Tally:
    """Sums over items from which every metric follows.

    One row of ``sums`` holds, in this order: the confusion matrix (``K * K``), the number of
    unscored items, the number of scored items with a posterior, the sums of their Brier scores and
    log-likelihoods, and ``metrics.calibration_columns``. Leading axes are free.
    """

    labels: tuple[str, ...]
    sums: Floats
    """Shape ``[..., S]``."""

    @property
    def confusion(self) -> Floats:
        """Return the confusion matrix of scored items, rows people. Shape ``[..., K, K]``."""
        classes = len(self.labels)
        return self.sums[..., : classes**2].reshape(*self.sums.shape[:-1], classes, classes)

    @property
    def scored(self) -> Floats:
        """Return the number of items with a label. Shape ``[...]``."""
        return np.asarray(self.confusion.sum(axis=(-2, -1)))

    @property
    def unscored(self) -> Floats:
        """Return the number of items without a label. Shape ``[...]``."""
        return self._column(0)

    @property
    def with_posterior(self) -> Floats:
        """Return the number of scored items with a posterior. Shape ``[...]``."""
        return self._column(1)

    @property
    def brier(self) -> Floats:
        """Return the mean Brier score. Shape ``[...]``."""
        return metrics.ratio(self._column(2), self.with_posterior)

    @property
    def nll(self) -> Floats:
        """Return the mean negative log-likelihood. Shape ``[...]``."""
        return metrics.ratio(self._column(3), self.with_posterior)

    @property
    def calibration(self) -> Floats:
        """Return the sums of ``metrics.calibration_columns``. Shape ``[..., bins * 3]``."""
        return self.sums[..., len(self.labels) ** 2 + 4 :]

    @property
    def with_confidence(self) -> Floats:
        """Return the number of items with a confidence. Shape ``[...]``."""
        return np.asarray(self.calibration[..., ::3].sum(axis=-1))

    @property
    def overconfidence(self) -> Floats:
        """Return the mean confidence less the accuracy, of items with a confidence. ``[...]``."""
        surplus = self.calibration[..., 1::3] - self.calibration[..., 2::3]
        return metrics.ratio(surplus.sum(axis=-1), self.with_confidence)

    def classes(self, is_member: Callable[[str], bool]) -> Ints:
        """Return the indices of the labels for which a test holds."""
        members = [index for index, label in enumerate(self.labels) if is_member(label)]
        return np.array(members, dtype=np.int64)

    def _column(self, number: int) -> Floats:
        return np.asarray(self.sums[..., len(self.labels) ** 2 + number])


@dataclass(frozen=True)
class Metric:
    """A function of a tally, and how many items it is about."""

    value: Callable[[Tally], Floats]
    items: Callable[[Tally], Floats]
    is_rate: bool = False
    """Whether it is a share of ``items``, with an interval of the kind of Wilson's."""
    is_biased: bool = False
    """Whether chance can only add to it. Then resamples, which hold chance twice, tell nothing of
    its error, and there is no interval."""
    bounds: tuple[float, float] = (0.0, 1.0)
    """Smallest and largest value that it can have."""


@dataclass(frozen=True)
class TallyDraws:
    """Tallies of one judge's items: of all together, and of resampled clusters."""

    labels: tuple[str, ...]
    draws: Draws

    @classmethod
    def of(cls, outcomes: Outcomes, seed: int = 0) -> TallyDraws:
        """Tally the items of each cluster.

        Confidence bins are laid over all items once and are the same in every resample.
        """
        columns = _tally_columns(outcomes)
        return cls(outcomes.labels, Draws.of(columns, outcomes.clusters, seed))

    @property
    def total(self) -> Tally:
        """Return the tally of all items; ``sums`` has shape ``[S]``."""
        return Tally(self.labels, self.draws.total)

    @property
    def resampled(self) -> Tally:
        """Return tallies of clusters drawn with replacement; ``sums`` has shape ``[B, S]``."""
        return Tally(self.labels, self.draws.resampled)

    def estimate(self, metric: Metric) -> dict[str, Any]:
        """Return a metric's ``value``, ``low``, ``high`` and ``n``, as ``Draws`` estimates it."""

        def value(sums: Floats) -> Floats:
            return metric.value(Tally(self.labels, sums))

        n = float(metric.items(self.total))
        if metric.is_biased:
            return {"value": float(value(self.draws.total)), **NO_INTERVAL._asdict(), "n": int(n)}
        if metric.is_rate:
            return self.draws.rate(value, lambda sums: metric.items(Tally(self.labels, sums)))
        return self.draws.estimate(value, n, metric.bounds)


def _tally_columns(outcomes: Outcomes) -> Floats:
    """Return every item's part of the sums of a ``Tally``. Shape ``[n, S]``."""
    scored = outcomes.scored
    known = scored & ~np.isnan(outcomes.probabilities).any(axis=1)
    brier = metrics.brier_scores(outcomes.human, outcomes.probabilities)
    nll = metrics.negative_log_likelihoods(outcomes.human, outcomes.probabilities)
    return np.concatenate(
        [
            metrics.confusion_cells(outcomes.human, outcomes.predicted, len(outcomes.labels)),
            np.stack([~scored, known, np.where(known, brier, 0), np.where(known, nll, 0)], 1),
            metrics.calibration_columns(outcomes.confidence, outcomes.right.astype(np.float64)),
        ],
        axis=1,
    )


def _of_confusion(
    metric: Callable[[Floats], Floats],
    is_rate: bool = False,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Metric:
    return Metric(
        lambda tally: metric(tally.confusion), lambda tally: tally.scored, is_rate, bounds=bounds
    )


def _all_items(tally: Tally) -> Floats:
    return tally.scored + tally.unscored


def _coverage(tally: Tally) -> Floats:
    return metrics.ratio(tally.scored, _all_items(tally))


def _accuracy_unscored_as_wrong(tally: Tally) -> Floats:
    return metrics.ratio(np.trace(tally.confusion, axis1=-2, axis2=-1), _all_items(tally))


def _false_positive_rate(tally: Tally) -> Floats:
    wrong = tally.classes(lambda label: score_of(label) in WRONG)
    correct = tally.classes(lambda label: score_of(label) == CORRECT)
    if not len(correct):
        return np.full(tally.scored.shape, np.nan)
    return metrics.share_in_columns(tally.confusion, wrong, correct)


def _human_wrong(tally: Tally) -> Floats:
    wrong = tally.classes(lambda label: score_of(label) in WRONG)
    return np.asarray(tally.confusion[..., wrong, :].sum(axis=(-2, -1)))


def _part_accuracy(part: Callable[[str], str], tally: Tally) -> Floats:
    """Return the accuracy of one part of the labels, over the items whose human label has it."""
    parts = [part(label) for label in tally.labels]
    same = np.array([[a == b for b in parts] for a in parts])
    rows = tally.classes(lambda label: bool(part(label)))
    agreed = (tally.confusion * same)[..., rows, :].sum(axis=(-2, -1))
    return metrics.ratio(agreed, tally.confusion[..., rows, :].sum(axis=(-2, -1)))


def _with_error_type(tally: Tally) -> Floats:
    rows = tally.classes(lambda label: bool(type_of(label)))
    return np.asarray(tally.confusion[..., rows, :].sum(axis=(-2, -1)))


def _of_error_type(error_type: str, tally: Tally) -> Floats:
    rows = tally.classes(lambda label: type_of(label) == error_type)
    return np.asarray(tally.confusion[..., rows, :].sum(axis=(-2, -1)))


def _error_type_recall(error_type: str, tally: Tally) -> Floats:
    members = tally.classes(lambda label: type_of(label) == error_type)
    agreed = tally.confusion[..., members, :][..., members].sum(axis=(-2, -1))
    return metrics.ratio(agreed, _of_error_type(error_type, tally))


METRICS: Mapping[str, Metric] = {
    "accuracy": _of_confusion(metrics.accuracy, is_rate=True),
    "accuracy_unscored_as_wrong": Metric(_accuracy_unscored_as_wrong, _all_items, is_rate=True),
    "coverage": Metric(_coverage, _all_items, is_rate=True),
    "kappa": _of_confusion(metrics.cohen_kappa, bounds=(-1.0, 1.0)),
    "mcc": _of_confusion(metrics.matthews, bounds=(-1.0, 1.0)),
    "macro_f1": _of_confusion(metrics.macro_f1),
    "fpr": Metric(_false_positive_rate, _human_wrong, is_rate=True),
    "ece": Metric(
        lambda tally: metrics.expected_calibration_error(tally.calibration),
        lambda tally: tally.with_confidence,
        is_biased=True,
    ),
    "overconfidence": Metric(
        lambda tally: tally.overconfidence,
        lambda tally: tally.with_confidence,
        bounds=(-1.0, 1.0),
    ),
    "brier": Metric(
        lambda tally: tally.brier, lambda tally: tally.with_posterior, bounds=(0.0, 2.0)
    ),
    "nll": Metric(
        lambda tally: tally.nll, lambda tally: tally.with_posterior, bounds=(0.0, math.inf)
    ),
}
ERROR_TYPE_METRICS: Mapping[str, Metric] = {
    "score_accuracy": Metric(
        partial(_part_accuracy, score_of), lambda tally: tally.scored, is_rate=True
    ),
    "type_accuracy": Metric(partial(_part_accuracy, type_of), _with_error_type, is_rate=True),
}
"""For labels such as ``Wrong; Reasoning Error``: the score alone, and the type alone over the items
that people gave a type (HiEval's S-Acc and A-Acc)."""
ACCURACIES = ("accuracy", *ERROR_TYPE_METRICS)
"""Metrics of the labels alone, which papers print."""


def metrics_for(labels: tuple[str, ...]) -> Mapping[str, Metric]:
    """Return the metrics that make sense for a label set."""
    return {**METRICS, **ERROR_TYPE_METRICS} if any(map(type_of, labels)) else METRICS


def measure(
    outcomes: Outcomes, names: tuple[str, ...] | None = None, seed: int = 0
) -> dict[str, dict[str, Any]]:
    """Compute metrics with 95 % intervals that keep questions together.

    Args:
        outcomes: People's labels and the judge's.
        names: Metrics to compute; all that apply by default.
        seed: Seed of the resamples.

    Returns:
        Name to ``value``, ``low``, ``high`` and ``n``, the number of items that it is about.
        Accuracy also has ``se``, its cluster-robust standard error, and the calibration error has
        ``chance``: ``mean`` and ``high`` of :func:`evaluation.calibration_error.chance_band`.
    """
    draws = TallyDraws.of(outcomes, seed)
    table = metrics_for(outcomes.labels)
    measured = {name: draws.estimate(table[name]) for name in names or tuple(table)}
    if "accuracy" in measured:
        right, clusters = outcomes.right[outcomes.scored], outcomes.clusters[outcomes.scored]
        measured["accuracy"]["se"] = cluster_standard_error(right.astype(np.float64), clusters)
    if "ece" in measured and measured["ece"]["n"]:
        measured["ece"]["chance"] = chance_band(
            outcomes.confidence, outcomes.right, outcomes.clusters, seed=seed
        )
    return measured


def paired_difference(metric: Metric, a: TallyDraws, b: TallyDraws) -> dict[str, float]:
    """Return a metric of B minus that of A, for labels of both on the same items.

    Args:
        metric: Metric to compare.
        a: Draws of A.
        b: Draws of B, of the same clusters: every resample draws the same items for both.

    Returns:
        ``value``, and ``low`` and ``high`` of the 95 % interval, nan for a metric that is biased.
    """
    both = Draws(np.concatenate([a.draws.sums, b.draws.sums], axis=1), a.draws.seed)
    half = a.draws.sums.shape[1]

    def difference(sums: Floats) -> Floats:
        of_a, of_b = sums[..., :half], sums[..., half:]
        return metric.value(Tally(b.labels, of_b)) - metric.value(Tally(a.labels, of_a))

    value = float(difference(both.total))
    if metric.is_biased:
        return {"value": value, **NO_INTERVAL._asdict()}
    reach = metric.bounds[1] - metric.bounds[0]
    estimate = both.estimate(difference, 0, (-reach, reach), is_difference=True)
    return {name: estimate[name] for name in ("value", "low", "high")}


def error_types(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the error types of full labels, in their order."""
    return tuple(dict.fromkeys(filter(None, map(type_of, labels))))


def measure_error_types(outcomes: Outcomes, seed: int = 0) -> dict[str, dict[str, Any]]:
    """Compute, per error type, the share of its items whose type the judge names.

    The judge's score does not matter. These are the columns of HiEval's Table 5.

    Args:
        outcomes: People's labels and the judge's.
        seed: Seed of the resamples.

    Returns:
        Error type to ``value``, ``low``, ``high`` and ``n``; empty for labels without types.
    """
    draws = TallyDraws.of(outcomes, seed)
    return {
        name: draws.estimate(
            Metric(partial(_error_type_recall, name), partial(_of_error_type, name), is_rate=True)
        )
        for name in error_types(outcomes.labels)
    }
