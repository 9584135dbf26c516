"""Fitting a calibration by maximum likelihood on label log-probabilities."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from judging.errors import CustosError
from judging.types import score_of, type_of
from judging.verdicts.calibration import Calibration, CalibrationSet
from judging.verdicts.probabilities import best_label
from judging.verdicts.risk import HeldOutVerdicts

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

RIDGE = 1e-3
"""Weak pull towards no change, for classes with few examples in a small split."""
SMALL_SPLIT = 60
"""Below so many items the pull grows with the square of their lack: a handful changes little."""
MIN_ITEMS_PER_LABEL = 10
"""Items that each label needs before biases are fitted: with fewer, chance decides their sign."""
FOLDS = 10


def fit_score_calibration(logprobs: Floats, targets: Indices, labels: Sequence[str]) -> Calibration:
    """Fit the calibration of scores as :func:`fit_calibration` does, given full labels."""
    scores = list(dict.fromkeys(map(score_of, labels)))
    columns = np.array([scores.index(score_of(label)) for label in labels])
    summed = [logsumexp(logprobs[:, columns == i], axis=1) for i in range(len(scores))]
    return fit_calibration(np.stack(summed, axis=1), columns[targets], scores)


def fit_type_calibration(
    logprobs: Floats, targets: Indices, labels: Sequence[str]
) -> Calibration | None:
    """Fit the calibration of error types given the human score; return ``None`` without types."""
    types = list(dict.fromkeys(type_of(label) for label in labels if type_of(label)))
    if not types:
        return None
    columns = {label: i for i, label in enumerate(labels)}
    erroneous = [i for i, target in enumerate(targets) if type_of(labels[target])]
    typed_logprobs = [
        [logprobs[i, columns[f"{score_of(labels[targets[i]])}; {name}"]] for name in types]
        for i in erroneous
    ]
    typed_targets = [types.index(type_of(labels[targets[i]])) for i in erroneous]
    return fit_calibration(
        np.array(typed_logprobs).reshape(-1, len(types)),
        np.array(typed_targets, dtype=np.int64),
        types,
    )


def cross_fitted_verdicts(
    logprobs: Floats, targets: Indices, labels: Sequence[str], questions: Indices
) -> HeldOutVerdicts:
    """Return a verdict on a random row of each question, calibrated without that question.

    Args:
        logprobs: Label log-probabilities, ``[items, labels]``.
        targets: Index of the human label, ``[items]``.
        labels: Label strings.
        questions: Number of each item's question, from 0, ``[items]``.

    Returns:
        The verdicts in the order of the questions.

    Raises:
        CustosError: If all rows are on one question, or those outside of a fold have one label.
    """
    if not questions.any():
        raise CustosError("all calibration rows are on one question; add rows on others")
    rng = np.random.default_rng(0)
    shuffled = rng.permutation(len(questions))
    one_each = shuffled[np.unique(questions[shuffled], return_index=True)[1]]
    folds = rng.permutation(int(questions.max()) + 1) % FOLDS
    confidence = np.zeros(len(one_each))
    right = np.zeros(len(one_each), dtype=bool)
    for fold in np.unique(folds):
        others = folds[questions] != fold
        try:
            calibration = _fit_both(logprobs[others], targets[others], labels)
        except CustosError:
            raise CustosError(
                "without the questions of one fold all calibration rows have one label; add rows "
                "on other questions"
            ) from None
        for question in np.flatnonzero(folds == fold):
            row = one_each[question]
            logprob_by_label = dict(zip(labels, logprobs[row].tolist(), strict=True))
            probabilities = calibration.posterior("", logprob_by_label)
            label = best_label(probabilities)
            confidence[question] = probabilities[label]
            right[question] = label == labels[targets[row]]
    return HeldOutVerdicts(confidence=tuple(confidence.tolist()), right=tuple(right.tolist()))


def _fit_both(logprobs: Floats, targets: Indices, labels: Sequence[str]) -> CalibrationSet:
    """Fit the calibrations of scores and, where they can be fitted, of error types."""
    scores = fit_score_calibration(logprobs, targets, labels)
    try:
        types = fit_type_calibration(logprobs, targets, labels)
    except CustosError:
        types = None
    return CalibrationSet(
        judge="", rubrics={"": scores}, error_types={} if types is None else {"": types}
    )


def fit_calibration(logprobs: Floats, targets: Indices, labels: Sequence[str]) -> Calibration:
    """Fit a temperature, and a bias per label where biases carry over to other items.

    The biases stay zero if a label has fewer than :data:`MIN_ITEMS_PER_LABEL` items, such as none,
    or unless they lower the negative log-likelihood in cross-validation on the same items: fitted
    to few errors they cost accuracy elsewhere.

    Args:
        logprobs: Label log-probabilities, ``[items, labels]``.
        targets: Index of the human label, ``[items]``.
        labels: Label strings.

    Raises:
        CustosError: If fewer than two labels occur: the temperature would have no limit.
    """
    check_labels({labels[target] for target in targets})
    counts = np.bincount(targets, minlength=len(labels))
    normalised = log_softmax(logprobs, axis=1)
    one_hot = np.eye(len(labels))[targets]
    with_bias = int(counts.min()) >= MIN_ITEMS_PER_LABEL and (
        _crossvalidated_nll(normalised, one_hot, with_bias=True)
        < _crossvalidated_nll(normalised, one_hot, with_bias=False)
    )
    best = _fit(normalised, one_hot, with_bias=with_bias)
    bias = best[1:] - best[1:].mean()
    return Calibration(
        temperature=float(np.exp(best[0])),
        bias=dict(zip(labels, bias.tolist(), strict=True)),
        n=len(targets),
        nll_before=-float(_log_posterior(normalised, np.zeros_like(best))[one_hot > 0].mean()),
        nll_after=-float(_log_posterior(normalised, best)[one_hot > 0].mean()),
    )


def check_labels(occurring: Collection[str]) -> None:
    """Check that items have labels to tell apart.

    Raises:
        CustosError: If they have no two.
    """
    if len(occurring) < 2:
        found = f"all calibration rows are labelled '{next(iter(occurring))}'" if occurring else ""
        raise CustosError(
            f"{found or 'no calibration row has one'}; add rows with other labels, or give rows "
            "that have them with --cal FILE (data.cal in a recipe)"
        )


def _crossvalidated_nll(normalised: Floats, one_hot: Floats, *, with_bias: bool) -> float:
    """Return the mean negative log-likelihood of items left out of the fit, over the folds."""
    folds = np.random.default_rng(0).permutation(len(one_hot)) % FOLDS
    total = 0.0
    for fold in range(FOLDS):
        train, test = folds != fold, folds == fold
        parameters = _fit(normalised[train], one_hot[train], with_bias=with_bias)
        total -= float((one_hot[test] * _log_posterior(normalised[test], parameters)).sum())
    return total / len(one_hot)


def _fit(normalised: Floats, one_hot: Floats, *, with_bias: bool) -> Floats:
    """Return the logarithm of the temperature, then a bias per label, zero without biases."""
    ridge = RIDGE * max(1.0, SMALL_SPLIT / max(1, len(one_hot))) ** 2

    def objective(parameters: Floats) -> tuple[float, Floats]:
        log_posterior = _log_posterior(normalised, parameters)
        residual = (np.exp(log_posterior) - one_hot) / max(1, len(one_hot))
        temperature_slope = -(residual * normalised).sum() * np.exp(-parameters[0])
        gradient = np.concatenate([[temperature_slope], residual.sum(axis=0) * with_bias])
        loss = -(one_hot * log_posterior).sum() / max(1, len(one_hot))
        return loss + ridge * (parameters @ parameters), gradient + 2 * ridge * parameters

    start = np.zeros(1 + one_hot.shape[1])
    parameters: Floats = minimize(objective, start, jac=True, method="L-BFGS-B").x
    return parameters


def _log_posterior(normalised: Floats, parameters: Floats) -> Floats:
    scores = normalised * np.exp(-parameters[0]) + parameters[1:]
    return np.asarray(log_softmax(scores, axis=1))
