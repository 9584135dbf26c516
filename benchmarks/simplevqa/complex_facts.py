"""SimpleVQA's complex fact questions (CFQ): did a model not see the subject, or not know of it?

Each such item is asked three times: as it is (Origin), for its subject alone (Atomic), and with the
subject given (Atomic-Given). Paper section 4, Table 5.
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
    """Measure the accuracy in each form, and the causes of failures in the original form.

    A model did not see if it does not recognise the subject and answers right once the subject is
    given. It did not know if it recognises the subject and still answers wrong once it is given.

    Args:
        right: Whether each item is right as Origin, Atomic and Atomic-Given; ``None`` where it was
            not asked, or the conclusion cannot be read.
        clusters: Cluster of each item.

    Returns:
        Estimates: ``Origin``, ``Atomic``, ``Atomic-Given``, each over its own items, and the four
        causes as shares of the items that have all three forms and are wrong as Origin.
    """
    known = np.array([[one is not None for one in by_form] for by_form in right])
    rights = np.array([[bool(one) for one in by_form] for by_form in right])
    _, atomic, given = rights.T
    failed = known.all(axis=1) & ~rights[:, 0]
    causes = [~atomic & given, atomic & ~given, ~atomic & ~given, atomic & given]
    columns = np.column_stack([rights, known, failed, *(failed & cause for cause in causes)])
    one_hot = np.eye(columns.shape[1])

    def share(part: int, whole: int) -> Ratio:
        return Ratio(tuple(one_hot[part]), tuple(one_hot[whole]))

    metrics = {form: share(number, 3 + number) for number, form in enumerate(FORMS)}
    metrics |= {cause: share(7 + number, 6) for number, cause in enumerate(_CAUSES)}
    measured: dict[str, Any] = intervals(columns.astype(np.float64), clusters, metrics, {})
    return dict(measured[OVERALL])
