"""The test before one judge replaces another: shown to be no worse, worse, or not enough rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from evaluation.comparisons.compare import MIN_COMMON, read_shared
from evaluation.estimate import Mask
from evaluation.intervals import Floats, Ints, cluster_sums, design_of_sums, holm, sign_flip_p
from evaluation.outcomes import full_label
from evaluation.report.markdown import number, p_value
from evaluation.slices import divisions
from judging.types import LabelledExample

LEVEL = 0.05
"""Largest probability of either error: to refuse a judge that is nowhere worse, and to call one no
worse that loses the margin."""
MARGIN = 0.02
"""Loss of accuracy that does not matter."""
POWER = 0.8
PRECISION = 1e-6
Outcome = Literal["no worse", "worse", "not enough rows"]


@dataclass(frozen=True)
class Check:
    """The accuracies of two judges on one part of the items that they share."""

    name: str
    n: int
    a: float
    b: float
    lowest: float
    """Lower end of the one-sided 95 % interval of B minus A; -1 for a single question."""
    visible: float
    """Smallest loss that these rows would show in four of five cases; 1 for a single question."""
    adjusted_p: float
    """p-value of a loss, corrected for the number of all checks by Holm's method."""
    margin: float

    @property
    def outcome(self) -> Outcome:
        """Return what is shown of the second judge.

        A loss that is shown to be within the margin does not matter.
        """
        if self.lowest > -self.margin:
            return "no worse"
        return "worse" if self.adjusted_p <= LEVEL else "not enough rows"

    def __str__(self) -> str:
        return (
            f"{self.outcome:<15}  {self.name}: A {number(self.a)}, B {number(self.b)}, n {self.n}, "
            f"B - A above {number(self.lowest)}, p of a loss {p_value(self.adjusted_p)}; a loss is "
            f"visible from {number(self.visible)} on"
        )


def gate(
    first: Path, second: Path, *, margin: float = MARGIN, min_common: int = MIN_COMMON
) -> list[Check]:
    """Check whether judge B is worse than judge A, over all shared items and on their parts.

    The parts are data sets, people's labels and the divisions of the report's slices. An item
    without a label counts as not right, so that a judge cannot pass by answering less. Whole
    questions are kept together. A judge is no worse where the one-sided interval of the difference
    leaves out a loss of the margin (:func:`lowest_difference`), and worse where the sign-flip test
    of a loss is significant after Holm's correction for all checks.

    Args:
        first: Evaluation folder of judge A.
        second: Evaluation folder of judge B, the upgrade.
        margin: Loss of accuracy that does not matter, 0 to 1.
        min_common: Fewest shared items.

    Returns:
        One check for all items, then one for each part.

    Raises:
        CustosError: As :func:`evaluation.comparisons.compare.compare_evaluations`.
    """
    shared = read_shared(first, second, min_common)
    a, b = (outcomes.right.astype(np.float64) for outcomes in shared.outcomes)
    clusters = shared.outcomes[0].clusters
    parts = list(_parts(shared.examples))
    p_values = [_loss_p((b - a)[part], clusters[part]) for _, part in parts]
    return [
        Check(
            name,
            int(part.sum()),
            float(a[part].mean()),
            float(b[part].mean()),
            *lowest_difference((b - a)[part], clusters[part]),
            adjusted,
            margin,
        )
        for (name, part), adjusted in zip(parts, holm(p_values), strict=True)
    ]


def gate_outcome(checks: Sequence[Check]) -> Outcome:
    """Return what checks show together, the first of them being of all items.

    Worse anywhere is worse. Parts of a file seldom have the rows to be shown no worse, so that this
    is asked of all items alone.
    """
    if any(check.outcome == "worse" for check in checks):
        return "worse"
    return checks[0].outcome


def lowest_difference(differences: Floats, clusters: Ints) -> tuple[float, float]:
    """Return the lower end of a paired difference, and the smallest loss that would be visible.

    The end is the loss that a one-sided score test at 5 % just does not reject (Tango 1998), for
    the effective number of items: items over the design effect and over the squared ratio of
    Student's quantiles for clusters and for items. Unlike Wald's it holds where the judges never
    differ: 150 such items leave out a loss of 2 points, 100 do not.

    Args:
        differences: Second judge less first, by item: -1, 0 or 1. Shape ``[n]``.
        clusters: Cluster of each item. Shape ``[n]``.
    """
    from scipy.special import stdtrit  # slow to import, and most commands need none

    mean, changed, effective, freedom = _summary(differences, clusters)
    if not freedom > 0:
        return -1.0, 1.0
    quantile = float(stdtrit(freedom, 1 - LEVEL))
    low, high = -1.0, mean
    while high - low > PRECISION:
        loss = (low + high) / 2
        is_rejected = tango_score(mean, changed, loss) * np.sqrt(effective) > quantile
        low, high = (loss, high) if is_rejected else (low, loss)
    spread = changed - mean**2
    error = np.sqrt(max(spread, 1 / effective) / effective)  # as if one item at least had changed
    return low, float(min(1.0, (quantile + stdtrit(freedom, POWER)) * error))


def loss_within_p(differences: Floats, clusters: Ints, margin: float) -> float:
    """Return the one-sided p-value of a loss of at least the margin: small if it is less.

    The test is that of :func:`lowest_difference`, whose arguments these are; 1 for a single
    question.
    """
    from scipy.special import stdtr  # slow to import, and most commands need none

    mean, changed, effective, freedom = _summary(differences, clusters)
    if not freedom > 0:
        return 1.0
    return float(stdtr(freedom, -tango_score(mean, changed, -margin) * np.sqrt(effective)))


def _summary(differences: Floats, clusters: Ints) -> tuple[float, float, float, float]:
    """Return mean difference, share of changed items, effective number of items, and freedom."""
    columns = np.stack([differences, np.abs(differences), np.ones(len(differences))], axis=1)
    sums, changes, sizes = cluster_sums(columns, clusters).T
    n, mean, changed = len(differences), float(differences.mean()), float(changes.sum())
    spread = changed / n - mean**2
    found = design_of_sums(sums, sizes, np.asarray(spread), np.asarray(changed))
    return mean, changed / n, n / float(found.effect), float(found.clusters) - 1


def tango_score(mean: float, changed: float, difference: float) -> float:
    """Return the score of Tango (1998) of a true difference, for a single item.

    Args:
        mean: Observed difference of the two rates.
        changed: Share of the items on which exactly one of the two judges is right.
        difference: True difference.
    """
    lost = (changed - mean) / 2
    slope = -changed + (2 - mean) * difference
    root = np.sqrt(slope**2 + 8 * lost * difference * (1 - difference))
    chance_of_loss = (root - slope) / 4
    variance = 2 * chance_of_loss + difference * (1 - difference)
    return float((mean - difference) / np.sqrt(max(variance, PRECISION)))


def _loss_p(differences: Floats, clusters: Ints) -> float:
    """Return the one-sided p-value of a loss; 1 without one."""
    return sign_flip_p(differences, clusters) / 2 if differences.sum() < 0 else 1.0


def _parts(examples: Sequence[LabelledExample]) -> Iterator[tuple[str, Mask]]:
    """Yield the name and the mask of all items, then of every part of them that is not all."""
    yield "all", np.ones(len(examples), dtype=bool)
    named: list[tuple[str, list[str | None]]] = [
        ("data set", [example.source or None for example in examples]),
        ("people's label", [full_label(example) for example in examples]),
        *((name.replace("_", " "), parts) for name, parts in divisions(examples)),
    ]
    for name, parts in named:
        for part in sorted({part for part in parts if part is not None}):
            inside = np.array([other == part for other in parts])
            if not inside.all():
                yield f"{name} {part}", inside
