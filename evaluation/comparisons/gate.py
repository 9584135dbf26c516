"""The test before one judge replaces another: shown to be no worse, worse, or not enough rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from evaluation.comparisons.compare import MIN_COMMON, read_shared
from evaluation.intervals import Mask, holm, sign_flip_p
from evaluation.measure import divisions
from evaluation.outcomes import full_label
from evaluation.paired import LEVEL, lowest_difference
from evaluation.report.markdown import number, p_value
from judging.types import LabelledExample

MARGIN = 0.02
"""Loss of accuracy that does not matter."""
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
        """Decide what is shown of the second judge.

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
    """Check whether judge B is worse than judge A, over all shared items and then on their parts.

    The parts are data sets, people's labels and the divisions of the report's slices. An item
    without a label counts as not right, so that a judge cannot pass by answering less. Whole
    questions are kept together. A judge is no worse where the one-sided interval of the difference
    leaves out a loss of the margin (:func:`~evaluation.paired.lowest_difference`), and worse where
    the sign-flip test of a loss is significant after Holm's correction for all checks. Errors are
    those of :func:`evaluation.comparisons.compare.compare_evaluations`.
    """
    shared = read_shared(first, second, min_common)
    judges = shared.outcomes
    a, b = (outcomes.right.astype(np.float64) for outcomes in judges)
    clusters = judges[0].clusters
    parts = list(_parts(shared.examples))
    p_values = []
    for _, part in parts:
        is_loss = (b - a)[part].sum() < 0
        p = sign_flip_p((b - a)[part], clusters[part]) / 2 if is_loss else 1.0  # one-sided
        p_values.append(p)
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
    """Combine checks into one outcome, the first of them being of all items.

    Worse anywhere is worse. Parts of a file seldom have the rows to be shown no worse, so that this
    is asked of all items alone.
    """
    if any(check.outcome == "worse" for check in checks):
        return "worse"
    return checks[0].outcome


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
