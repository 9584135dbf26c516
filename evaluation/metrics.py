"""Agreement and calibration, each written once for one sample and for a thousand resamples.

Agreement metrics read a confusion matrix whose rows are what people said and whose columns are what
the judge said. Leading axes are free: ``[K, K]`` gives one number, ``[B, K, K]`` gives ``B``.
A metric that does not exist (its denominator is zero) is nan, which reports write as ``null``.
"""

from __future__ import annotations

import numpy as np

from evaluation.intervals import Floats, Ints

UNSCORED = -1
"""Predicted label index of an item the judge gave no label."""
ECE_BINS = 15


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide, giving nan where the denominator is zero (or nan)."""
    numerator, denominator = np.broadcast_arrays(
        np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    )
    quotient = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator != 0)
    return quotient


def confusion_cells(human: Ints, predicted: Ints, classes: int) -> Floats:
    """Each item's cell of the confusion matrix, one-hot; an unscored item has none.

    Args:
        human: What people said, in ``[0, K)``. Shape ``[n]``.
        predicted: What the judge said, in ``[0, K)`` or ``UNSCORED``. Shape ``[n]``.
        classes: Number of labels ``K``.

    Returns:
        Shape ``[n, K * K]``; sum over items and reshape for the confusion matrix.
    """
    cells = np.zeros((len(human), classes * classes))
    scored = np.flatnonzero(predicted != UNSCORED)
    cells[scored, human[scored] * classes + predicted[scored]] = 1
    return cells


def confusion_matrix(human: Ints, predicted: Ints, classes: int) -> Floats:
    """Count items by human label (rows) and judge label (columns); unscored items are left out.

    Args and dtypes as ``confusion_cells``. Returns shape ``[K, K]``.
    """
    cells = confusion_cells(human, predicted, classes)
    return np.asarray(cells.sum(axis=0).reshape(classes, classes))


def accuracy(confusion: Floats) -> Floats:
    """Share of scored items on which judge and people agree: 0 never, 1 always, nan for no item."""
    return ratio(np.trace(confusion, axis1=-2, axis2=-1), confusion.sum(axis=(-2, -1)))


def precision(confusion: Floats) -> Floats:
    """Per label, the share of the judge's uses that people share; nan if it never used the label.

    Args:
        confusion: Shape ``[..., K, K]``.

    Returns:
        Shape ``[..., K]``.
    """
    return ratio(_diagonal(confusion), confusion.sum(axis=-2))


def recall(confusion: Floats) -> Floats:
    """Per label, the share of people's uses that the judge shares; nan if people never used it.

    Shapes as ``precision``.
    """
    return ratio(_diagonal(confusion), confusion.sum(axis=-1))


def f1(confusion: Floats) -> Floats:
    """Per label, the harmonic mean of precision and recall, as ``2 tp / (2 tp + fp + fn)``.

    0 when the label is used but never by both, nan when neither side used it. Shapes as
    ``precision``.
    """
    return ratio(2 * _diagonal(confusion), confusion.sum(axis=-1) + confusion.sum(axis=-2))


def macro_f1(confusion: Floats) -> Floats:
    """Mean F1 over the labels either side used, each weighing the same.

    1 is full agreement, 0 none on any label, nan without items. A label that neither side used does
    not count, as in scikit-learn without ``labels``.
    """
    scores = f1(confusion)
    return ratio(np.nansum(scores, axis=-1), np.sum(~np.isnan(scores), axis=-1))


def cohen_kappa(confusion: Floats) -> Floats:
    """Agreement beyond what the two label rates alone would give (Cohen 1960).

    1 is full agreement, 0 what independent labelling with the same rates would reach, negative
    less than that. Nan when both sides used one and the same label throughout, or without items.
    """
    total = confusion.sum(axis=(-2, -1))
    expected = np.sum(confusion.sum(axis=-1) * confusion.sum(axis=-2), axis=-1)  # times total²
    observed = total * np.trace(confusion, axis1=-2, axis2=-1)
    return ratio(observed - expected, total**2 - expected)


def matthews(confusion: Floats) -> Floats:
    """Matthews correlation for any number of labels (Gorodkin 2004, the R_K statistic).

    1 is full agreement, 0 none beyond chance; -1 is reached with two labels only. Nan when either
    side used a single label (scikit-learn says 0 there), or without items. Where it exceeds Cohen's
    kappa, judge and people use the labels at different rates.
    """
    total = confusion.sum(axis=(-2, -1))
    people, judge = confusion.sum(axis=-1), confusion.sum(axis=-2)
    covariance = total * np.trace(confusion, axis1=-2, axis2=-1) - np.sum(people * judge, axis=-1)
    people_variance = total**2 - np.sum(people**2, axis=-1)
    judge_variance = total**2 - np.sum(judge**2, axis=-1)
    return ratio(covariance, np.sqrt(people_variance * judge_variance))


def share_of_rows_called(confusion: Floats, rows: Ints, columns: Ints) -> Floats:
    """Among scored items people put in ``rows``, the share the judge puts in ``columns``.

    With people's Wrong and the judge's Correct it is the false-positive rate: 0 when no wrong
    answer passes, 1 when all do, nan when people called nothing wrong.
    """
    chosen = confusion[..., rows, :]
    return ratio(chosen[..., columns].sum(axis=(-2, -1)), chosen.sum(axis=(-2, -1)))


def brier_scores(human: Ints, probabilities: Floats) -> Floats:
    """Squared distance between the posterior and the human label, per item (Brier 1950).

    Summed over all ``K`` labels: 0 when certain and right, 2 when certain and wrong, ``1 - 1/K``
    for a uniform posterior.

    Args:
        human: Shape ``[n]``.
        probabilities: Posterior per item. Shape ``[n, K]``; a nan row gives nan.

    Returns:
        Shape ``[n]``.
    """
    truth = np.eye(probabilities.shape[1])[human]
    return np.asarray(np.sum((probabilities - truth) ** 2, axis=1))


def negative_log_likelihoods(human: Ints, probabilities: Floats) -> Floats:
    """Negative log-probability of the human label, per item, in nats.

    0 when certain and right, ``log K`` for a uniform posterior. Probabilities are kept at or above
    the float64 machine epsilon (scikit-learn's rule), so certain and wrong gives 36.04, not
    infinity. Shapes as ``brier_scores``.
    """
    chosen = probabilities[np.arange(len(human)), human]
    return -np.log(np.maximum(chosen, np.finfo(np.float64).eps))


def equal_mass_bins(confidence: Floats, bins: int = ECE_BINS) -> Ints:
    """Sort items into bins of equally many, lowest confidence first.

    Equal confidences share a bin, so the result does not depend on the order of the items; with
    many ties the bins are uneven and some stay empty.

    Args:
        confidence: Without nan. Shape ``[n]``.
        bins: How many.

    Returns:
        Bin of each item, in ``[0, bins)``. Shape ``[n]``.
    """
    below = np.searchsorted(np.sort(confidence), confidence, side="left")
    return np.asarray(below * bins // max(1, len(confidence)), dtype=np.int64)


def calibration_cells(confidence: Floats, right: Floats, bins: int = ECE_BINS) -> Floats:
    """Each item's contribution to its confidence bin: a count, its confidence, whether right.

    Args:
        confidence: Confidence in the judge's own label; nan leaves the item out. Shape ``[n]``.
        right: 1 where the judge agrees with people, else 0. Shape ``[n]``.
        bins: How many equal-mass bins.

    Returns:
        Shape ``[n, bins, 3]``.
    """
    cells = np.zeros((len(confidence), bins, 3))
    known = np.flatnonzero(~np.isnan(confidence))
    where = equal_mass_bins(confidence[known], bins)
    cells[known, where] = np.stack([np.ones(len(known)), confidence[known], right[known]], axis=1)
    return cells


def expected_calibration_error(bins: Floats) -> Floats:
    """Mean gap between confidence and accuracy over confidence bins (Naeini et al. 2015).

    Equal-mass bins (Nguyen & O'Connor 2015), gaps weighted by count. 0 when confidence equals
    accuracy in every bin, 1 when certain and always wrong, nan without items. Chance fills the bins
    unevenly, so a calibrated judge scores above 0, the more so the fewer the items.

    Args:
        bins: Sums of ``calibration_cells``. Shape ``[..., bins, 3]``.

    Returns:
        Shape ``[...]``.
    """
    count, confidence, right = bins[..., 0], bins[..., 1], bins[..., 2]
    return ratio(np.abs(confidence - right).sum(axis=-1), count.sum(axis=-1))


def _diagonal(confusion: Floats) -> Floats:
    return np.diagonal(confusion, axis1=-2, axis2=-1)
