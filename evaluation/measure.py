"""Every metric of one judge on one set of items, each with a cluster-bootstrap interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from evaluation import metrics
from evaluation.intervals import (
    RESAMPLES,
    Floats,
    Ints,
    cluster_standard_error,
    cluster_sums,
    percentile_interval,
    rate_interval,
    resample_clusters,
)
from evaluation.outcomes import Outcomes
from judging.types import score_of, type_of

CORRECT = "Correct"
WRONG = ("Wrong", "Incorrect")
"""Scores that mean a wrong answer, over all tasks that grade one."""


@dataclass(frozen=True)
class Tally:
    """Sums over items from which every metric follows.

    ``sums`` has shape ``[..., S]``; its leading axis is the cluster, then the resample, and is gone
    in the total. One row holds, in this order: the confusion matrix (``K * K``), the number of
    unscored items, of items with a posterior, their Brier scores and log-likelihoods, and count,
    confidence and correctness per confidence bin (``bins * 3``).
    """

    labels: tuple[str, ...]
    sums: Floats

    @classmethod
    def of(cls, outcomes: Outcomes) -> Tally:
        """Sum the items of each cluster; ``sums`` has shape ``[C, S]``.

        Confidence bins are laid over all items once and kept in every resample.
        """
        scored = outcomes.scored
        known = scored & ~np.isnan(outcomes.probabilities).any(axis=1)
        brier = metrics.brier_scores(outcomes.human, outcomes.probabilities)
        nll = metrics.negative_log_likelihoods(outcomes.human, outcomes.probabilities)
        bins = metrics.calibration_cells(outcomes.confidence, outcomes.right.astype(np.float64))
        columns = np.concatenate(
            [
                metrics.confusion_cells(outcomes.human, outcomes.predicted, len(outcomes.labels)),
                np.stack([~scored, known, np.where(known, brier, 0), np.where(known, nll, 0)], 1),
                bins.reshape(len(outcomes), -1),
            ],
            axis=1,
        )
        return cls(outcomes.labels, cluster_sums(columns, outcomes.clusters))

    def total(self) -> Tally:
        """All clusters together; ``sums`` has shape ``[S]``."""
        return Tally(self.labels, self.sums.sum(axis=0))

    def resampled(self, resamples: int, seed: int) -> Tally:
        """Clusters drawn with replacement; ``sums`` has shape ``[B, S]``."""
        return Tally(self.labels, resample_clusters(self.sums, resamples, seed))

    @property
    def confusion(self) -> Floats:
        """Shape ``[..., K, K]``: rows people, columns judge, scored items only."""
        classes = len(self.labels)
        return self.sums[..., : classes**2].reshape(*self.sums.shape[:-1], classes, classes)

    @property
    def scored(self) -> Floats:
        """Number of items with a label. Shape ``[...]``."""
        return np.asarray(self.confusion.sum(axis=(-2, -1)))

    @property
    def unscored(self) -> Floats:
        """Number of items without a label. Shape ``[...]``."""
        return self._column(0)

    @property
    def with_posterior(self) -> Floats:
        """Number of scored items with a posterior. Shape ``[...]``."""
        return self._column(1)

    @property
    def brier(self) -> Floats:
        """Mean Brier score. Shape ``[...]``."""
        return metrics.ratio(self._column(2), self.with_posterior)

    @property
    def nll(self) -> Floats:
        """Mean negative log-likelihood. Shape ``[...]``."""
        return metrics.ratio(self._column(3), self.with_posterior)

    @property
    def bins(self) -> Floats:
        """Shape ``[..., bins, 3]``: count, summed confidence, number right."""
        return self.sums[..., len(self.labels) ** 2 + 4 :].reshape(*self.sums.shape[:-1], -1, 3)

    def classes(self, chosen: Callable[[str], bool]) -> Ints:
        """Indices of the labels that ``chosen`` picks."""
        return np.array([i for i, label in enumerate(self.labels) if chosen(label)], dtype=np.int64)

    def _column(self, number: int) -> Floats:
        return np.asarray(self.sums[..., len(self.labels) ** 2 + number])


@dataclass(frozen=True)
class Metric:
    """A function of a tally, and how many items it is about."""

    value: Callable[[Tally], Floats]
    items: Callable[[Tally], Floats]
    is_rate: bool = False
    """A share of ``items``: at 0 and 1 its interval is Wilson's, as a bootstrap has no width."""


def _of_confusion(metric: Callable[[Floats], Floats], is_rate: bool = False) -> Metric:
    return Metric(lambda tally: metric(tally.confusion), lambda tally: tally.scored, is_rate)


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
    return metrics.share_of_rows_called(tally.confusion, wrong, correct)


def _human_wrong(tally: Tally) -> Floats:
    wrong = tally.classes(lambda label: score_of(label) in WRONG)
    return np.asarray(tally.confusion[..., wrong, :].sum(axis=(-2, -1)))


def _part_accuracy(part: Callable[[str], str], tally: Tally) -> Floats:
    parts = [part(label) for label in tally.labels]
    same = np.array([[a == b for b in parts] for a in parts])
    rows = tally.classes(lambda label: bool(part(label)))
    agreed = (tally.confusion * same)[..., rows, :].sum(axis=(-2, -1))
    return metrics.ratio(agreed, tally.confusion[..., rows, :].sum(axis=(-2, -1)))


def _with_error_type(tally: Tally) -> Floats:
    rows = tally.classes(lambda label: bool(type_of(label)))
    return np.asarray(tally.confusion[..., rows, :].sum(axis=(-2, -1)))


METRICS: Mapping[str, Metric] = {
    "accuracy": _of_confusion(metrics.accuracy, is_rate=True),
    "accuracy_unscored_as_wrong": Metric(_accuracy_unscored_as_wrong, _all_items, is_rate=True),
    "coverage": Metric(_coverage, _all_items, is_rate=True),
    "kappa": _of_confusion(metrics.cohen_kappa),
    "mcc": _of_confusion(metrics.matthews),
    "macro_f1": _of_confusion(metrics.macro_f1),
    "fpr": Metric(_false_positive_rate, _human_wrong, is_rate=True),
    "ece": Metric(
        lambda tally: metrics.expected_calibration_error(tally.bins),
        lambda tally: tally.bins[..., 0].sum(axis=-1),
    ),
    "brier": Metric(lambda tally: tally.brier, lambda tally: tally.with_posterior),
    "nll": Metric(lambda tally: tally.nll, lambda tally: tally.with_posterior),
}
ERROR_TYPE_METRICS: Mapping[str, Metric] = {
    "score_accuracy": Metric(
        partial(_part_accuracy, score_of), lambda tally: tally.scored, is_rate=True
    ),
    "type_accuracy": Metric(partial(_part_accuracy, type_of), _with_error_type, is_rate=True),
}
"""For labels such as ``Wrong; Reasoning Error``: the score alone, and the type alone over the items
people gave one (HiEval's S-Acc and A-Acc)."""


def metrics_for(labels: tuple[str, ...]) -> Mapping[str, Metric]:
    """The metrics that make sense for a label set."""
    return {**METRICS, **ERROR_TYPE_METRICS} if any(map(type_of, labels)) else METRICS


def measure(
    outcomes: Outcomes,
    names: tuple[str, ...] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, dict[str, Any]]:
    """Compute metrics with 95 % intervals, questions resampled.

    Args:
        outcomes: What people and the judge said.
        names: Metrics wanted; all that apply by default.
        resamples: Bootstrap resamples.
        seed: Seed of the resamples.

    Returns:
        Name to ``value``, ``low``, ``high`` and ``n``, the number of items it is about; accuracy
        also has ``se``, its cluster-robust standard error.
    """
    tally = Tally.of(outcomes)
    drawn = tally.resampled(resamples, seed)
    table = metrics_for(outcomes.labels)
    measured = {name: summarise(table[name], tally, drawn) for name in names or tuple(table)}
    if "accuracy" in measured:
        right, clusters = outcomes.right[outcomes.scored], outcomes.clusters[outcomes.scored]
        measured["accuracy"]["se"] = cluster_standard_error(right.astype(np.float64), clusters)
    return measured


def summarise(metric: Metric, tally: Tally, drawn: Tally) -> dict[str, Any]:
    """One metric's value, interval and number of items.

    A rate of 0 or 1 is taken to rest on as many observations as clusters it is about. An interval
    is widened to hold its value where it would not: chance can only add to a calibration error, so
    resamples of a well-calibrated judge may all lie above it.

    Args:
        metric: What to measure.
        tally: Sums per cluster.
        drawn: Sums over resampled clusters.

    Returns:
        ``value``, ``low``, ``high`` and ``n``.
    """
    total = tally.total()
    value, n = float(metric.value(total)), float(metric.items(total))
    samples = metric.value(drawn)
    if metric.is_rate:
        # Where a cluster has nothing that the rate is about, its own rate does not exist.
        clusters = int((~np.isnan(metric.value(tally))).sum())
        interval = rate_interval(value, samples, clusters)
    else:
        interval = percentile_interval(samples)
    low, high = min(interval.low, value), max(interval.high, value)
    return {"value": value, "low": low, "high": high, "n": int(n)}
