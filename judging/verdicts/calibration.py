"""Calibration: temperature and per-class bias on a judge's label log-probabilities.

A temperature alone cannot undo class weights or balanced sampling, which move the label shares; a
bias per class can, if there are enough errors to fit it to. So a calibration changes labels too. It
belongs to one judge and is fitted per rubric, on a split that selected nothing and has the label
shares of what will be graded.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from judging.errors import CustosError, FieldError, errors_at
from judging.fingerprint import digest
from judging.labels import normalise, score_logprobs
from judging.tasks import JudgeTask, get_task
from judging.types import JudgeRequest, Verdict, label_of, score_of, type_of

CHANCE = 0.05
"""Largest probability that the error among kept verdicts is above the stated risk."""
START_SHARE = 0.25
"""Least share of the verdicts that a tested threshold keeps. Among a handful, a single slip of a
person would end the tests."""
GRID = 1 / (1 + np.exp(-np.arange(10, -3, -0.25)))
"""Tested thresholds, strictest first, evenly spaced in log-odds. They are fixed in advance, because
thresholds chosen by the verdicts would make the tests too lenient."""


NO_THRESHOLD = "no confidence is known to keep the error within"


class HeldOutVerdicts(BaseModel):
    """Confidences of verdicts on rows that their calibration was not fitted on, one a question.

    Answers to one question are right or wrong together. With one row of each question the verdicts
    are independent, so that the binomial test is exact. Questions are drawn in proportion to their
    rows, so that the error is that of a verdict.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

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
        errors would be if the share of errors among kept verdicts were the risk; the first answer
        above :data:`CHANCE` ends the tests. Thus the error among verdicts on new questions like
        these is at most the risk, except with a probability of :data:`CHANCE` over the held-out
        questions.

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
        f"{NO_THRESHOLD} {risk:g}"
        if threshold is None
        else f"the confidence {confidence:.3f} is below {threshold:.3f}, from which on the error "
        f"is at most {risk:g}"
    )
    message = "; ".join(text for text in (verdict.message, reason) if text)
    return verdict.model_copy(update={"needs_review": True, "message": message})


class Calibration(BaseModel):
    """``softmax(log-probabilities / temperature + bias)`` for one rubric."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    temperature: float = Field(gt=0)
    bias: dict[str, float]
    """By score or error type, whichever is calibrated; sums to zero."""
    n: int
    """Number of items that it was fitted on."""
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

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    judge: str
    """Digest of the judge's identity (adapter and its scale, instructions, budget, dtype)."""
    rubrics: dict[str, Calibration]
    """Over scores (labels without their error type), keyed by ``task/rubric``."""
    error_types: dict[str, Calibration] = {}
    """Over error types given the score, for rubrics that have them."""
    held_out: dict[str, HeldOutVerdicts] = {}
    """Verdicts on which the threshold for a stated risk is found, keyed as ``rubrics``; none in
    files of older versions."""

    @property
    def id(self) -> str:
        """Return a short hash of the content."""
        return digest(self.model_dump())

    def posterior(self, rubric: str, logprobs: Mapping[str, float]) -> dict[str, float]:
        """Calibrate full labels: the probability of the score times the share of the type."""
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
        """Read the ``calibration.json`` of a judge; ``CustosError`` if it is another judge's.

        So is a label without a bias.
        """
        calibration = cls.read(path)
        if calibration.judge != judge:
            raise CustosError(
                f"{path}: fitted for judge {calibration.judge}, but this judge is {judge}; fit "
                "another with custos calibrate, or remove the file and judge uncalibrated"
            )
        for part, fitted in (
            ("rubrics", calibration.rubrics),
            ("error_types", calibration.error_types),
        ):
            for key, of_rubric in fitted.items():
                with errors_at(f"{path}: field '{part}.{key}'"):
                    labels = _labels_of(key)
                wanted = map(score_of if part == "rubrics" else type_of, labels)
                if absent := [label for label in wanted if label not in {"", *of_rubric.bias}]:
                    raise FieldError(f"{part}.{key}.bias", f"no '{absent[0]}'", str(path))
        return calibration


def _labels_of(key: str) -> tuple[str, ...]:
    """Return the labels under the rubric of a :func:`calibration_key`."""
    name, _, rubric = key.partition("/")
    return get_task(name).labels(rubric.removesuffix("/given").removesuffix("/critique"))


def calibration_key(task: JudgeTask, request: JudgeRequest) -> str:
    """Name the calibration of a request, by its task, its rubric and how the label is read.

    Labels after a critique need a calibration of their own, as do those of a single order of a
    pair.
    """
    key = task.full_rubric(request)
    if request.mode == "critique":
        key += "/critique"
    if task.num_responses == 2 and request.order == "given":
        key += "/given"
    return key
