"""Verdicts that are kept or left to people: the error rate at every share that is kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from evaluation.estimate import Mask, share
from evaluation.intervals import Floats
from evaluation.outcomes import Outcomes

MAX_POINTS = 100
"""Most points of a curve."""


def abstention(
    outcomes: Outcomes, needs_review: Mask, risk: float, seed: int = 0
) -> dict[str, Any]:
    """Measure the verdicts that are kept at a stated risk.

    Args:
        outcomes: People's labels and the judge's.
        needs_review: Verdicts that are left to people. Shape ``[n]``.
        risk: Stated share of wrong verdicts among those kept.
        seed: Seed of the resamples.

    Returns:
        ``risk``; ``kept``, the share of all items; ``error``, the share of wrong ones among these;
        and ``level``: ``shown`` if the whole interval of the error is below the risk, ``exceeded``
        if it is above, ``not shown`` if it holds the risk or there is none, ``nothing kept``.
    """
    kept = outcomes.scored & ~needs_review
    everything = np.ones(len(outcomes), dtype=bool)
    error = share(~outcomes.right, kept, outcomes.clusters, seed)
    return {
        "risk": risk,
        "kept": share(kept, everything, outcomes.clusters, seed),
        "error": error,
        "level": _level(error, risk),
    }


def risk_coverage(outcomes: Outcomes) -> dict[str, Any] | None:
    """Return the error among the most confident verdicts, by the share of verdicts kept.

    Returns:
        ``coverage`` and ``error``, at most :data:`MAX_POINTS` points of the curve each; ``aurc``,
        the area under the whole curve, and ``aurc_best``, that of the same verdicts if every wrong
        one came last. ``None`` without confidences.
    """
    has_confidence = ~np.isnan(outcomes.confidence)
    if not has_confidence.any():
        return None
    confidence = outcomes.confidence[has_confidence]
    wrong = ~outcomes.right[has_confidence]
    error = _error_by_rank(confidence, wrong)
    points = np.unique(np.linspace(0, len(error) - 1, MAX_POINTS).round().astype(int))
    return {
        "n": len(error),
        "coverage": ((points + 1) / len(error)).tolist(),
        "error": error[points].tolist(),
        "aurc": float(error.mean()),
        "aurc_best": float(_error_by_rank((~wrong).astype(np.float64), wrong).mean()),
    }


def _error_by_rank(confidence: Floats, wrong: Mask) -> Floats:
    """Return the error among the ``k`` most confident verdicts, for every ``k``; ties share it."""
    _, group = np.unique(-confidence, return_inverse=True)
    shares = np.bincount(group, weights=wrong) / np.bincount(group)
    return np.asarray(np.cumsum(shares[np.sort(group)]) / np.arange(1, len(wrong) + 1))


def _level(error: dict[str, Any], risk: float) -> str:
    """Say whether an error is shown to hold a level."""
    if not error["n"]:
        return "nothing kept"
    if error["high"] < risk:
        return "shown"
    return "exceeded" if error["low"] > risk else "not shown"
