"""Calibration of a finished judge on a split that nothing else has used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from evaluation.intervals import number_clusters
from judging.errors import CustosError
from judging.files.records import write_json
from judging.judge import CALIBRATION_FILE, Judge
from judging.tasks import get_task
from judging.types import LabelledExample
from judging.verdicts.calibration import Calibration, CalibrationSet, calibration_key
from judging.verdicts.calibration_fit import (
    SMALL_SPLIT,
    cross_fitted_verdicts,
    fit_score_calibration,
    fit_type_calibration,
)
from judging.verdicts.risk import HeldOutVerdicts
from train.dry_run.parts import PARTS
from train.finish.processes import Processes


@PARTS.measured("calibration")
def calibrate(
    judge: Judge, examples: Sequence[LabelledExample], processes: Processes, folder: Path
) -> CalibrationSet | None:
    """Fit ``calibration.json`` for every rubric of which the split has all labels.

    Args:
        judge: Judge without a calibration, loaded as it will be served, so that rounding and
            merging are calibrated too.
        examples: Calibration split.
        processes: Processes that score the rows together; the first one writes the file.
        folder: Folder for the file.

    Returns:
        What was fitted, the same on every process, or ``None`` if nothing was.
    """
    scores: dict[str, Calibration] = {}
    types: dict[str, Calibration] = {}
    held_out: dict[str, HeldOutVerdicts] = {}
    for key, group in _by_key([_resolved(judge, example) for example in examples]).items():
        task = get_task(group[0].task)
        labels = task.labels(task.rubric(group[0]))
        targets = np.array([labels.index(example.label) for example in group])
        logprobs = gather_logprobs(judge, group, processes)
        if len(group) < SMALL_SPLIT:
            _warn(
                processes,
                f"{key}: {len(group)} calibration rows are too few for honest confidences; "
                f"give {SMALL_SPLIT} or more",
            )
        try:
            scores[key] = fit_score_calibration(logprobs, targets, labels)
        except CustosError as error:
            _warn(processes, f"{key} stays uncalibrated: {error}")
            continue
        try:
            if calibration := fit_type_calibration(logprobs, targets, labels):
                types[key] = calibration
        except CustosError as error:
            _warn(processes, f"{key}: error types stay uncalibrated: {error}")
        try:
            questions = number_clusters([example.group or example.question for example in group])
            held_out[key] = cross_fitted_verdicts(logprobs, targets, labels, questions)
        except CustosError as error:
            _warn(processes, f"{key}: no threshold for a stated risk: {error}")
    if not scores:
        return None
    fitted = CalibrationSet(
        judge=judge.identity, rubrics=scores, error_types=types, held_out=held_out
    )
    if processes.is_first:
        write_json(folder / CALIBRATION_FILE, fitted.model_dump())
    return fitted


def gather_logprobs(
    judge: Judge, examples: Sequence[LabelledExample], processes: Processes
) -> NDArray[np.float64]:
    """Score rows of one rubric on all processes.

    Args:
        judge: Judge.
        examples: Rows, the same on every process.
        processes: Processes that score a share each.

    Returns:
        Log-probabilities of the labels in the order of the rows, ``[rows, labels]``, on every
        process.
    """
    mine = processes.share(examples)
    scored = judge.logprobs([examples[index] for index in mine]) if mine else ()
    return np.array(processes.gather(mine, list(scored)))


def _by_key(examples: Sequence[LabelledExample]) -> dict[str, list[LabelledExample]]:
    """Group the examples that need the model by what their calibration is filed under."""
    groups: dict[str, list[LabelledExample]] = {}
    for example in examples:
        task = get_task(example.task)
        if task.rule(example) is None:
            groups.setdefault(calibration_key(task, example), []).append(example)
    return groups


def _resolved(judge: Judge, example: LabelledExample) -> LabelledExample:
    """Return an example as the judge takes it; unchanged if it does not, or lacks the label."""
    try:
        resolved = judge.resolve(example)
        get_task(resolved.task).target(resolved)
        return resolved
    except CustosError:
        return example


def _warn(processes: Processes, text: str) -> None:
    if processes.is_first:
        Console(stderr=True).print(f"warning: {text}", markup=False, soft_wrap=True)
