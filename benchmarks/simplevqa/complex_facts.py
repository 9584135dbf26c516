"""SimpleVQA's complex fact questions (CFQ): did a model not see the subject, or not know of it?

Each such item is asked three times: as it is (Origin), for its subject alone (Atomic), and with the
subject given (Atomic-Given). Paper section 4.4, Table 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.framework.tables import OVERALL, Ratio, intervals

ORIGIN, ATOMIC, ATOMIC_GIVEN = "Origin", "Atomic", "Atomic-Given"
FORMS = (ORIGIN, ATOMIC, ATOMIC_GIVEN)

_CAUSES = ("did not see", "did not know", "neither saw nor knew", "saw and knew")


def measure_complex_facts(
    right: Sequence[tuple[bool | None, bool | None, bool | None]], clusters: Sequence[str]
) -> dict[str, Any]:
    """Accuracy in each form, and what the failures in the original form come from.

    A failure whose subject is not recognised, and which the subject's name mends, is one of seeing;
    one whose subject is recognised and which its name does not mend, one of knowing.

    Args:
        right: Whether each item is right as Origin, Atomic and Atomic-Given; items with a ``None``
            are left out.
        clusters: Cluster of each item.

    Returns:
        Estimates: ``Origin``, ``Atomic``, ``Atomic-Given`` over the items that have all three, and
        the four causes as shares of those of them that are wrong as Origin.
    """
    kept = [(known, cluster) for known, cluster in zip(right, clusters, strict=True)
            if None not in known]  # fmt: skip
    said = np.array([known for known, _ in kept], dtype=bool).reshape(-1, 3)
    origin, atomic, given = said.T
    causes = [~atomic & given, atomic & ~given, ~atomic & ~given, atomic & given]
    failed = [~origin & cause for cause in causes]
    columns = np.stack([np.ones(len(said)), origin, atomic, given, ~origin, *failed], axis=1)

    def over(place: int, whole: int) -> Ratio:
        one_hot = np.eye(columns.shape[1])
        return Ratio(tuple(one_hot[place]), tuple(one_hot[whole]))

    metrics = {form: over(1 + number, 0) for number, form in enumerate(FORMS)}
    metrics |= {cause: over(5 + number, 4) for number, cause in enumerate(_CAUSES)}
    found: dict[str, Any] = intervals(
        columns.astype(np.float64), [cluster for _, cluster in kept], metrics, {}
    )[OVERALL]
    return found
