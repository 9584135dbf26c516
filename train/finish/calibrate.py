"""Calibration of a finished judge on a split that nothing else has used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from judging.errors import CustosError
from judging.files.records import write_json
from judging.judge import CALIBRATION_FILE, Judge
from judging.tasks import get_task
from judging.types import LabelledExample
from judging.verdicts.calibration import Calibration, CalibrationSet, calibration_key
from judging.verdicts.calibration_fit import (
    SMALL_SPLIT,
    fit_score_calibration,
    fit_type_calibration,
)
from train.dry_run.parts import PARTS


@PARTS.measured("calibration")
def calibrate(folder: Path, examples: Sequence[LabelledExample] | None) -> CalibrationSet | None:
    """Fit ``calibration.json`` for every rubric of which the split has all labels.

    The judge is loaded as it will be served, so rounding and merging are calibrated too.

    Args:
        folder: Run folder.
        examples: Calibration split; ``None`` if the recipe has none.

    Returns:
        What was fitted, or ``None`` if nothing was.
    """
    if examples is None:
        return None
    (folder / CALIBRATION_FILE).unlink(missing_ok=True)
    with PARTS.measured("judge load"):
        judge = Judge.load(str(folder))
    scores: dict[str, Calibration] = {}
    types: dict[str, Calibration] = {}
    for key, group in _by_key([_resolved(judge, example) for example in examples]).items():
        task = get_task(group[0].task)
        labels = task.labels(task.rubric(group[0]))
        targets = np.array([labels.index(example.label) for example in group])
        logprobs = judge.logprobs(group)
        if len(group) < SMALL_SPLIT:
            _warn(
                f"{key}: {len(group)} calibration rows are too few for honest confidences; "
                f"give {SMALL_SPLIT} or more"
            )
        try:
            scores[key] = fit_score_calibration(logprobs, targets, labels)
        except CustosError as error:
            _warn(f"{key} stays uncalibrated: {error}")
            continue
        try:
            if calibration := fit_type_calibration(logprobs, targets, labels):
                types[key] = calibration
        except CustosError as error:
            _warn(f"{key}: error types stay uncalibrated: {error}")
    if not scores:
        return None
    fitted = CalibrationSet(judge=judge.identity, rubrics=scores, error_types=types)
    write_json(folder / CALIBRATION_FILE, fitted.model_dump())
    return fitted


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


def _warn(text: str) -> None:
    Console(stderr=True).print(f"warning: {text}", markup=False, soft_wrap=True)
