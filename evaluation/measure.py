"""Every metric of one judge on one set of items, on its parts, and over runs; with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from evaluation import metrics
from evaluation.calibration_error import (
    calibration_columns,
    chance_band,
    expected_calibration_error,
)
from evaluation.estimate import Draws
from evaluation.intervals import (
    NO_INTERVAL,
    Floats,
    Ints,
    cluster_standard_error,
    ratio,
    student_quantile,
)
from evaluation.outcomes import Outcomes
from judging.types import LabelledExample, score_of, type_of

CORRECT = "Correct"
WRONG = ("Wrong", "Incorrect")
"""Scores that mean a wrong answer, over all tasks that grade one."""
METADATA_KEYS = ("answerer", "domain", "level", "language")
SLICE_METRICS = ("accuracy", "coverage", "kappa")
LENGTHS = ("short", "middle", "long")
BEFORE = "_before_calibration"
"""Ending of the names of accuracies before calibration, which are those of the papers."""


@dataclass(frozen=True)
class Tally:
    """Sums over items from which every metric follows.

    One row of ``sums``, ``[..., S]``, holds: the confusion matrix (``K * K``), the number of
    unscored items, that of scored items with a posterior, the sums of their Brier scores and
    log-likelihoods, and ``calibration_columns``.
    """

    labels: tuple[str, ...]
    sums: Floats

    @property
    def confusion(self) -> Floats:
        """Cut out the confusion matrix of scored items, rows people. Shape ``[..., K, K]``."""
        classes = len(self.labels)
        return self.sums[..., : classes**2].reshape(*self.sums.shape[:-1], classes, classes)

    @property
    def scored(self) -> Floats:
        """Count the items with a label. Shape ``[...]``, as of all that follow."""
        return np.asarray(self.confusion.sum(axis=(-2, -1)))

    @property
    def items(self) -> Floats:
        """Count the items, with a label or without."""
        return self.scored + self._column(0)

    @property
    def with_posterior(self) -> Floats:
        """Count the scored items with a posterior."""
        return self._column(1)

    @property
    def brier(self) -> Floats:
        """Average the Brier scores."""
        return ratio(self._column(2), self.with_posterior)

    @property
    def nll(self) -> Floats:
        """Average the negative log-likelihoods."""
        return ratio(self._column(3), self.with_posterior)

    @property
    def calibration(self) -> Floats:
        """Cut out the sums of ``calibration_columns``. Shape ``[..., bins * 3]``."""
        return self.sums[..., len(self.labels) ** 2 + 4 :]

    @property
    def with_confidence(self) -> Floats:
        """Count the items with a confidence."""
        return np.asarray(self.calibration[..., ::3].sum(axis=-1))

    @property
    def overconfidence(self) -> Floats:
        """Subtract the accuracy from the mean confidence, of items with a confidence."""
        surplus = self.calibration[..., 1::3] - self.calibration[..., 2::3]
        return ratio(surplus.sum(axis=-1), self.with_confidence)

    def classes(self, is_member: Callable[[str], bool]) -> Ints:
        """Find the indices of the labels for which a test holds."""
        members = [index for index, label in enumerate(self.labels) if is_member(label)]
        return np.array(members, dtype=np.int64)

    def _column(self, number: int) -> Floats:
        return np.asarray(self.sums[..., len(self.labels) ** 2 + number])


@dataclass(frozen=True)
class Metric:
    """A function of a tally, and how many items it is about."""

    value: Callable[[Tally], Floats]
    items: Callable[[Tally], Floats] = attrgetter("scored")
    is_rate: bool = False
    """Mark of a share of ``items``. Its interval is Wilson's, widened for clusters."""
    is_biased: bool = False
    """Mark of a measure to which chance can only add, such as ECE, and which so has no interval."""
    allows_unseen_errors: bool = False
    """Mark of a mean confidence less the accuracy, whose interval allows for errors that no row
    shows."""
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
        scored = outcomes.scored
        known = scored & ~np.isnan(outcomes.probabilities).any(axis=1)
        brier = metrics.brier_scores(outcomes.human, outcomes.probabilities)
        nll = metrics.negative_log_likelihoods(outcomes.human, outcomes.probabilities)
        columns = np.concatenate(
            [
                metrics.confusion_cells(outcomes.human, outcomes.predicted, len(outcomes.labels)),
                np.stack([~scored, known, np.where(known, brier, 0), np.where(known, nll, 0)], 1),
                calibration_columns(outcomes.confidence, outcomes.right.astype(np.float64)),
            ],
            axis=1,
        )
        return cls(outcomes.labels, Draws.of(columns, outcomes.clusters, seed))

    @property
    def total(self) -> Tally:
        """Tally all items; ``sums`` has shape ``[S]``."""
        return Tally(self.labels, self.draws.total)

    def estimate(self, metric: Metric) -> dict[str, Any]:
        """Estimate a metric as ``Draws`` does: ``value``, ``low``, ``high`` and ``n``."""

        def value(sums: Floats) -> Floats:
            return metric.value(Tally(self.labels, sums))

        def items(sums: Floats) -> Floats:
            return metric.items(Tally(self.labels, sums))

        if metric.is_rate:
            return self.draws.rate(value, items)
        n = float(items(self.draws.total))
        if metric.is_biased:
            return {"value": float(value(self.draws.total)), **NO_INTERVAL._asdict(), "n": int(n)}
        estimate = self.draws.estimate(value, n, metric.bounds)
        return self._with_unseen_errors(estimate) if metric.allows_unseen_errors else estimate

    def _with_unseen_errors(self, estimate: dict[str, Any]) -> dict[str, Any]:
        """Widen the interval of the overconfidence, as resamples of right rows show no wrong ones.

        No end is nearer than by the accuracy that ``design_bounds`` allows a judge without an
        error, or one that is never right, on the same clusters.
        """

        def items(sums: Floats) -> Floats:
            return Tally(self.labels, sums).with_confidence

        unseen = self.draws.rate(lambda sums: np.zeros(sums.shape[:-1]), items)["high"]
        total = self.total
        confidence = float(ratio(total.calibration[1::3].sum(), total.with_confidence))
        value = estimate["value"]  # it lies in its interval, also where the rows show no spread
        low = np.minimum(value, np.fmin(estimate["low"], confidence - unseen))
        high = np.maximum(value, np.fmax(estimate["high"], confidence - 1 + unseen))
        return estimate | {"low": float(low), "high": float(high)}


def _false_positive_rate(tally: Tally) -> Floats:
    wrong = tally.classes(lambda label: score_of(label) in WRONG)
    correct = tally.classes(lambda label: score_of(label) == CORRECT)
    if not len(correct):
        return np.full(tally.scored.shape, np.nan)
    return metrics.share_in_columns(tally.confusion, wrong, correct)


def _part_accuracy(part: Callable[[str], str], tally: Tally) -> Floats:
    """Compute the accuracy of one part of the labels, over the items whose human label has it."""
    parts = [part(label) for label in tally.labels]
    same = np.array([[a == b for b in parts] for a in parts])
    rows = tally.classes(lambda label: bool(part(label)))
    agreed = (tally.confusion * same)[..., rows, :].sum(axis=(-2, -1))
    return ratio(agreed, tally.confusion[..., rows, :].sum(axis=(-2, -1)))


def _items_with(is_member: Callable[[str], bool], tally: Tally) -> Floats:
    """Count the scored items whose human label passes a test."""
    return np.asarray(tally.confusion[..., tally.classes(is_member), :].sum(axis=(-2, -1)))


METRICS: Mapping[str, Metric] = {
    "accuracy": Metric(lambda tally: metrics.accuracy(tally.confusion), is_rate=True),
    "accuracy_unscored_as_wrong": Metric(
        lambda tally: ratio(np.trace(tally.confusion, axis1=-2, axis2=-1), tally.items),
        attrgetter("items"),
        is_rate=True,
    ),
    "coverage": Metric(
        lambda tally: ratio(tally.scored, tally.items), attrgetter("items"), is_rate=True
    ),
    "kappa": Metric(lambda tally: metrics.cohen_kappa(tally.confusion), bounds=(-1.0, 1.0)),
    "mcc": Metric(lambda tally: metrics.matthews(tally.confusion), bounds=(-1.0, 1.0)),
    "macro_f1": Metric(lambda tally: metrics.macro_f1(tally.confusion)),
    "fpr": Metric(
        _false_positive_rate,
        partial(_items_with, lambda label: score_of(label) in WRONG),
        is_rate=True,
    ),
    "ece": Metric(
        lambda tally: expected_calibration_error(tally.calibration),
        attrgetter("with_confidence"),
        is_biased=True,
    ),
    "overconfidence": Metric(
        attrgetter("overconfidence"),
        attrgetter("with_confidence"),
        allows_unseen_errors=True,
        bounds=(-1.0, 1.0),
    ),
    "brier": Metric(attrgetter("brier"), attrgetter("with_posterior"), bounds=(0.0, 2.0)),
    "nll": Metric(attrgetter("nll"), attrgetter("with_posterior"), bounds=(0.0, math.inf)),
}
ERROR_TYPE_METRICS: Mapping[str, Metric] = {
    "score_accuracy": Metric(partial(_part_accuracy, score_of), is_rate=True),
    "type_accuracy": Metric(
        partial(_part_accuracy, type_of),
        partial(_items_with, lambda label: bool(type_of(label))),
        is_rate=True,
    ),
}
"""For labels such as ``Wrong; Reasoning Error``: the score alone, and the type alone over the items
that people gave a type (HiEval's S-Acc and A-Acc)."""
ACCURACIES = ("accuracy", *ERROR_TYPE_METRICS)
"""Metrics of the labels alone, which papers print."""


def metrics_for(labels: tuple[str, ...]) -> Mapping[str, Metric]:
    """Choose the metrics that make sense for a label set."""
    return {**METRICS, **ERROR_TYPE_METRICS} if any(map(type_of, labels)) else METRICS


def measure(
    outcomes: Outcomes, names: tuple[str, ...] | None = None, seed: int = 0
) -> dict[str, dict[str, Any]]:
    """Compute metrics, all that apply by default, with 95 % intervals that keep questions together.

    Each has ``value``, ``low``, ``high`` and ``n``, the number of items that it is about. Accuracy
    also has ``se``, its cluster-robust standard error, and the calibration error ``chance``, that
    of :func:`evaluation.calibration_error.chance_band`.
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
    """Subtract a metric of A from that of B, on the same items, which are resampled for both."""
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
    """List the error types of full labels, in their order."""
    return tuple(dict.fromkeys(filter(None, map(type_of, labels))))


def measure_error_types(outcomes: Outcomes) -> dict[str, dict[str, Any]]:
    """Compute, per error type, the share of its items whose type the judge names (HiEval, Table 5).

    The judge's score does not matter.
    """
    draws = TallyDraws.of(outcomes)

    def recall_of(name: str) -> Metric:
        def has_type(label: str) -> bool:
            return type_of(label) == name

        def recall(tally: Tally) -> Floats:
            members = tally.classes(has_type)
            return metrics.share_in_columns(tally.confusion, members, members)

        return Metric(recall, partial(_items_with, has_type), is_rate=True)

    return {name: draws.estimate(recall_of(name)) for name in error_types(outcomes.labels)}


def slice_metrics(
    examples: Sequence[LabelledExample], outcomes: Outcomes, seed: int = 0
) -> dict[str, dict[str, dict[str, Any]]]:
    """Compute accuracy, coverage and kappa on every part of the examples, by :func:`divisions`.

    A division leads to its parts, and a part to ``n`` (items, unscored ones included) and the
    metrics. Examples are in the order of the outcomes.
    """
    rank = {name: number for number, name in enumerate(LENGTHS)}
    measured: dict[str, dict[str, dict[str, Any]]] = {}
    for division, parts in divisions(examples):
        names = {part for part in parts if part is not None}
        for name in sorted(names, key=lambda part: (rank.get(part.partition(" (")[0], 0), part)):
            part = outcomes.take(np.array([other == name for other in parts]))
            of_part = {"n": len(part), **measure(part, SLICE_METRICS, seed)}
            measured.setdefault(division, {})[name] = of_part
    return measured


def divisions(examples: Sequence[LabelledExample]) -> Iterator[tuple[str, list[str | None]]]:
    """Yield each division's name and the part that each example falls into.

    Divide by :data:`METADATA_KEYS` where given, by thirds of response length, and by task with
    variant.
    """
    for key in METADATA_KEYS:
        values = [example.metadata.get(key) for example in examples]
        if any(value is not None for value in values):
            yield key, [None if value is None else str(value) for value in values]
    yield "response_length", list(length_thirds(examples))
    yield "task", [f"{example.task}/{example.variant}" for example in examples]


def length_thirds(examples: Sequence[LabelledExample]) -> list[str]:
    """Name the third of response lengths of each example, with its range in characters.

    Equal lengths stay together, so that thirds can be uneven or empty.
    """
    lengths = np.array([sum(map(len, example.responses)) for example in examples])
    third = np.searchsorted(np.sort(lengths), lengths, side="left") * 3 // max(1, len(lengths))
    names = {}
    for number, name in enumerate(LENGTHS):
        inside = lengths[third == number]
        if len(inside):
            names[number] = f"{name} ({inside.min()}-{inside.max()} characters)"
    return [names[number] for number in third]


def seed_statistics(reports: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Summarise every metric over the reports of runs that differ in their seed alone.

    The interval says how far chance in training moves the mean of as many runs: Student's t over
    the runs, cut off at the smallest and largest value of the metric. It does not hold the chance
    that lies in the test rows, which all runs share.

    A metric that every report has, or an accuracy before calibration, leads to ``values``,
    ``mean``, ``std``, and ``low`` and ``high`` of the 95 % interval. The last three are ``None``
    for a single run.
    """
    runs = []
    for report in reports:
        before = (report.get("calibration") or {}).get("before", {})
        estimates = {
            **report["metrics"],
            **{f"{name}{BEFORE}": before[name] for name in ACCURACIES if name in before},
        }
        runs.append({name: (each or {}).get("value") for name, each in estimates.items()})
    table = {**METRICS, **ERROR_TYPE_METRICS}
    statistics: dict[str, dict[str, Any]] = {}
    for name in runs[0] if runs else ():
        values = [value for run in runs if (value := run.get(name)) is not None]
        count = len(values)
        if count < len(runs):
            continue
        mean = float(np.mean(values))
        found = {"values": values, "mean": mean, "std": None, "low": None, "high": None}
        if count > 1:
            smallest, largest = table[name.removesuffix(BEFORE)].bounds
            std = float(np.std(values, ddof=1))
            half = float(student_quantile(count - 1, 0.975)) * std / math.sqrt(count)
            low, high = max(smallest, mean - half), min(largest, mean + half)
            found |= {"std": std, "low": low, "high": high}
        statistics[name] = found
    return statistics
