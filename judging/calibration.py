"""Calibration: temperature and per-class bias on a judge's label log-probabilities.

One temperature cannot undo class weights or balanced sampling, which move the label shares; a bias
per class can, where there are errors enough to tell it from. Fitted on a split with natural label
shares that no selection ever saw, one per rubric, and bound to the judge it was fitted for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judging.errors import CustosError, FieldError
from judging.fingerprint import digest
from judging.tasks import JudgeTask
from judging.types import JudgeRequest, score_of, type_of

# Weak pull towards "no change": keeps a class that a small split hardly shows from running away.
_RIDGE = 1e-3
_FOLDS = 10
SMALLEST = 1e-300
"""Probability that stands for 0 where a logarithm is needed."""


class Calibration(BaseModel):
    """``softmax(log-probabilities / temperature + bias)`` for one rubric."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    temperature: float = Field(gt=0)
    bias: dict[str, float]
    """Per full label string; sums to zero."""
    n: int
    """Items it was fitted on."""
    nll_before: float
    nll_after: float

    def posterior(self, logprobs: Mapping[str, float]) -> dict[str, float]:
        """Calibrated probabilities of the declared labels."""
        labels = list(logprobs)
        scores = np.array(
            [logprobs[label] / self.temperature + self.bias[label] for label in labels]
        )
        return dict(zip(labels, _softmax(scores).tolist(), strict=True))


class CalibrationSet(BaseModel):
    """All calibrations of a judge, as ``calibration.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    judge: str
    """Digest of the judge's identity (weights, instructions, budget, dtype, engine)."""
    rubrics: dict[str, Calibration]
    """Over scores (labels without their error type), keyed by ``task/rubric``."""
    error_types: dict[str, Calibration] = {}
    """Over error types given the score, for rubrics that have them."""

    @property
    def id(self) -> str:
        """Short content hash."""
        return digest(self.model_dump())

    def posterior(self, rubric: str, logprobs: Mapping[str, float]) -> dict[str, float]:
        """Calibrated probabilities of full labels: of the score, times of the type given it."""
        scores = self.rubrics[rubric].posterior(score_logprobs(logprobs))
        probabilities = {}
        for score, probability in scores.items():
            types = {
                type_of(label): logprob
                for label, logprob in logprobs.items()
                if score_of(label) == score
            }
            given = self.error_types.get(rubric) if len(types) > 1 else None
            shares = given.posterior(types) if given else posterior(types)
            for kind, share in shares.items():
                label = f"{score}; {kind}" if kind else score
                probabilities[label] = probability * share
        return {label: probabilities[label] for label in logprobs}

    @classmethod
    def load(cls, path: Path, judge: str) -> CalibrationSet:
        """Read ``calibration.json``.

        Raises:
            CustosError: If it is malformed or was fitted for another judge.
        """
        try:
            loaded = cls.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise FieldError.from_validation(error, str(path)) from None
        if loaded.judge != judge:
            raise CustosError(
                f"{path}: fitted for judge {loaded.judge}, but this judge is {judge}; train "
                f"the judge again, or remove the file to judge uncalibrated"
            )
        return loaded


def log_probabilities(probabilities: Mapping[str, float]) -> dict[str, float]:
    """Return the logarithms of probabilities; one that underflowed to 0 still has one."""
    return {label: math.log(max(p, SMALLEST)) for label, p in probabilities.items()}


def posterior(logprobs: Mapping[str, float]) -> dict[str, float]:
    """Log-probabilities normalised over the labels given."""
    values = np.array(list(logprobs.values()))
    return dict(zip(logprobs, np.exp(values - np.logaddexp.reduce(values)).tolist(), strict=True))


def score_logprobs(logprobs: Mapping[str, float]) -> dict[str, float]:
    """Log-probability of each score, summed over its error types."""
    by_score: dict[str, list[float]] = {}
    for label, logprob in logprobs.items():
        by_score.setdefault(score_of(label), []).append(logprob)
    return {score: float(np.logaddexp.reduce(values)) for score, values in by_score.items()}


def fit_score_calibration(
    logprobs: NDArray[np.float64], targets: NDArray[np.int64], labels: Sequence[str]
) -> Calibration:
    """:func:`fit_calibration` of scores, given full labels."""
    scores = list(dict.fromkeys(map(score_of, labels)))
    columns = np.array([scores.index(score_of(label)) for label in labels])
    summed = np.stack(
        [np.logaddexp.reduce(logprobs[:, columns == i], axis=1) for i in range(len(scores))], axis=1
    )
    return fit_calibration(summed, columns[targets], scores)


def fit_type_calibration(
    logprobs: NDArray[np.float64], targets: NDArray[np.int64], labels: Sequence[str]
) -> Calibration | None:
    """:func:`fit_calibration` of error types given the human score; ``None`` without types."""
    types = list(dict.fromkeys(type_of(label) for label in labels if type_of(label)))
    erroneous = np.array([bool(type_of(labels[target])) for target in targets], dtype=bool)
    if not types:
        return None
    index = {label: i for i, label in enumerate(labels)}
    given = [
        [row[index[f"{score_of(labels[target])}; {kind}"]] for kind in types]
        for row, target in zip(logprobs[erroneous], targets[erroneous], strict=True)
    ]
    found = np.array([types.index(type_of(labels[target])) for target in targets[erroneous]])
    return fit_calibration(np.array(given).reshape(-1, len(types)), found.astype(np.int64), types)


def fit_calibration(
    logprobs: NDArray[np.float64], targets: NDArray[np.int64], labels: Sequence[str]
) -> Calibration:
    """Fit temperature and biases by maximum likelihood; biases only where they carry over.

    They stay zero unless cross-validation on the same items finds them to lower the likelihood's
    negative logarithm.

    Args:
        logprobs: Label log-probabilities, ``[items, labels]``.
        targets: Index of the human label, ``[items]``.
        labels: Label strings.

    Raises:
        CustosError: If a label never occurs: its bias could not be told.
    """
    counts = np.bincount(targets, minlength=len(labels))
    if len(targets) == 0 or counts.min() == 0:
        missing = labels[int(counts.argmin())]
        raise CustosError(f"calibration split has no example labelled '{missing}'")
    normalised = logprobs - np.logaddexp.reduce(logprobs, axis=1, keepdims=True)
    one_hot = np.eye(len(labels))[targets]
    # With few errors to learn from, biases fit those few and give away accuracy elsewhere.
    plain, biased = (_crossvalidated(normalised, one_hot, with_bias=b) for b in (False, True))
    best = _fit(normalised, one_hot, with_bias=biased < plain)
    bias = best[1:] - best[1:].mean()
    return Calibration(
        temperature=float(np.exp(best[0])),
        bias=dict(zip(labels, bias.tolist(), strict=True)),
        n=len(targets),
        nll_before=-float(_log_posterior(normalised, np.zeros_like(best))[one_hot > 0].mean()),
        nll_after=-float(_log_posterior(normalised, best)[one_hot > 0].mean()),
    )


def _crossvalidated(
    normalised: NDArray[np.float64], one_hot: NDArray[np.float64], *, with_bias: bool
) -> float:
    """Negative log-likelihood of items that a fit has not seen, over ``_FOLDS`` folds."""
    folds = np.random.default_rng(0).permutation(len(one_hot)) % _FOLDS
    total = 0.0
    for fold in range(_FOLDS):
        seen, rest = folds != fold, folds == fold
        found = _fit(normalised[seen], one_hot[seen], with_bias=with_bias)
        total -= float((one_hot[rest] * _log_posterior(normalised[rest], found)).sum())
    return total / len(one_hot)


def _fit(
    normalised: NDArray[np.float64], one_hot: NDArray[np.float64], *, with_bias: bool
) -> NDArray[np.float64]:
    """Logarithm of the temperature, then a bias per label, all zero without ``with_bias``."""
    from scipy.optimize import minimize

    def objective(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        log_posterior = _log_posterior(normalised, parameters)
        residual = (np.exp(log_posterior) - one_hot) / max(1, len(one_hot))
        inverse_temperature = np.exp(-parameters[0])
        gradient = np.concatenate(
            [
                [-(residual * normalised).sum() * inverse_temperature],
                residual.sum(axis=0) * with_bias,
            ]
        )
        loss = -(one_hot * log_posterior).sum() / max(1, len(one_hot))
        return loss + _RIDGE * (parameters @ parameters), gradient + 2 * _RIDGE * parameters

    start = np.zeros(1 + one_hot.shape[1])
    found: NDArray[np.float64] = minimize(objective, start, jac=True, method="L-BFGS-B").x
    return found


def _log_posterior(
    normalised: NDArray[np.float64], parameters: NDArray[np.float64]
) -> NDArray[np.float64]:
    scores = normalised * np.exp(-parameters[0]) + parameters[1:]
    return np.asarray(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    shifted = np.exp(scores - scores.max())
    return np.asarray(shifted / shifted.sum())


def calibration_key(task: JudgeTask, request: JudgeRequest) -> str:
    """What a calibration belongs to: task and rubric, and for pairs and critiques how it is read.

    A label read after a critique, or in one order of a pair, is read by another judge.
    """
    key = f"{task.name}/{task.rubric(request)}"
    if request.mode == "critique":
        key += "/critique"
    if task.num_responses == 2 and request.order == "given":
        key += "/given"
    return key
