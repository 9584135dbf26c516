"""Whom a judge favours: its errors on each answering system beside those on all the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np

from evaluation.estimate import share
from evaluation.intervals import (
    TINY,
    Floats,
    Ints,
    Mask,
    cluster_sums,
    design,
    design_bounds,
    ratio,
    share_of_flips,
    sign_flips,
)
from evaluation.outcomes import Outcomes
from evaluation.ranking.bradley_terry import MAX_ANSWERERS, correct_labels

SHOWN = 0.05
"""Largest p-value, corrected for the number of systems, at which a system is called favoured or
harmed. Its interval must not hold 0 either."""
FAMILY_WORDS: Mapping[str, tuple[str, ...]] = {
    "qwen": ("qwen", "qwq", "qvq"),
    "smollm": ("smollm", "smolvlm"),
}
"""Families of backbones, with the words that names of their models hold."""


def family_of(backbone: str) -> str:
    """Name the family in :data:`FAMILY_WORDS` of a backbone, by the name that custos gives it."""
    return "smollm" if backbone.partition("@")[0] == "embedded" else "qwen"


def favour(
    outcomes: Outcomes, answerers: Sequence[str | None], family: str | None = None
) -> dict[str, Any] | None:
    """Compare the judge's errors on each answering system with those on the other systems.

    The bias of a system is the share of its answers that the judge calls Correct, less the share
    that people do. A judge that is lenient throughout favours nobody: each system's bias is taken
    less that on all rows of the other systems. ``like_for_like`` compares rows with the same label
    of people only. A judge that errs equally often on all takes most from the system with the most
    right answers to lose, and has a difference there and none here.

    Only items that the judge scored count. ``answerers`` are the systems, ``None`` leaving an item
    out, and ``family`` is the judge's in :data:`FAMILY_WORDS`, where it is known.

    Returns:
        ``systems`` (the most favoured first), ``family``, and ``own_family``: the ``names`` of
        systems of the judge's own family, and the figures of all their rows together; ``None``
        without such systems. The figures are ``n``, ``bias``, ``difference`` (the bias less the
        others'), ``like_for_like``, ``false_positives`` and ``false_negatives`` (shares of the
        answers that people do not call Correct and that they do), ``p`` of :func:`flip_p` on the
        difference, and ``finding``: ``favoured``, ``harmed`` or ``not shown``. ``None`` with fewer
        than two systems or more than ``MAX_ANSWERERS``, or with labels that do not include Correct.
    """
    rows = outcomes.scored & np.array([each is not None for each in answerers], dtype=bool)
    groups = _systems(compress(answerers, rows))
    if not groups or not correct_labels(outcomes):
        return None
    kept = outcomes.take(rows)
    judge, people = (np.isin(side, correct_labels(kept)) for side in (kept.predicted, kept.human))
    words = FAMILY_WORDS[family] if family else ()
    own = [name for name in groups if any(word in name.lower() for word in words)]

    def figures(members: Mapping[str, Mask]) -> dict[str, dict[str, Any]]:
        compared = differences_from_others(judge, people, members, kept.clusters)
        for name, group in members.items():
            # The group's share of Correct less what the others' shares give on its labels.
            parts = [inside & label for label in (people, ~people) for inside in (group, ~group)]
            right = float(people[group].mean())
            compared[name] |= {
                "like_for_like": weighted_rates(
                    np.repeat(judge[:, None], len(parts), axis=1),
                    np.stack(parts, axis=1),
                    np.array([right, -right, 1 - right, right - 1]),
                    kept.clusters,
                ),
                "false_positives": share(judge, group & ~people, kept.clusters),
                "false_negatives": share(~judge, group & people, kept.clusters),
            }
        return compared

    own_family = None
    if own and len(own) < len(groups):
        together = figures({"own": np.any([groups[name] for name in own], axis=0)})
        own_family = {"names": own, **together["own"]}
    return {
        "systems": _most_favoured_first(figures(groups)),
        "family": family,
        "own_family": own_family,
    }


def favour_change(
    first: Outcomes, second: Outcomes, answerers: Sequence[str | None]
) -> dict[str, Any] | None:
    """Compare whom two judges favour, on items that both scored; ``None`` as :func:`favour`.

    ``systems``, those first that the second judge favours most beside the first, have the figures
    of :func:`differences_from_others`.
    """
    rows = np.array([each is not None for each in answerers], dtype=bool)
    groups = _systems(compress(answerers, rows))
    if not groups or not correct_labels(first):
        return None
    of_first, of_second = (
        np.isin(side.predicted[rows], correct_labels(side)) for side in (first, second)
    )
    figures = differences_from_others(of_second, of_first, groups, first.clusters[rows])
    return {"systems": _most_favoured_first(figures)}


def differences_from_others(
    first: Mask, second: Mask, groups: Mapping[str, Mask], clusters: Ints
) -> dict[str, dict[str, Any]]:
    """Compare how far one judge calls more items Correct than another one, by groups of items.

    The second may be people. No group has all items. Shapes ``[n]``. Each group has ``n``;
    ``bias``, the first judge's share less the second's; ``difference``, the bias less that on all
    other items; ``p`` and ``finding``.
    """
    surplus = first.astype(np.float64) - second
    # Without their mean, the sums of clusters that have members of one group alone are about 0 too.
    surplus -= surplus.mean()
    parts = [np.where(group, 1 / group.sum(), -1 / (~group).sum()) for group in groups.values()]
    p_values = flip_p(cluster_sums(np.stack(parts, axis=1) * surplus[:, None], clusters))
    only = np.stack([first & ~second, second & ~first], axis=1)
    found = {}
    for (name, group), p in zip(groups.items(), p_values.tolist(), strict=True):
        inside, outside = np.stack([group, group], axis=1), np.stack([~group, ~group], axis=1)
        signs = np.array([1.0, -1.0])
        difference = weighted_rates(
            np.concatenate([only, only], axis=1),
            np.concatenate([inside, outside], axis=1),
            np.concatenate([signs, -signs]),
            clusters,
        )
        is_shown = p <= SHOWN and (difference["low"] > 0 or difference["high"] < 0)
        direction = "favoured" if difference["value"] > 0 else "harmed"
        found[name] = {
            "n": int(group.sum()),
            "bias": weighted_rates(only, inside, signs, clusters),
            "difference": difference,
            "p": p,
            "finding": direction if is_shown else "not shown",
        }
    return found


def _most_favoured_first(figures: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return dict(sorted(figures.items(), key=lambda item: -item[1]["difference"]["value"]))


def flip_p(sums: Floats) -> Floats:
    """Test whether sums over clusters are 0, corrected for their number. ``[C, m]`` to ``[m]``.

    The signs of whole clusters are flipped (:func:`~evaluation.intervals.sign_flips`), for all sums
    at once. The p-value of a sum is the share of flips in which the largest of all sums, each in
    units of its own spread, is as large or larger (Westfall & Young 1993), which bounds the chance
    of calling any of them apart from 0 that is not.
    """
    sums = sums[np.abs(sums).max(axis=1) > TINY]
    spread = np.sqrt(np.sum(sums**2, axis=0))
    scaled = np.divide(sums, spread, out=np.zeros_like(sums), where=spread > TINY)
    observed = np.abs(scaled.sum(axis=0)) - TINY
    hits = np.zeros(len(observed))
    for signs in sign_flips(len(sums)):
        largest = np.abs(signs @ scaled).max(axis=1, initial=0)
        hits += np.sum(largest[:, None] >= observed, axis=0)
    return np.asarray(share_of_flips(hits, len(sums)))


def weighted_rates(hits: Mask, among: Mask, weights: Floats, clusters: Ints) -> dict[str, float]:
    """Estimate a weighted sum of rates over the same clusters, as a difference of two.

    Each rate has the interval of :func:`~evaluation.intervals.design_bounds`. Its distances from
    the rate are added in squares, with the correlations of the rates over clusters (MOVER, Zou &
    Donner 2008; of two independent rates it is Newcombe's interval). Unlike resampling it covers
    where few items count, as a judge's errors on one system. Hits, and the items ``among`` which
    each rate is, are ``[n, K]``; a rate with weight 0 may be of no items.
    """
    used = weights != 0
    hits, among, weights = hits[:, used] & among[:, used], among[:, used], weights[used]
    columns = np.concatenate([hits, among], axis=1).astype(np.float64)
    counts, sizes = np.split(cluster_sums(columns, clusters), 2, axis=1)  # [C, K] each
    n = sizes.sum(axis=0)
    rates = ratio(counts.sum(axis=0), n)
    low, high, _ = design_bounds(rates, n, design(counts.T, sizes.T))
    residuals = counts - rates * sizes
    spread = np.sqrt(np.sum(residuals**2, axis=0))
    scaled = np.divide(residuals, spread, out=np.zeros_like(residuals), where=spread > TINY)
    correlation = scaled.T @ scaled
    np.fill_diagonal(correlation, 1)

    def reach(ends: Floats) -> float:
        distances = weights * np.abs(ends - rates)
        return float(np.sqrt(np.maximum(distances @ correlation @ distances, 0)))

    value = float(weights @ rates)
    return {
        "value": value,
        "low": value - reach(np.where(weights > 0, low, high)),
        "high": value + reach(np.where(weights > 0, high, low)),
    }


def _systems(answerers: Iterable[str | None]) -> dict[str, Mask]:
    """Mark the items of each system; empty where there are too few or too many systems."""
    names, numbers = np.unique(np.array([str(each) for each in answerers]), return_inverse=True)
    if not 2 <= len(names) <= MAX_ANSWERERS:
        return {}
    return {str(name): numbers == number for number, name in enumerate(names)}
