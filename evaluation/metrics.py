"""Metrics of agreement, each written once for one sample and for many resamples.

Agreement metrics read a confusion matrix whose rows are people's labels and whose columns are the
judge's. Leading axes are free: ``[K, K]`` gives one number, or one for each label, and
``[B, K, K]`` gives ``B`` times as many. A metric that does not exist, as without items, is nan,
which reports write as ``null``.
"""

from __future__ import annotations

import numpy as np

from evaluation.intervals import Floats, Ints, ratio

UNSCORED = -1
"""Predicted label index of an item that the judge gave no label."""


def confusion_cells(human: Ints, predicted: Ints, classes: int) -> Floats:
    """Mark each item's cell of the confusion matrix, one-hot; unscored items have none.

    Labels are indices in ``[0, K)``, the judge's also ``UNSCORED``. Shape ``[n, K * K]``; the sum
    over items, reshaped, is the confusion matrix.
    """
    cells = np.zeros((len(human), classes * classes))
    scored = np.flatnonzero(predicted != UNSCORED)
    cells[scored, human[scored] * classes + predicted[scored]] = 1
    return cells


def confusion_matrix(human: Ints, predicted: Ints, classes: int) -> Floats:
    """Count items by people's label (rows) and the judge's (columns); leave unscored ones out.

    Arguments as ``confusion_cells``. Shape ``[K, K]``.
    """
    cells = confusion_cells(human, predicted, classes)
    return np.asarray(cells.sum(axis=0).reshape(classes, classes))


def accuracy(confusion: Floats) -> Floats:
    """Compute the share of scored items on which judge and people agree."""
    return ratio(np.trace(confusion, axis1=-2, axis2=-1), confusion.sum(axis=(-2, -1)))


def precision(confusion: Floats) -> Floats:
    """Compute, per label, the share of the judge's uses with which people agree."""
    return ratio(_diagonal(confusion), confusion.sum(axis=-2))


def recall(confusion: Floats) -> Floats:
    """Compute, per label, the share of people's uses with which the judge agrees."""
    return ratio(_diagonal(confusion), confusion.sum(axis=-1))


def f1(confusion: Floats) -> Floats:
    """Compute, per label, the harmonic mean of precision and recall: ``2 tp / (2 tp + fp + fn)``.

    It is 0 for a label that judge and people use but never on the same item.
    """
    return ratio(2 * _diagonal(confusion), confusion.sum(axis=-1) + confusion.sum(axis=-2))


def macro_f1(confusion: Floats) -> Floats:
    """Average the F1 of the labels in use, each weighing the same.

    A label that neither side used does not count, as in scikit-learn without ``labels``.
    """
    scores = f1(confusion)
    return ratio(np.nansum(scores, axis=-1), np.sum(~np.isnan(scores), axis=-1))


def cohen_kappa(confusion: Floats) -> Floats:
    """Compute the agreement beyond what the two label rates alone would give (Cohen 1960).

    It does not exist where both sides used one and the same label throughout.
    """
    total = confusion.sum(axis=(-2, -1))
    expected = np.sum(confusion.sum(axis=-1) * confusion.sum(axis=-2), axis=-1)  # times total²
    observed = total * np.trace(confusion, axis1=-2, axis2=-1)
    return ratio(observed - expected, total**2 - expected)


def matthews(confusion: Floats) -> Floats:
    """Compute the Matthews correlation for any number of labels (Gorodkin 2004, R_K statistic).

    It does not exist where either side used a single label (scikit-learn returns 0 there). Where it
    exceeds Cohen's kappa, judge and people use the labels at different rates.
    """
    total = confusion.sum(axis=(-2, -1))
    people, judge = confusion.sum(axis=-1), confusion.sum(axis=-2)
    covariance = total * np.trace(confusion, axis1=-2, axis2=-1) - np.sum(people * judge, axis=-1)
    people_variance = total**2 - np.sum(people**2, axis=-1)
    judge_variance = total**2 - np.sum(judge**2, axis=-1)
    return ratio(covariance, np.sqrt(people_variance * judge_variance))


def share_in_columns(confusion: Floats, rows: Ints, columns: Ints) -> Floats:
    """Compute which share of the items that people put in ``rows`` the judge put in ``columns``.

    For people's Wrong and the judge's Correct it is the false-positive rate.
    """
    chosen = confusion[..., rows, :]
    return ratio(chosen[..., columns].sum(axis=(-2, -1)), chosen.sum(axis=(-2, -1)))


def brier_scores(human: Ints, probabilities: Floats) -> Floats:
    """Square the distance of each posterior ``[n, K]`` from the human label (Brier 1950). ``[n]``.

    It is summed over all ``K`` labels: 0 when certain and right, 2 when certain and wrong.
    """
    truth = np.eye(probabilities.shape[1])[human]
    return np.asarray(np.sum((probabilities - truth) ** 2, axis=1))


def negative_log_likelihoods(human: Ints, probabilities: Floats) -> Floats:
    """Compute the negative log-probability, in nats, of each human label; see ``brier_scores``.

    Probabilities are raised to the float64 machine epsilon at least (scikit-learn's rule), so that
    certain and wrong gives 36.04, not infinity.
    """
    chosen = probabilities[np.arange(len(human)), human]
    return -np.log(np.maximum(chosen, np.finfo(np.float64).eps))


def _diagonal(confusion: Floats) -> Floats:
    return np.diagonal(confusion, axis1=-2, axis2=-1)
