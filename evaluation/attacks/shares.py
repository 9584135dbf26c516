"""Shares of rows with intervals, where rows on one question are not independent."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from evaluation.intervals import cluster_standard_error, number_clusters, wilson_interval


class Share(BaseModel):
    """A share of rows with its 95 % interval."""

    model_config = ConfigDict(frozen=True)

    hits: int
    n: int
    value: float | None
    """``hits / n``; ``None`` without rows, like the ends of the interval."""
    low: float | None
    high: float | None
    rule_of_three: float | None
    """With no hits: upper bound of the share at one-sided 95 %, three over the number of clusters.
    ``None`` with hits."""


def measure_share(hits: Sequence[bool], clusters: Sequence[Hashable]) -> Share:
    """Return the share of hits with Wilson's interval over an effective number of rows.

    Rows of a cluster resemble each other. The effective number of rows is the one at which
    independent rows would give the clustered standard error: ``p (1 - p) / se²``. It is at most the
    number of rows, and it is the number of clusters where the share is 0 or 1.

    Args:
        hits: Whether each row is a hit.
        clusters: Cluster of each row.
    """
    n, num_hits, num_clusters = len(hits), sum(hits), len(set(clusters))
    if not n:
        return Share(hits=0, n=0, value=None, low=None, high=None, rule_of_three=None)
    share, effective = num_hits / n, float(num_clusters)
    error = cluster_standard_error(np.array(hits, dtype=np.float64), number_clusters(clusters))
    if error > 0 and 0 < share < 1:
        # Without the small-sample factor, so that rows of their own clusters count as they are.
        variance = error**2 * (num_clusters - 1) / num_clusters
        effective = min(float(n), share * (1 - share) / variance)
    low, high = wilson_interval(share * effective, effective)
    return Share(
        hits=num_hits,
        n=n,
        value=share,
        low=low,
        high=high,
        rule_of_three=None if num_hits else min(1.0, 3 / num_clusters),
    )
