"""Calibration of a finished judge on a split that nothing else has used."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console

from evaluation.intervals import number_clusters
from judging.errors import CustosError
from judging.files.records import write_json
from judging.judge import CALIBRATION_FILE, Judge
from judging.tasks import get_task
from judging.types import LabelledExample, score_of
from judging.verdicts.calibration import (
    Calibration,
    CalibrationSet,
    HeldOutVerdicts,
    calibration_key,
)
from judging.verdicts.calibration_fit import (
    SMALL_SPLIT,
    check_labels,
    cross_fitted_verdicts,
    fit_score_calibration,
    fit_type_calibration,
)
from train.finish.grading import KeptGrades, KeptWindow, Processes
from train.tracking.parts import PARTS


@PARTS.measured("calibration")
def calibrate(
    judge: Judge, examples: Sequence[LabelledExample], kept: KeptGrades
) -> CalibrationSet | None:
    """Score a calibration split on all processes; fit a calibration, ``None`` if nothing fits.

    The judge is loaded as it will be served, so that rounding and merging are calibrated too. The
    first process writes ``calibration.json`` to the run folder.
    """
    rows = rows_to_score(judge, examples, kept.processes)
    if not rows:
        _warn(kept.processes, "the judge stays uncalibrated: no calibration row can be fitted on")
        return None
    logprobs = kept.grade(
        "calibrating", judge, rows, partial(score_rows, judge), KeptWindow[list[float]]
    )
    return fit_calibrations(judge, rows, logprobs, kept.processes, kept.run_folder)


def rows_to_score(
    judge: Judge, examples: Sequence[LabelledExample], processes: Processes
) -> list[LabelledExample]:
    """Choose the rows to fit on, as the judge takes them, in order.

    Rows that a rule decides are left out. So are those of rubrics whose rows all have one label,
    with a warning: nothing can be fitted on them, however the judge scores them. A label that no
    row has is named, as biases need rows of all.
    """
    rows: list[LabelledExample] = []
    for example in examples:
        with suppress(CustosError):  # as it is, if the judge does not take it or lacks the label
            resolved = judge.resolve(example)
            get_task(resolved.task).target(resolved)
            example = resolved
        if get_task(example.task).rule_if_empty(example) is None:
            rows.append(example)
    kept: set[int] = set()
    for key, indices in _by_key(rows).items():
        scores = dict.fromkeys(map(score_of, _labels(rows[indices[0]])))
        occurring = {score_of(rows[index].label) for index in indices}
        try:
            check_labels(occurring)
        except CustosError as error:
            _warn(processes, f"{key} stays uncalibrated: {error}")
            continue
        kept.update(indices)
        if absent := [f"'{score}'" for score in scores if score not in occurring]:
            text = f"no calibration row is labelled {' or '.join(absent)}"
            _warn(processes, f"{key}: {text}: only a temperature fits")
    return [rows[index] for index in sorted(kept)]


def score_rows(judge: Judge, rows: Sequence[LabelledExample]) -> list[list[float]]:
    """Score each row: the log-probabilities of the labels of its rubric, in the order of the rows.

    Raises ``CustosError``, which names the row, if one cannot be scored.
    """
    scores: dict[int, list[float]] = {}
    for indices in _by_key(rows).values():
        of_rubric = judge.logprobs([rows[index] for index in indices])
        scores.update(zip(indices, of_rubric.tolist(), strict=True))
    return [scores[index] for index in range(len(rows))]


def fit_calibrations(
    judge: Judge,
    rows: Sequence[LabelledExample],
    logprobs: Sequence[Sequence[float]],
    processes: Processes,
    folder: Path,
) -> CalibrationSet:
    """Fit a calibration for each rubric and write them to ``calibration.json``."""
    scores, types = dict[str, Calibration](), dict[str, Calibration]()
    held_out: dict[str, HeldOutVerdicts] = {}
    for key, indices in _by_key(rows).items():
        group = [rows[index] for index in indices]
        labels = _labels(group[0])
        targets = np.array([labels.index(row.label) for row in group])
        of_group = np.array([logprobs[index] for index in indices])
        if len(group) < SMALL_SPLIT:
            _warn(
                processes,
                f"{key}: {len(group)} calibration rows are too few for honest confidences; "
                f"give {SMALL_SPLIT} or more",
            )
        questions = number_clusters([row.group or row.asked for row in group])
        scores[key] = fit_score_calibration(of_group, targets, labels, questions)
        try:
            if calibration := fit_type_calibration(of_group, targets, labels, questions):
                types[key] = calibration
        except CustosError as error:
            _warn(processes, f"{key}: error types stay uncalibrated: {error}")
        try:
            held_out[key] = cross_fitted_verdicts(of_group, targets, labels, questions)
        except CustosError as error:
            _warn(processes, f"{key}: no threshold for a stated risk: {error}")
    fitted = CalibrationSet(
        judge=judge.identity, rubrics=scores, error_types=types, held_out=held_out
    )
    if processes.is_first:
        write_json(folder / CALIBRATION_FILE, fitted.model_dump())
    return fitted


def _by_key(rows: Sequence[LabelledExample]) -> dict[str, list[int]]:
    """Group the indices of the rows by their calibration."""
    groups: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        groups.setdefault(calibration_key(get_task(row.task), row), []).append(index)
    return groups


def _labels(row: LabelledExample) -> tuple[str, ...]:
    """List the labels of a row's rubric."""
    task = get_task(row.task)
    return task.labels(task.rubric(row))


def _warn(processes: Processes, text: str) -> None:
    if processes.is_first:
        Console(stderr=True).print(f"warning: {text}", markup=False, soft_wrap=True)
