"""Calibration: temperature and per-class bias on a judge's label log-probabilities.

A temperature alone cannot undo class weights or balanced sampling, which move the label shares; a
bias per class can, if there are enough errors to fit it to. So a calibration changes labels too. It
is fitted per rubric, on a split that nothing was selected on and that has the label shares of what
will be graded, and belongs to one judge.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from judging.errors import CustosError, FieldError
from judging.fingerprint import digest
from judging.labels import best_label, normalise, score_logprobs
from judging.tasks import JudgeTask, get_task
from judging.types import JudgeRequest, Verdict, label_of, score_of, type_of

CHANCE = 0.05
"""Largest probability that the error among kept verdicts is above the stated risk."""
START_SHARE = 0.25
"""Share of the verdicts that the strictest tested threshold keeps at least: on a handful, a single
slip of a person would end the tests."""
GRID = 1 / (1 + np.exp(-np.arange(10, -3, -0.25)))
"""Tested thresholds, strictest first, evenly spaced in log-odds. They are fixed in advance, because
thresholds that are chosen by the verdicts would make the tests too kind."""


class HeldOutVerdicts(BaseModel):
    """Confidences of verdicts on rows that their calibration was not fitted on, one a question.

    Answers to one question are right or wrong together. With one row of each question the verdicts
    are independent, so that the binomial test is exact. Questions are drawn in proportion to their
    rows, so that the error is that of a verdict.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    confidence: tuple[float, ...]
    right: tuple[bool, ...]
    """Whether people gave the same label."""

    @model_validator(mode="after")
    def _check_lengths(self) -> HeldOutVerdicts:
        if len(self.confidence) != len(self.right):
            raise ValueError("'confidence' and 'right' differ in length")
        return self

    def threshold(self, risk: float) -> float | None:
        """Find the smallest confidence that is kept at a risk.

        The thresholds are tested from the strictest to the laxest. Each test asks how likely so few
        errors would be if the error among kept verdicts were the risk; the first that is not below
        :data:`CHANCE` ends the tests. Thus the error among verdicts on new questions like these is
        at most the risk, except with a probability of :data:`CHANCE` over the held-out questions.

        Returns:
            ``None`` if no threshold passes: too few questions, or too many errors.
        """
        return _threshold(self.confidence, self.right, risk)


@lru_cache(maxsize=1024)
def _threshold(confidence: tuple[float, ...], right: tuple[bool, ...], risk: float) -> float | None:
    from scipy.special import bdtr  # slow to import, and only needed where a risk is stated

    confidences, wrong = np.array(confidence), ~np.array(right, dtype=bool)
    accepted = None
    for threshold in GRID.tolist():
        kept = confidences >= threshold
        num_kept = int(kept.sum())
        is_testable = (1 - risk) ** num_kept <= CHANCE and num_kept > 0
        if not is_testable or num_kept < START_SHARE * len(confidences):
            continue
        if bdtr(int(wrong[kept].sum()), num_kept, risk) > CHANCE:
            break
        accepted = threshold
    return accepted


def with_review(verdict: Verdict, risk: float, threshold: float | None) -> Verdict:
    """Mark a verdict for review if its confidence does not suffice at a stated risk.

    ``threshold`` is the smallest confidence that is kept; ``None`` if no verdict may be.
    """
    confidence = verdict.confidence or 0.0
    if threshold is not None and confidence >= threshold:
        return verdict
    reason = (
        f"no confidence is known to keep the error within {risk:g}"
        if threshold is None
        else f"the confidence {confidence:.3f} is below {threshold:.3f}, from which on the error "
        f"is at most {risk:g}"
    )
    message = "; ".join(text for text in (verdict.message, reason) if text)
    return verdict.model_copy(update={"needs_review": True, "message": message})


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
        """Return the calibrated probabilities of the declared labels."""
        return normalise(
            {
                label: logprob / self.temperature + self.bias[label]
                for label, logprob in logprobs.items()
            }
        )


class CalibrationSet(BaseModel):
    """All calibrations of a judge, as ``calibration.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    judge: str
    """Digest of the judge's identity (weights, instructions, budget, dtype, engine)."""
    rubrics: dict[str, Calibration]
    """Over scores (labels without their error type), keyed by ``task/rubric``."""
    error_types: dict[str, Calibration] = {}
    """Over error types given the score, for rubrics that have them."""
    held_out: dict[str, HeldOutVerdicts] = {}
    """What a threshold for a stated risk is found on, keyed as ``rubrics``. Calibrations of older
    versions have none."""

    @property
    def id(self) -> str:
        """Return a short hash of the content."""
        return digest(self.model_dump())

    def posterior(self, rubric: str, logprobs: Mapping[str, float]) -> dict[str, float]:
        """Return calibrated probabilities of full labels: the score's times the type's share."""
        scores = self.rubrics[rubric].posterior(score_logprobs(logprobs))
        probabilities = {}
        for score, probability in scores.items():
            types = {
                type_of(label): logprob
                for label, logprob in logprobs.items()
                if score_of(label) == score
            }
            calibration = self.error_types.get(rubric) if len(types) > 1 else None
            shares = calibration.posterior(types) if calibration else normalise(types)
            for error_type, share in shares.items():
                probabilities[label_of(score, error_type)] = probability * share
        return {label: probabilities[label] for label in logprobs}

    @classmethod
    def read(cls, path: Path) -> CalibrationSet:
        """Read a ``calibration.json``, whatever judge it was fitted for."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise FieldError.from_validation(error, str(path)) from None

    @classmethod
    def load(cls, path: Path, judge: str) -> CalibrationSet:
        """Read the ``calibration.json`` of a judge; ``CustosError`` if it is another judge's."""
        calibration = cls.read(path)
        if calibration.judge != judge:
            raise CustosError(
                f"{path}: fitted for judge {calibration.judge}, but this judge is {judge}; train "
                f"the judge again, or remove the file to judge uncalibrated"
            )
        return calibration


def calibration_key(task: JudgeTask, request: JudgeRequest) -> str:
    """Tell what a calibration is keyed by: task, rubric and the way the label is read.

    A label after a critique, and one of a single order of a pair, need calibrations of their own.
    """
    key = task.full_rubric(request)
    if request.mode == "critique":
        key += "/critique"
    if task.num_responses == 2 and request.order == "given":
        key += "/given"
    return key


def held_out_verdicts(
    calibration: CalibrationSet | None, judge: str, request: JudgeRequest
) -> HeldOutVerdicts:
    """Return the held-out verdicts that a threshold for a resolved request's risk is found on.

    Raises ``FieldError`` if the calibration holds none for the request's rubric.
    """
    key = calibration_key(get_task(request.task), request)
    if calibration is None or key not in calibration.held_out:
        raise FieldError(
            "risk",
            f"judge '{judge}' has no held-out verdicts under {key} to find a threshold on; fit its "
            "calibration again with 'custos calibrate RUN --data FILE', or state no risk",
        )
    return calibration.held_out[key]


Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Fit = Callable[[Floats, Floats], Floats]
"""Fits parameters to log-probabilities and one-hot labels."""

RIDGE = 1e-3
"""Weak pull towards no change, for classes with few examples in a small split."""
SMALL_SPLIT = 60
"""Below so many items the pull grows with the square of their lack: a handful changes little."""
MIN_ITEMS_PER_LABEL = 10
"""Items that each label needs before biases are fitted: with fewer, chance decides their sign."""
FOLDS = 10


def fit_score_calibration(
    logprobs: Floats, targets: Indices, labels: Sequence[str], questions: Indices | None = None
) -> Calibration:
    """Fit the calibration of scores as :func:`fit_calibration` does, given full labels."""
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
    """Return a verdict on one row of each question that is drawn, calibrated without that question.

    The questions are those of :func:`draw_rows`. Log-probabilities are ``[items, labels]``, targets
    and questions, numbered from 0, ``[items]``. Raises ``CustosError`` if all rows are on one
    question, or those outside of a fold have one label.
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

    A question is kept with the chance of its number of rows over the largest one, so that every row
    is as likely to be drawn as any other and the error is that of a verdict, not of a question.
    Where all questions have as many rows, all are kept. Returns indices of rows, in the order of
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
    """Fit nothing, a temperature, or a temperature and a bias per label: what other items need.

    Cross-validation by question decides, with the rule of one standard error (Breiman et al. 1984):
    the simplest of the three is taken whose negative log-likelihood is not above the lowest by more
    than one standard error of the difference. What is fitted to few errors costs elsewhere. Biases
    need :data:`MIN_ITEMS_PER_LABEL` items of every label. Log-probabilities are ``[items,
    labels]``, targets and questions ``[items]``; by default each item has its own question. Fewer
    than two labels raise ``CustosError``: the temperature would have no limit.
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
    """Raise ``CustosError`` if items have no two labels to tell apart."""
    if len(occurring) < 2:
        found = f"all calibration rows are labelled '{next(iter(occurring))}'" if occurring else ""
        raise CustosError(
            f"{found or 'no calibration row has one'}; add rows with other labels, or give rows "
            "that have them with --cal FILE (data.cal in a recipe)"
        )


def _losses_left_out(normalised: Floats, one_hot: Floats, questions: Indices, fit: Fit) -> Floats:
    """Return each question's negative log-likelihood where its fold was left out of the fit."""
    folds = (np.random.default_rng(0).permutation(int(questions.max()) + 1) % FOLDS)[questions]
    losses = np.zeros(int(questions.max()) + 1)
    for fold in np.unique(folds):
        train, test = folds != fold, folds == fold
        log_posterior = _log_posterior(normalised[test], fit(normalised[train], one_hot[train]))
        np.add.at(losses, questions[test], -(one_hot[test] * log_posterior).sum(axis=1))
    return losses


def _simplest(losses: Sequence[Floats]) -> int:
    """Find the first of fits, the simplest first, that is within one standard error of the best."""
    best = min(losses, key=np.sum)
    gaps = [of_fit - best for of_fit in losses]
    return next(
        number
        for number, gap in enumerate(gaps)
        if gap.sum() <= np.sqrt(len(gap)) * (gap.std(ddof=1) if len(gap) > 1 else 0)
    )


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
