"""The alternative annotator test: could a judge take the place of a person?

It is that of Calderon et al. (2025). Every person is left out in turn. On each row that the person
labelled, the judge and the person are compared with the other people: whose label do more of them
share? The judge wins against the person if the rows show that it loses such comparisons less often
than it wins them plus epsilon, a margin that is what its lower cost is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.estimate import mean, share
from evaluation.intervals import Floats, Ints
from evaluation.metrics import UNSCORED
from evaluation.paired import loss_within_p
from evaluation.people.agreement import MIN_ROWS, PeoplesLabels

EPSILON = 0.1
"""The paper's margin for crowd-workers; .15 for skilled people and .2 for experts."""
FALSE_DISCOVERIES = 0.05
"""Expected share of wins that are none, at most (Benjamini & Yekutieli 2001)."""
PASSES = 0.5
"""Share of the people that the judge has to win against."""


@dataclass(frozen=True)
class Duel:
    """A judge against one person: on which rows either is at least as near to the other people."""

    name: str
    rows: Ints
    """Rows that the person, another person and the judge labelled. Shape ``[m]``."""
    clusters: Ints
    """Question of each of them. Shape ``[m]``."""
    judge: Floats
    """1 where the judge is at least as near as the person, else 0. Shape ``[m]``."""
    person: Floats
    """The same of the person. Shape ``[m]``."""

    @property
    def is_tested(self) -> bool:
        """Tell whether the rows suffice."""
        return len(self.rows) >= MIN_ROWS


def duels(people: PeoplesLabels, judge: Ints) -> list[Duel]:
    """Set a judge against every person; ``UNSCORED`` labels of the judge, ``[n]``, are left out.

    A label is as near to other people as the share of them that gave it; labels that are numbers
    are nearer the smaller their mean squared distance is.
    """
    try:
        numbers = np.array([float(label) for label in people.labels])
        nearness = -((numbers[:, None] - numbers[None, :]) ** 2)  # [K, K]
    except ValueError:
        nearness = np.eye(len(people.labels))
    found = []
    for number, name in enumerate(people.names):
        own, others = people.given[:, number], people.others(number)
        rows = np.flatnonzero(
            (own != UNSCORED) & (judge != UNSCORED) & ~np.isnan(others).any(axis=1)
        )
        by_label = np.round(others[rows] @ nearness, 9)  # [m, K]; sums of thirds may differ
        places = np.arange(len(rows))
        of_judge, of_person = by_label[places, judge[rows]], by_label[places, own[rows]]
        wins, losses = (of_judge >= of_person), (of_person >= of_judge)
        clusters = people.clusters[rows]
        found.append(Duel(name, rows, clusters, wins.astype(np.float64), losses.astype(np.float64)))
    return found


def alternative_annotator_test(
    found: Sequence[Duel], num_rows: int, epsilon: float = EPSILON, seed: int = 0
) -> dict[str, Any]:
    """Test whether a judge could take a person's place.

    The paper tests rows as if none resembled another, by Student's t. Here whole questions are kept
    together, by the score test of :func:`evaluation.paired.loss_within_p`: Student's t calls a
    judge that loses epsilon a winner too often where few rows differ. The winning rate of the
    paper's own test stands beside (``winning_rate_by_rows``).

    The result has ``epsilon``; ``winning_rate`` (share of the people that the judge wins against,
    of those with enough rows) with ``wins`` and ``tested``; ``advantage`` (chance that the judge is
    at least as near to the other people as a random one of these is, with an interval by question);
    ``passes``; and ``people``, by name: ``n``, ``advantage``, ``p`` corrected for the number of
    people, and ``wins``. ``None`` stands for what is not tested.
    """
    from scipy.stats import false_discovery_control  # slow to import

    tested = [duel for duel in found if duel.is_tested]
    people: dict[str, dict[str, Any]] = {}
    for duel in found:
        if len(duel.rows):
            all_rows = np.ones(len(duel.rows), dtype=bool)
            advantage = share(duel.judge > 0, all_rows, duel.clusters, seed)
            untested = {"n": len(duel.rows), "advantage": advantage, "p": None, "wins": None}
            people[duel.name] = untested
    result: dict[str, Any] = {
        "epsilon": epsilon,
        "tested": len(tested),
        "wins": 0,
        "winning_rate": None,
        "winning_rate_by_rows": None,
        "advantage": None,
        "passes": None,
        "people": people,
    }
    if not tested:
        return result
    p_values = [loss_within_p(duel.judge - duel.person, duel.clusters, epsilon) for duel in tested]
    by_rows = [_student_p(duel.person - duel.judge, epsilon) for duel in tested]
    corrected = false_discovery_control(p_values, method="by").tolist()
    for duel, p in zip(tested, corrected, strict=True):
        people[duel.name] |= {"p": p, "wins": p <= FALSE_DISCOVERIES}
    wins = sum(people[duel.name]["wins"] for duel in tested)
    published = false_discovery_control(by_rows, method="by") <= FALSE_DISCOVERIES
    values, clusters = advantage_by_row(tested, num_rows)
    estimate = mean(values, np.ones(len(values), dtype=bool), clusters, seed)
    low, high = max(0.0, estimate["low"]), min(1.0, estimate["high"])
    return result | {
        "wins": wins,
        "winning_rate": wins / len(tested),
        "winning_rate_by_rows": float(published.mean()),
        "advantage": {**estimate, "low": low, "high": high},
        "passes": wins / len(tested) >= PASSES,
    }


def advantage_by_row(tested: Sequence[Duel], num_rows: int) -> tuple[Floats, Ints]:
    """Compute a number for each row, whose mean is the mean advantage and varies as it does.

    A row adds, for each person, how far its success is from the person's share, over the number of
    the person's rows (the linear form of a mean of ratios). The questions stand beside; rows that
    nobody tested labelled are left out. Shape ``[m]`` each.
    """
    deviations, clusters = np.zeros(num_rows), np.full(num_rows, -1, dtype=np.int64)
    shares = [float(duel.judge.mean()) for duel in tested]
    for duel, of_person in zip(tested, shares, strict=True):
        deviations[duel.rows] += (duel.judge - of_person) / (len(duel.rows) * len(tested))
        clusters[duel.rows] = duel.clusters
    used = clusters >= 0
    return np.mean(shares) + deviations[used] * used.sum(), clusters[used]


def _student_p(losses: Floats, epsilon: float) -> float:
    """Test, one-sided, by Student's t over rows, for losses of at least epsilon.

    Without spread there is no doubt: the p-value is 0 or 1.
    """
    from scipy.special import stdtr  # slow to import, and most commands need none

    gap, error = losses.mean() - epsilon, losses.std(ddof=1) / np.sqrt(len(losses))
    if not error:
        return float(gap >= 0)
    return float(stdtr(len(losses) - 1, gap / error))
