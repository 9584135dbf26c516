"""Shares of rows with intervals, where rows on one question are not independent."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from evaluation.correction.intervals import clustered_rate
from evaluation.intervals import number_clusters


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
    """With no hits: upper bound of the share at one-sided 95 % for these very wordings, three over
    the number of clusters. ``None`` with hits."""
    wordings: int = 1
    """Number of wordings that the interval allows for."""


def measure_share(
    hits: Sequence[bool],
    clusters: Sequence[Hashable],
    wordings: Sequence[Hashable] | None = None,
) -> Share:
    """Return the share of hits; its interval allows for likeness of the rows of a cluster.

    Args:
        hits: Whether each row is a hit.
        clusters: Cluster of each row.
        wordings: Wording of each row. With several, the interval is about other wordings too.
    """
    n, num_hits = len(hits), sum(hits)
    if not n:
        return Share(hits=0, n=0, value=None, low=None, high=None, rule_of_three=None)
    low, high = clustered_rate(
        np.array(hits, dtype=np.float64),
        number_clusters(clusters),
        None if wordings is None else number_clusters(wordings),
    )
    return Share(
        hits=num_hits,
        n=n,
        value=num_hits / n,
        low=low,
        high=high,
        rule_of_three=None if num_hits else min(1.0, 3 / len(set(clusters))),
        wordings=1 if wordings is None else len(set(wordings)),
    )
