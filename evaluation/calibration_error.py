"""How far confidences are from how often they are right, and what chance adds to that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from evaluation.intervals import (
    NO_INTERVAL,
    Floats,
    Ints,
    Mask,
    cluster_sums,
    ratio,
    student_quantile,
)

ECE_BINS = 15
Binning = Callable[[Floats], Ints]
"""Sorts confidences into :data:`ECE_BINS` bins; returns the bin of each."""
NEWTON_STEPS = 100
SIMULATIONS = 1000
AT_ONCE = 1 << 21
"""Simulated items that are in memory at once."""
SUREST = 1e-6
"""Distance from 0 and 1 at which log-odds are cut off."""


def equal_mass_bins(confidence: Floats) -> Ints:
    """Sort items into bins of equally many, lowest confidence first. Shape ``[n]``, without nan.

    Equal confidences share a bin, so that with many ties bins are uneven and some stay empty.
    """
    below = np.searchsorted(np.sort(confidence), confidence, side="left")
    return np.asarray(below * ECE_BINS // max(1, len(confidence)), dtype=np.int64)


def equal_width_bins(confidence: Floats) -> Ints:
    """Sort items into bins of equal width, with their upper ends (Guo et al. 2017)."""
    return np.searchsorted(np.arange(1, ECE_BINS) / ECE_BINS, confidence, side="left")


def calibration_columns(
    confidence: Floats, right: Floats, binning: Binning = equal_mass_bins
) -> Floats:
    """Lay out, per item and bin, a count, the confidence and ``right``. Shape ``[n, bins * 3]``.

    All are 0 outside of the item's bin; a nan confidence has no bin.
    """
    cells = np.zeros((len(confidence), ECE_BINS, 3))
    known = np.flatnonzero(~np.isnan(confidence))
    bin_of_item = binning(confidence[known])
    cells[known, bin_of_item] = np.stack(
        [np.ones(len(known)), confidence[known], right[known]], axis=1
    )
    return cells.reshape(len(confidence), ECE_BINS * 3)


def expected_calibration_error(sums: Floats) -> Floats:
    """Average the gap between confidence and accuracy over bins (Naeini et al. 2015).

    Gaps are weighted by count. ``sums``, ``[..., bins * 3]``, are over the items of
    ``calibration_columns``, whose bins have equal mass by default (Nguyen & O'Connor 2015). By
    chance even a calibrated judge scores above 0, the more so the fewer the items.
    """
    count, confidence, right = np.moveaxis(sums.reshape(*sums.shape[:-1], -1, 3), -1, 0)
    return ratio(np.abs(confidence - right).sum(axis=-1), count.sum(axis=-1))


def reliability_table(sums: Floats) -> dict[str, Any]:
    """Compute ``ece`` from sums of ``calibration_columns``, and the bins that it is made of.

    ``bins`` has for every bin in use ``n``, mean ``confidence`` and ``accuracy``.
    """
    cells = sums.reshape(-1, 3)
    return {
        "ece": float(expected_calibration_error(sums)),
        "bins": [
            {"n": int(n), "confidence": confidence / n, "accuracy": right / n}
            for n, confidence, right in cells[cells[:, 0] > 0].tolist()
        ],
    }


def calibration_error(
    confidence: Floats,
    right: Mask,
    clusters: Ints,
    *,
    binning: Binning = equal_mass_bins,
    seed: int = 0,
) -> dict[str, Any]:
    """Measure the calibration error over bins beside what chance alone would give.

    It has no interval, as chance can only add to it. Arguments as :func:`chance_band`.
    """
    columns = calibration_columns(confidence, right.astype(np.float64), binning)
    return {
        "value": float(expected_calibration_error(columns.sum(axis=0))),
        **NO_INTERVAL._asdict(),
        "n": int((~np.isnan(confidence)).sum()),
        "chance": chance_band(confidence, right, clusters, binning=binning, seed=seed),
    }


def chance_band(
    confidence: Floats,
    right: Mask,
    clusters: Ints,
    *,
    binning: Binning = equal_mass_bins,
    seed: int = 0,
) -> dict[str, float]:
    """Simulate the calibration error that a calibrated judge would show on these very rows.

    Rows are right with the probability that they state (Bröcker & Smith 2007, whose bars are of
    single bins). Rows of one cluster are as alike as they are here, and only for that is ``right``
    read: with a probability of the square root of their correlation, a row takes the one draw that
    its cluster shares, and otherwise a draw of its own. Shapes are ``[n]``; a row with a confidence
    of nan is left out.

    Returns the ``mean`` of the simulated errors and, as ``high``, their 95th percentile.
    """
    known = ~np.isnan(confidence)
    stated, groups = confidence[known], np.unique(clusters[known], return_inverse=True)[1]
    if not len(stated):
        return {"mean": float("nan"), "high": float("nan")}
    order = np.argsort(binning(stated), kind="stable")
    stated, groups = stated[order], groups[order]
    bins = binning(stated)
    starts = np.unique(bins, return_index=True)[1]
    shares = np.sqrt(likeness(stated, right[known][order], groups))
    rng = np.random.default_rng(seed)
    errors = np.empty(SIMULATIONS)
    chunk = max(1, AT_ONCE // len(stated))
    for start in range(0, SIMULATIONS, chunk):
        draws = min(chunk, SIMULATIONS - start)
        uniform = rng.random((draws, len(stated)))
        if shares > 0:
            shared = rng.random((draws, int(groups.max()) + 1))[:, groups]
            uniform = np.where(rng.random(uniform.shape) < shares, shared, uniform)
        gaps = np.add.reduceat(stated - (uniform < stated), starts, axis=1)
        errors[start : start + draws] = np.abs(gaps).sum(axis=1) / len(stated)
    return {"mean": float(errors.mean()), "high": float(np.quantile(errors, 0.95))}


def likeness(stated: Floats, right: Mask, groups: Ints) -> float:
    """Estimate the correlation of errors within clusters, by products of standardised residuals.

    It is 0 where their mean is negative or every row is a cluster of its own, and 1 at most. Shapes
    ``[n]``.
    """
    residuals = (right - stated) / np.sqrt(np.clip(stated * (1 - stated), SUREST, None))
    residuals = np.clip(residuals - residuals.mean(), -3, 3)  # lest one sure error drown all
    columns = np.stack([residuals, residuals**2, np.ones(len(residuals))], axis=1)
    sums, squares, sizes = cluster_sums(columns, groups).T
    pairs = np.sum(sizes * (sizes - 1))
    if not pairs or not squares.sum():
        return 0.0
    return float(np.clip(np.sum(sums**2 - squares) / pairs * len(stated) / squares.sum(), 0, 1))


def squared_error(confidence: Floats, right: Mask, clusters: Ints) -> float:
    """Estimate the mean squared gap of confidence and accuracy over bins, without what chance adds.

    The square of a bin's gap is the mean product of the residuals of two rows. Only rows of
    different clusters are paired, so that their errors are independent and the square is unbiased,
    as that of Kumar, Liang & Ma (2019) is for independent rows. For a calibrated judge it is about
    0, as often below as above. Arguments as :func:`chance_band`.
    """
    known = np.flatnonzero(~np.isnan(confidence))
    residuals = confidence[known] - right[known]
    bins = equal_mass_bins(confidence[known])
    total, weight = 0.0, 0
    for number in np.unique(bins):
        inside = bins == number
        columns = np.stack([residuals[inside], np.ones(inside.sum())], axis=1)
        sums, sizes = cluster_sums(columns, clusters[known][inside]).T
        pairs = sizes.sum() ** 2 - np.sum(sizes**2)
        if pairs:
            total += inside.sum() * (sums.sum() ** 2 - np.sum(sums**2)) / pairs
            weight += int(inside.sum())
    return float(ratio(np.array(total), np.array(weight)))


def slope(confidence: Floats, right: Mask, clusters: Ints) -> dict[str, Any]:
    """Fit how log-odds of being right rise with those that are stated (Cox 1958).

    The slope is 1 for a calibrated judge, below 1 if confidences are too extreme, 0 if they say
    nothing, and nan if no finite one fits, as when all rows are right or state one confidence.
    The interval is Student's over three or more clusters, by the error that leaving out each in
    turn gives, in one step of Newton's method: a sandwich variance is too small where few clusters
    decide the slope. There is none if one decides it alone. Arguments as :func:`chance_band`.
    """
    known = np.flatnonzero(~np.isnan(confidence))
    stated = np.clip(confidence[known], SUREST, 1 - SUREST)
    log_odds, hits = np.log(stated / (1 - stated)), right[known].astype(np.float64)
    none = {"value": float("nan"), **NO_INTERVAL._asdict(), "n": len(known)}
    if not len(known) or hits.min() == hits.max() or (unit := log_odds.std()) < SUREST:
        return none
    of_right, of_wrong = log_odds[hits == 1], log_odds[hits == 0]
    if of_right.min() >= of_wrong.max() or of_right.max() <= of_wrong.min():
        return none  # confidences that part the right from the wrong
    design = np.stack([np.ones(len(known)), (log_odds - log_odds.mean()) / unit], axis=1)
    fitted = np.zeros(2)
    for _ in range(NEWTON_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(design @ fitted, -30, 30)))
        curvature = (design * (chance * (1 - chance))[:, None]).T @ design
        step = np.linalg.solve(curvature, design.T @ (hits - chance))
        fitted += step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-10:
            break
    scores = cluster_sums(design * (hits - chance)[:, None], clusters[known])
    products = (design[:, :, None] * design[:, None, :]).reshape(-1, 4)
    curved = cluster_sums(products * (chance * (1 - chance))[:, None], clusters[known])
    groups, left = len(scores), curvature - curved.reshape(-1, 2, 2)
    estimate = {**none, "value": float(fitted[1] / unit)}
    if groups > 2 and np.linalg.det(left).min() > SUREST * np.linalg.det(curvature):
        moves = np.linalg.solve(left, scores[:, :, None])[:, 1, 0] / unit
        error = np.sqrt(np.sum(moves**2) * (groups - 1) / groups)
        half = float(student_quantile(groups - 2, 0.975) * error)
        estimate |= {"low": estimate["value"] - half, "high": estimate["value"] + half}
    return estimate
