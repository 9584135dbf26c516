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
    """Measure the accuracy in each form, and the causes of failures in the original form.

    A model did not see if it does not recognise the subject and answers right once the subject is
    given. It did not know if it recognises the subject and still answers wrong once it is given.

    Args:
        right: Whether each item is right as Origin, Atomic and Atomic-Given; items with a ``None``
            are left out.
        clusters: Cluster of each item.

    Returns:
        Estimates: ``Origin``, ``Atomic``, ``Atomic-Given`` over the items that have all three, and
        the four causes as shares of those of them that are wrong as Origin.
    """
    complete = [index for index, by_form in enumerate(right) if None not in by_form]
    origin, atomic, given = np.array([right[i] for i in complete], dtype=bool).reshape(-1, 3).T
    causes = [~atomic & given, atomic & ~given, ~atomic & ~given, atomic & given]
    failures = [~origin & cause for cause in causes]
    columns = np.stack(
        [np.ones(len(complete)), origin, atomic, given, ~origin, *failures], axis=1
    ).astype(np.float64)
    one_hot = np.eye(columns.shape[1])

    def share(part: int, whole: int) -> Ratio:
        return Ratio(tuple(one_hot[part]), tuple(one_hot[whole]))

    metrics = {form: share(1 + number, 0) for number, form in enumerate(FORMS)}
    metrics |= {cause: share(5 + number, 4) for number, cause in enumerate(_CAUSES)}
    measured: dict[str, Any] = intervals(columns, [clusters[i] for i in complete], metrics, {})
    return dict(measured[OVERALL])
