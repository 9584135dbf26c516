"""Does the judge order the answering systems as people do?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evaluation.intervals import (
    RESAMPLES,
    Floats,
    cluster_sums,
    kendall_tau_b,
    percentile_interval,
    rate_interval,
    resample_clusters,
)
from evaluation.measure import CORRECT
from evaluation.metrics import ratio
from evaluation.outcomes import Outcomes
from judging.types import score_of


def rank_answerers(
    outcomes: Outcomes, answerers: Sequence[str | None], resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, Any] | None:
    """Compare the share of Correct answers per answering system, by people and by the judge.

    Both shares are over the items the judge scored, so that they differ by judgement alone.

    Args:
        outcomes: What people and the judge said.
        answerers: The system behind each item; ``None`` leaves the item out. Length ``n``.
        resamples: Bootstrap resamples; a question takes its answers by all systems along.
        seed: Seed of the resamples.

    Returns:
        ``answerers`` (best first by people; each ``n``, ``people`` and ``judge``) and
        ``kendall_tau`` (tau-b of the two orders). ``None`` with fewer than two systems, or with
        labels that do not include Correct.
    """
    names = sorted({name for name in answerers if name is not None})
    correct = [i for i, label in enumerate(outcomes.labels) if score_of(label) == CORRECT]
    if len(names) < 2 or not correct:
        return None
    theirs = np.array([[answerer == name for name in names] for answerer in answerers], dtype=float)
    theirs *= outcomes.scored[:, None]
    columns = np.stack(
        [
            theirs,
            theirs * np.isin(outcomes.human, correct)[:, None],
            theirs * np.isin(outcomes.predicted, correct)[:, None],
        ],
        axis=1,
    )  # [n, 3, m]
    sums = cluster_sums(columns.reshape(len(outcomes), -1), outcomes.clusters)
    total = sums.sum(axis=0).reshape(3, -1)  # [3, m]
    answered = (sums[:, : len(names)] > 0).sum(axis=0)  # clusters of each system, [m]
    drawn = resample_clusters(sums, resamples, seed).reshape(resamples, 3, -1)  # [B, 3, m]
    people, judge = ratio(total[1], total[0]), ratio(total[2], total[0])
    people_drawn = ratio(drawn[:, 1], drawn[:, 0])
    judge_drawn = ratio(drawn[:, 2], drawn[:, 0])
    tau = percentile_interval(kendall_tau_b(people_drawn, judge_drawn))
    rows = {
        names[i]: {
            "n": int(total[0, i]),
            "people": _share(people[i], people_drawn[:, i], answered[i]),
            "judge": _share(judge[i], judge_drawn[:, i], answered[i]),
        }
        for i in np.argsort(-people, kind="stable")
    }
    value = float(kendall_tau_b(people, judge))
    return {
        "answerers": rows,
        "kendall_tau": {"value": value, "low": tau.low, "high": tau.high, "n": len(names)},
    }


def _share(value: float, drawn: Floats, clusters: int) -> dict[str, float]:
    interval = rate_interval(value, drawn, clusters)
    return {"value": float(value), "low": interval.low, "high": interval.high}
