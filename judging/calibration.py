"""Calibration: temperature and per-class bias on a judge's label log-probabilities.

One temperature cannot undo class weights or balanced sampling, which move the label shares; a bias
per class can. Fitted on a split with natural label shares that no selection ever saw, one per
rubric, and bound to the judge it was fitted for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judging.errors import CustosError
from judging.fingerprint import digest
from judging.tasks import JudgeTask
from judging.types import JudgeRequest, score_of, type_of

# Weak pull towards "no change": keeps a class that a small split hardly shows from running away.
_RIDGE = 1e-3


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
            first = error.errors(include_url=False)[0]
            raise CustosError(f"{path}: {first['loc']}: {first['msg']}") from None
        if loaded.judge != judge:
            raise CustosError(
                f"{path}: fitted for judge {loaded.judge}, but this judge is {judge}; train "
                f"the judge again, or remove the file to judge uncalibrated"
            )
        return loaded


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
    """Fit temperature and biases by maximum likelihood.

    Args:
        logprobs: Label log-probabilities, ``[items, labels]``.
        targets: Index of the human label, ``[items]``.
        labels: Label strings.

    Raises:
        CustosError: If a label never occurs: its bias could not be told.
    """
    from scipy.optimize import minimize

    counts = np.bincount(targets, minlength=len(labels))
    if len(targets) == 0 or counts.min() == 0:
        missing = labels[int(counts.argmin())]
        raise CustosError(f"calibration split has no example labelled '{missing}'")
    normalised = logprobs - np.logaddexp.reduce(logprobs, axis=1, keepdims=True)
    one_hot = np.eye(len(labels))[targets]

    def objective(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        inverse_temperature, bias = np.exp(-parameters[0]), parameters[1:]
        scores = normalised * inverse_temperature + bias
        log_posterior = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
        residual = (np.exp(log_posterior) - one_hot) / len(targets)
        gradient = np.concatenate(
            [[-(residual * normalised).sum() * inverse_temperature], residual.sum(axis=0)]
        )
        loss = -(one_hot * log_posterior).sum() / len(targets)
        penalty = _RIDGE * (parameters @ parameters)
        return loss + penalty, gradient + 2 * _RIDGE * parameters

    start = np.zeros(1 + len(labels))
    best = minimize(objective, start, jac=True, method="L-BFGS-B").x
    after = objective(best)[0] - _RIDGE * float(best @ best)
    bias = best[1:] - best[1:].mean()
    return Calibration(
        temperature=float(np.exp(best[0])),
        bias=dict(zip(labels, bias.tolist(), strict=True)),
        n=len(targets),
        nll_before=objective(start)[0],
        nll_after=float(after),
    )


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
