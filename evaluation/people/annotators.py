"""Several people's labels of the same rows: how far they agree, and a judge in place of one.

The alternative annotator test is that of Calderon et al. (2025). Every person is left out in turn.
On each row that the person labelled, the judge and the person are compared with the other people:
whose label do more of them share? The judge wins against the person if the rows show that it loses
such comparisons less often than it wins them plus epsilon, a margin that is what its lower cost is
worth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.estimate import Draws, loss_within_p, mean, share
from evaluation.intervals import Floats, Ints, ratio
from evaluation.metrics import UNSCORED
from evaluation.outcomes import Outcomes, gather
from evaluation.people.agreement import (
    MIN_ROWS,
    PeoplesLabels,
    agreement_and_kappa,
    differences,
    gather_people,
    krippendorff_alpha,
    mean_share,
    people_with_each_other,
    side_columns,
)
from judging.types import LabelledExample, Verdict

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
    """Set a judge, whose labels may be ``UNSCORED``, ``[n]``, against every person.

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
        is_whole = ~np.isnan(others).any(axis=1)
        rows = np.flatnonzero((own != UNSCORED) & (judge != UNSCORED) & is_whole)
        by_label = np.round(others[rows] @ nearness, 9)  # [m, K]; sums of thirds may differ
        places = np.arange(len(rows))
        of_judge, of_person = by_label[places, judge[rows]], by_label[places, own[rows]]
        near = [(of_judge >= of_person).astype(float), (of_person >= of_judge).astype(float)]
        found.append(Duel(name, rows, people.clusters[rows], *near))
    return found


def alternative_annotator_test(
    found: Sequence[Duel], num_rows: int, epsilon: float = EPSILON, seed: int = 0
) -> dict[str, Any]:
    """Test whether a judge could take a person's place.

    The paper tests rows as if none resembled another, by Student's t. Here whole questions are kept
    together, by the score test of :func:`evaluation.estimate.loss_within_p`: Student's t calls a
    judge that loses epsilon a winner too often where few rows differ. The winning rate of the
    paper's own test stands beside (``winning_rate_by_rows``).

    The result has ``winning_rate`` (share of the people that the judge wins against, of those with
    enough rows) with ``wins`` and ``tested``; ``advantage`` (chance that the judge is at least as
    near to the other people as a random one of these is); ``passes``; and ``people``, by name:
    ``n``, ``advantage``, ``p`` corrected for the number of people, and ``wins``. ``None`` stands
    for what is not tested.
    """
    from scipy.stats import false_discovery_control  # slow to import

    tested = [duel for duel in found if duel.is_tested]
    people: dict[str, dict[str, Any]] = {}
    for duel in found:
        if n := len(duel.rows):
            advantage = share(duel.judge > 0, None, duel.clusters)
            people[duel.name] = {"n": n, "advantage": advantage, "p": None, "wins": None}
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
    estimate = mean(values, None, clusters, seed, bounds=(0.0, 1.0))
    if np.isnan(estimate["low"]):  # the judge is as near on all rows, or on none
        estimate = share(values, None, clusters)
    return result | {
        "wins": wins,
        "winning_rate": wins / len(tested),
        "winning_rate_by_rows": float(published.mean()),
        "advantage": estimate,
        "passes": wins / len(tested) >= PASSES,
    }


def advantage_by_row(tested: Sequence[Duel], num_rows: int) -> tuple[Floats, Ints]:
    """Compute a number for each row, whose mean is the mean advantage and varies as it does.

    A row adds, for each person, how far its success is from the person's share, over the number of
    the person's rows (the linear form of a mean of ratios). The questions stand beside. Both are of
    the rows that somebody tested labelled: ``[m]``.
    """
    deviations, clusters = np.zeros(num_rows), np.full(num_rows, -1, dtype=np.int64)
    shares = [float(duel.judge.mean()) for duel in tested]
    for duel, of_person in zip(tested, shares, strict=True):
        deviations[duel.rows] += (duel.judge - of_person) / (len(duel.rows) * len(tested))
        clusters[duel.rows] = duel.clusters
    used = clusters >= 0
    return np.mean(shares) + deviations[used] * used.sum(), clusters[used]


def _student_p(losses: Floats, epsilon: float) -> float:
    """Test, one-sided, by Student's t over rows, for losses of at least epsilon."""
    from scipy.special import stdtr  # slow to import, and most commands need none

    gap, error = losses.mean() - epsilon, losses.std(ddof=1) / np.sqrt(len(losses))
    if not error:
        return float(gap >= 0)
    return float(stdtr(len(losses) - 1, gap / error))


SMALLEST = float(np.finfo(np.float64).eps)
"""Probabilities are raised to this, as in :func:`evaluation.metrics.negative_log_likelihoods`."""


def measure_people(
    examples: Sequence[LabelledExample],
    judge: Outcomes,
    rivals: Mapping[str, Sequence[Verdict]] | None = None,
    epsilon: float = EPSILON,
    seed: int = 0,
) -> dict[str, Any] | None:
    """Measure people with each other, and a judge with them.

    Rows that one person labelled, or none, are left out, and those without a label of the judge of
    all but ``alpha`` and ``n``: people and judge are compared on the same rows. The result is
    ``None`` without rows of two people, or without a label of the judge on one. Else it has

    - ``names``, ``n`` (rows of two people or more), ``per_row`` (mean number of people of such a
      row), ``ties`` (rows without a single most frequent label), ``n_common`` (rows with a label of
      the judge too), ``questions`` (of these);
    - ``alpha`` of :func:`evaluation.people.agreement.krippendorff_alpha`;
    - ``people`` (two people of a row, drawn at random), ``judge`` (the judge and one of them),
      ``best`` (a judge that always gives a most frequent label: none could agree on more rows) and
      ``judge_minus_people``, each with ``agreement`` and ``kappa``;
    - ``each``: for every person by name ``person`` (the person and the others of the row, drawn at
      random) and ``judge`` (the judge and these others), ``judge_minus_person`` (of the
      agreements), and ``n``, ``advantage``, ``p`` and ``wins`` of the test;
    - ``alternative``: :func:`alternative_annotator_test`;
    - ``others``: ``agreement`` with a person, ``advantage`` and ``winning_rate`` of the rivals;
    - ``soft``: :func:`soft_labels`.
    """
    people = gather_people(examples, judge.labels)
    if people is None:
        return None
    several = people.num_people >= 2
    common = several & judge.scored
    if not common.any():
        return None
    shared, judged = people.take(common), judge.take(common)
    shares, same = people_with_each_other(shared)
    sides = {
        "people": side_columns(shares, shares, same),
        "judge": side_columns(_one_hot(shared, judged.predicted), shares),
        "best": side_columns(_one_hot(shared, shared.counts.argmax(axis=1)), shares),
    }
    counts = people.counts[several]
    most = counts.max(axis=1, keepdims=True)
    test = alternative_annotator_test(duels(shared, judged.predicted), len(judged), epsilon, seed)
    each = {
        name: {**_beside_others(shared, judged, number, seed), **test["people"][name]}
        for number, name in enumerate(people.names)
        if name in test["people"]
    }
    return {
        "names": list(people.names),
        "n": int(several.sum()),
        "per_row": float(people.num_people[several].mean()),
        "ties": int(((counts == most).sum(axis=1) > 1).sum()),
        "n_common": int(common.sum()),
        "questions": len(np.unique(shared.clusters)),
        "alpha": krippendorff_alpha(people, seed),
        **{name: agreement_and_kappa(of, shared.clusters, seed) for name, of in sides.items()},
        "judge_minus_people": differences(sides["judge"], sides["people"], shared.clusters, seed),
        "each": each,
        "alternative": {name: value for name, value in test.items() if name != "people"},
        "others": {
            name: _rival(shared, gather(examples, rival, judge.labels).take(common), epsilon, seed)
            for name, rival in (rivals or {}).items()
        },
        "soft": soft_labels(shared, judged, seed),
    }


def second_annotator(examples: Sequence[LabelledExample], judge: Outcomes) -> dict[str, Any] | None:
    """Count with whom the judge sides where two people differ, if there are no more than two.

    Beside ``n_second`` (rows with a second label), ``sides_with`` says how often it gives the label
    of the ``first``, of the ``second`` or of ``neither``. ``None`` without two people, or without a
    label of the judge on a row of theirs.
    """
    people = gather_people(examples, judge.labels)
    if people is None or len(people.names) != 2:
        return None
    both = people.num_people == 2
    common = both & judge.scored
    if not common.any():
        return None
    given, predicted = people.given[common], judge.predicted[common]
    differ, with_judge = given[:, 0] != given[:, 1], given.T == predicted
    return {
        "n_second": int(both.sum()),
        "sides_with": {
            "first": int((differ & with_judge[0]).sum()),
            "second": int((differ & with_judge[1]).sum()),
            "neither": int((differ & ~with_judge.any(axis=0)).sum()),
        },
    }


def soft_labels(people: PeoplesLabels, judge: Outcomes, seed: int = 0) -> dict[str, Any] | None:
    """Measure a judge's probabilities against the shares of two or more people for each label.

    Over the rows with probabilities (``None`` without any) there are ``n``; ``cross_entropy`` in
    nats, and ``entropy`` of the shares, which no judge could be below; ``brier``, the squared
    distance summed over labels; ``entropy_correlation`` of the judge's entropy and people's.
    ``unanimous`` and ``split``, for rows on which people agree and differ, have ``agreement`` (the
    judge gives a most frequent label) and mean ``confidence``, each with its number of rows.
    """
    known = np.asarray(~np.isnan(judge.probabilities).any(axis=1))
    if not known.any():
        return None
    people, judge = people.take(known), judge.take(known)
    shares, clusters = people.counts / people.num_people[:, None], people.clusters
    chances = np.maximum(judge.probabilities, SMALLEST)
    own = -np.sum(shares * np.log(np.maximum(shares, SMALLEST)), axis=1)
    of_judge = -np.sum(chances * np.log(chances), axis=1)
    commonest = shares == shares.max(axis=1, keepdims=True)
    agrees = commonest[np.arange(len(shares)), judge.predicted]
    unanimous = shares.max(axis=1) == 1
    columns = [np.ones(len(own)), own, of_judge, own**2, of_judge**2, own * of_judge]
    moments = Draws.of(np.stack(columns, axis=1).astype(np.float64), clusters, seed)
    parts = {
        name: {
            "agreement": share(agrees, rows, clusters),
            "confidence": mean(judge.confidence, rows, clusters, seed, bounds=(0.0, 1.0)),
        }
        for name, rows in (("unanimous", unanimous), ("split", ~unanimous))
        if rows.any()
    }
    crossed = -np.sum(shares * np.log(chances), axis=1)
    squares = np.sum((judge.probabilities - shares) ** 2, axis=1)
    return {
        "n": len(shares),
        "cross_entropy": mean(crossed, None, clusters, seed, bounds=(0.0, math.inf)),
        "entropy": mean(own, None, clusters, seed, bounds=(0.0, math.log(shares.shape[1]))),
        "brier": mean(squares, None, clusters, seed, bounds=(0.0, 2.0)),
        "entropy_correlation": moments.estimate(_correlation, len(shares), (-1.0, 1.0)),
        **parts,
    }


def _beside_others(
    people: PeoplesLabels, judge: Outcomes, person: int, seed: int
) -> dict[str, Any]:
    """Measure a person and the judge with the other people, on the rows of that person."""
    rows = (people.given[:, person] != UNSCORED) & (people.num_people > 1)
    of_person, clusters = people.take(rows), people.clusters[rows]
    others = of_person.others(person)
    own = side_columns(_one_hot(of_person, of_person.given[:, person]), others)
    of_judge = side_columns(_one_hot(of_person, judge.predicted[rows]), others)
    return {
        "person": agreement_and_kappa(own, clusters, seed),
        "judge": agreement_and_kappa(of_judge, clusters, seed),
        "judge_minus_person": differences(of_judge, own, clusters, seed, ["agreement"]),
    }


def _rival(people: PeoplesLabels, rival: Outcomes, epsilon: float, seed: int) -> dict[str, Any]:
    """Measure another judge on the rows that it labels."""
    people, rival = people.take(rival.scored), rival.take(rival.scored)
    if not len(rival):
        return {"agreement": None, "advantage": None, "winning_rate": None}
    shares = people.counts / people.num_people[:, None]
    test = alternative_annotator_test(duels(people, rival.predicted), len(rival), epsilon, seed)
    agreement = shares[np.arange(len(rival)), rival.predicted]
    return {
        "agreement": mean_share(agreement, people.clusters, seed),
        "advantage": test["advantage"],
        "winning_rate": test["winning_rate"],
    }


def _one_hot(people: PeoplesLabels, given: Any) -> Floats:
    """Write labels as shares, ``[n]`` to ``[n, K]``; zeros where there is none."""
    return np.asarray(np.arange(len(people.labels)) == np.asarray(given)[:, None], np.float64)


def _correlation(sums: Floats) -> Floats:
    """Compute Pearson's correlation from sums of 1, x, y, x squared, y squared and x y."""
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    spread = np.maximum(n * xx - x * x, 0) * np.maximum(n * yy - y * y, 0)
    return ratio(n * xy - x * y, np.sqrt(spread))
