"""Calibration: temperature and per-class bias on a judge's label log-probabilities.

A temperature alone cannot undo class weights or balanced sampling, which move the label shares; a
bias per class can, if there are enough errors to fit it to. So a calibration changes labels too. It
is fitted per rubric, on a split that nothing was selected on and that has the label shares of what
will be graded, and belongs to one judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judging.errors import CustosError, FieldError
from judging.fingerprint import digest
from judging.probabilities import normalise, score_logprobs
from judging.tasks import JudgeTask, get_task
from judging.types import JudgeRequest, label_of, score_of, type_of
from judging.verdicts.risk import HeldOutVerdicts


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
        """Read a ``calibration.json``, whatever judge it was fitted for.

        Raises:
            FieldError: If it is malformed.
        """
        try:
            return cls.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise FieldError.from_validation(error, str(path)) from None

    @classmethod
    def load(cls, path: Path, judge: str) -> CalibrationSet:
        """Read the ``calibration.json`` of a judge.

        Raises:
            CustosError: If it is malformed or was fitted for another judge.
        """
        calibration = cls.read(path)
        if calibration.judge != judge:
            raise CustosError(
                f"{path}: fitted for judge {calibration.judge}, but this judge is {judge}; train "
                f"the judge again, or remove the file to judge uncalibrated"
            )
        return calibration


def calibration_key(task: JudgeTask, request: JudgeRequest) -> str:
    """Return what a calibration is keyed by: task, rubric and the way the label is read.

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
    """Return the held-out verdicts that a threshold for a request's risk is found on.

    Args:
        calibration: The judge's calibration, if it has one.
        judge: Name of the judge.
        request: Request as the judge takes it.

    Raises:
        FieldError: If the calibration holds none for the request's rubric.
    """
    key = calibration_key(get_task(request.task), request)
    if calibration is None or key not in calibration.held_out:
        raise FieldError(
            "risk",
            f"judge '{judge}' has no held-out verdicts under {key} to find a threshold on; fit its "
            "calibration again with 'custos calibrate RUN --data FILE', or state no risk",
        )
    return calibration.held_out[key]
