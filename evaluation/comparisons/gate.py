"""The test before one judge replaces another: it must be measurably worse nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluation.comparisons.compare import MIN_COMMON, read_shared
from evaluation.estimate import Mask
from evaluation.intervals import Floats, Ints, cluster_sums
from evaluation.outcomes import full_label
from evaluation.report.markdown import number, p_value
from evaluation.slices import divisions
from judging.types import LabelledExample

LEVEL = 0.05
"""Largest probability that a judge which is nowhere worse is refused."""


@dataclass(frozen=True)
class Check:
    """The accuracies of two judges on one part of the items that they share."""

    name: str
    n: int
    a: float
    b: float
    p: float
    """Probability of so large a loss or a larger one if neither judge were better."""
    adjusted_p: float
    """The same after Holm's correction for all checks."""

    @property
    def is_worse(self) -> bool:
        """Return whether the second judge is significantly worse."""
        return self.adjusted_p <= LEVEL

    def __str__(self) -> str:
        verdict = "worse" if self.is_worse else "ok   "
        return (
            f"{verdict}  {self.name}: A {number(self.a)}, B {number(self.b)}, n {self.n}, "
            f"p {p_value(self.p)}, corrected {p_value(self.adjusted_p)}"
        )


def gate(first: Path, second: Path, *, min_common: int = MIN_COMMON) -> list[Check]:
    """Check whether judge B is worse than judge A, over all shared items and on their parts.

    The parts are data sets, people's labels and the divisions of the report's slices. An item
    without a label counts as not right, so that a judge cannot pass by answering less. Each test
    is one-sided, paired and exact: it weighs all ways to flip the signs of the differences of whole
    questions, which for one item a question is McNemar's test.

    Args:
        first: Evaluation folder of judge A.
        second: Evaluation folder of judge B, the upgrade.
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
    p_values = [sign_flip_p((b - a)[part], clusters[part]) for _, part in parts]
    return [
        Check(name, int(part.sum()), float(a[part].mean()), float(b[part].mean()), p, adjusted)
        for (name, part), p, adjusted in zip(parts, p_values, holm(p_values), strict=True)
    ]


def sign_flip_p(differences: Floats, clusters: Ints) -> float:
    """Return how likely a sum so low or lower is if the sign of each cluster's sum were chance.

    Args:
        differences: Second judge less first, by item: -1, 0 or 1. Shape ``[n]``.
        clusters: Items with the same number change their sign together. Shape ``[n]``.
    """
    sums = cluster_sums(differences[:, None], clusters)[:, 0].astype(np.int64)
    # Chance of every number of items that the clusters with a negative sign lose together.
    chances = np.zeros(int(np.abs(sums).sum()) + 1)
    chances[0] = 1
    for size in np.abs(sums[sums != 0]).tolist():
        chances[size:] = (chances[size:] + chances[:-size]) / 2
        chances[:size] /= 2
    num_lost = -int(sums[sums < 0].sum())
    return min(1.0, float(chances[num_lost:].sum()))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number by Holm's method (1979), in the same order."""
    order = np.argsort(p_values)
    corrected = np.array(p_values)[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(corrected), 1)
    return [float(value) for value in adjusted]


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
