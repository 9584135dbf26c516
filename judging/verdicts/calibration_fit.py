"""Fitting a calibration by maximum likelihood on label log-probabilities."""

from collections.abc import Callable, Collection, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from judging.errors import CustosError
from judging.labels import best_label
from judging.types import score_of, type_of
from judging.verdicts.calibration import Calibration, CalibrationSet, HeldOutVerdicts

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Fit = Callable[[Floats, Floats], Floats]
"""Fits parameters to log-probabilities and one-hot labels."""

RIDGE = 1e-3
"""Weak pull towards no change, for classes with few examples in a small split."""
SMALL_SPLIT = 60
"""With fewer items, ``n``, the pull is ``(SMALL_SPLIT / n)**2`` times: a handful changes little."""
MIN_ITEMS_PER_LABEL = 10
"""Items that every label needs before biases are fitted: with fewer, chance decides their sign."""
FOLDS = 10


def fit_score_calibration(
    logprobs: Floats, targets: Indices, labels: Sequence[str], questions: Indices | None = None
) -> Calibration:
    """Fit the calibration of scores, given full labels; arguments as :func:`fit_calibration`."""
    scores = list(dict.fromkeys(map(score_of, labels)))
    columns = np.array([scores.index(score_of(label)) for label in labels])
    summed = [logsumexp(logprobs[:, columns == i], axis=1) for i in range(len(scores))]
    return fit_calibration(np.stack(summed, axis=1), columns[targets], scores, questions)


def fit_type_calibration(
    logprobs: Floats, targets: Indices, labels: Sequence[str], questions: Indices | None = None
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
        None if questions is None else questions[erroneous],
    )


def cross_fitted_verdicts(
    logprobs: Floats, targets: Indices, labels: Sequence[str], questions: Indices
) -> HeldOutVerdicts:
    """Judge one row of each drawn question, with a calibration fitted without that question.

    :func:`draw_rows` draws the questions. Log-probabilities are ``[items, labels]``, targets and
    questions, numbered from 0, ``[items]``. Raises ``CustosError`` if all rows are on one question,
    or if all rows outside of a fold have one label.
    """
    if not questions.any():
        raise CustosError("all calibration rows are on one question; add rows on others")
    rng = np.random.default_rng(0)
    rows = draw_rows(questions, rng)
    folds = rng.permutation(int(questions.max()) + 1) % FOLDS
    confidence = np.zeros(len(rows))
    right = np.zeros(len(rows), dtype=bool)
    for fold in np.unique(folds):
        others = folds[questions] != fold
        try:
            calibration = _fit_both(logprobs[others], targets[others], labels, questions[others])
        except CustosError:
            raise CustosError(
                "without the questions of one fold all calibration rows have one label; add rows "
                "on other questions"
            ) from None
        for place in np.flatnonzero(folds[questions[rows]] == fold):
            row = rows[place]
            logprob_by_label = dict(zip(labels, logprobs[row].tolist(), strict=True))
            probabilities = calibration.posterior("", logprob_by_label)
            label = best_label(probabilities)
            confidence[place] = probabilities[label]
            right[place] = label == labels[targets[row]]
    return HeldOutVerdicts(confidence=tuple(confidence.tolist()), right=tuple(right.tolist()))


def draw_rows(questions: Indices, rng: np.random.Generator) -> Indices:
    """Draw questions, numbered from 0, in proportion to their rows, and one row of each.

    The chance to keep a question is its number of rows, divided by that of the largest question. So
    every row is equally likely to be drawn, and the error is that of a verdict, not of a question.
    If all questions have equally many rows, all are kept. Returns indices of rows, in the order of
    their questions.
    """
    shuffled = rng.permutation(len(questions))
    one_each = shuffled[np.unique(questions[shuffled], return_index=True)[1]]
    sizes = np.bincount(questions)[questions[one_each]]
    return np.asarray(one_each[rng.random(len(one_each)) < sizes / sizes.max()])


def _fit_both(
    logprobs: Floats, targets: Indices, labels: Sequence[str], questions: Indices
) -> CalibrationSet:
    """Fit the calibrations of scores and, where they can be fitted, of error types."""
    scores = fit_score_calibration(logprobs, targets, labels, questions)
    try:
        types = fit_type_calibration(logprobs, targets, labels, questions)
    except CustosError:
        types = None
    return CalibrationSet(
        judge="", rubrics={"": scores}, error_types={} if types is None else {"": types}
    )


def fit_calibration(
    logprobs: Floats, targets: Indices, labels: Sequence[str], questions: Indices | None = None
) -> Calibration:
    """Fit nothing, a temperature, or a temperature and a bias per label, as cross-validation says.

    Its folds divide the questions, and the rule of one standard error decides (Breiman et al.
    1984): of the three, take the simplest whose negative log-likelihood is at most one standard
    error of the difference above the lowest. A fit to few errors does harm on other items. Biases
    need :data:`MIN_ITEMS_PER_LABEL` items of every label. Log-probabilities are
    ``[items, labels]``, targets and questions ``[items]``; by default each item has its own
    question. Raises ``CustosError`` for fewer than two labels: the temperature would have no limit.
    """
    check_labels({labels[target] for target in targets})
    counts = np.bincount(targets, minlength=len(labels))
    normalised = log_softmax(logprobs, axis=1)
    one_hot = np.eye(len(labels))[targets]
    numbers = np.arange(len(targets)) if questions is None else questions
    numbers = np.unique(numbers, return_inverse=True)[1]
    fits: list[Fit] = [lambda _, one_hot: np.zeros(1 + one_hot.shape[1])]
    fits += [partial(_fit, with_bias=False)]
    fits += [partial(_fit, with_bias=True)] * (int(counts.min()) >= MIN_ITEMS_PER_LABEL)
    losses = [_losses_left_out(normalised, one_hot, numbers, fit) for fit in fits]
    best = fits[_simplest(losses)](normalised, one_hot)
    bias = best[1:] - best[1:].mean()
    return Calibration(
        temperature=float(np.exp(best[0])),
        bias=dict(zip(labels, bias.tolist(), strict=True)),
        n=len(targets),
        nll_before=-float(_log_posterior(normalised, np.zeros_like(best))[one_hot > 0].mean()),
        nll_after=-float(_log_posterior(normalised, best)[one_hot > 0].mean()),
    )


def check_labels(occurring: Collection[str]) -> None:
    """Raise ``CustosError`` if items have fewer than two labels."""
    if len(occurring) < 2:
        found = f"all calibration rows are labelled '{next(iter(occurring))}'" if occurring else ""
        raise CustosError(
            f"{found or 'no calibration row has one'}; add rows with other labels, or give rows "
            "that have them with --cal FILE (data.cal in a recipe)"
        )


def _losses_left_out(normalised: Floats, one_hot: Floats, questions: Indices, fit: Fit) -> Floats:
    """Compute each question's negative log-likelihood under a fit without its fold."""
    folds = (np.random.default_rng(0).permutation(int(questions.max()) + 1) % FOLDS)[questions]
    losses = np.zeros(int(questions.max()) + 1)
    for fold in np.unique(folds):
        train, test = folds != fold, folds == fold
        log_posterior = _log_posterior(normalised[test], fit(normalised[train], one_hot[train]))
        np.add.at(losses, questions[test], -(one_hot[test] * log_posterior).sum(axis=1))
    return losses


def _simplest(losses: Sequence[Floats]) -> int:
    """Find the simplest fit within one standard error of the best; fits stand simplest first."""
    best = min(losses, key=np.sum)
    gaps = [of_fit - best for of_fit in losses]
    return next(
        number
        for number, gap in enumerate(gaps)
        if gap.sum() <= np.sqrt(len(gap)) * (gap.std(ddof=1) if len(gap) > 1 else 0)
    )


def _fit(normalised: Floats, one_hot: Floats, *, with_bias: bool) -> Floats:
    """Fit the logarithm of the temperature, then a bias per label, which is 0 without biases."""
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
