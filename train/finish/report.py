"""The result of a finished run: its report on the test split, and the last lines that it shows."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from data_prep.splits.overlap import Overlap
from evaluation.intervals import Z_95, clustered_rate, number_clusters
from evaluation.outcomes import NothingScored, full_label
from evaluation.paired import paired_accuracies
from evaluation.ranking.favour import family_of
from evaluation.report.evaluate import (
    grade_examples,
    resolve_examples,
    seen_data,
    uncalibrated_verdicts,
)
from evaluation.report.markdown import with_interval
from evaluation.report.report import build_report, write_report
from judging.files.questions import count_trained_on
from judging.judge import Judge
from judging.types import LabelledExample, Verdict
from train.finish.grading import KeptGrades, KeptWindow
from train.loop.progress import Progress, selection_key, validations_in
from train.rows.data import RunSplits
from train.setup.recipe import Recipe
from train.setup.run_log import GRADE_VARIABLE, RUN_LOG
from train.tracking.parts import PARTS

WIDEST = 0.1
"""Half the width of the interval of an accuracy above which steps are chosen by chance."""
ENOUGH_QUESTIONS = math.ceil(Z_95**2 / 4 / WIDEST**2 / 10) * 10
"""Questions, with a row each, whose interval is no wider than that at any accuracy: 100.

The binomial variance is at most 1/4. A handful of rows says too little of how rows of one question
hang together to reckon with that.
"""


@dataclass(frozen=True)
class RunResult:
    """A finished run: what went in, what was chosen, and what was measured."""

    recipe: Recipe
    splits: RunSplits
    hashes: Mapping[str, str]
    """SHA-256 of every file that was read, by the name the recipe gives it."""
    overlaps: Sequence[Overlap]
    """Overlaps between splits that the recipe allows."""
    progress: Progress
    report: Mapping[str, Any] | None = None
    """Report on the test split; ``None`` without one."""

    @property
    def known_to_start(self) -> int:
        """Count the test rows that ask what the start was trained on or chosen by.

        Judges that do not say what they were trained on, such as the shipped ones, count as 0.
        """
        folder, rows = self.recipe.adapter.init_folder, self.splits.test
        return (count_trained_on(folder, rows) or 0) if folder and rows else 0

    @property
    def learned(self) -> Mapping[str, Any] | None:
        """Compare the accuracy with the start's, on test rows or else on validation rows.

        ``None`` if the run chose its start, or has no accuracy.
        """
        if self.progress.chosen["step"] == 0:
            return None
        if self.report:
            of_test: Mapping[str, Any] = self.report["against_start"]
            return of_test
        right, at_start = self.progress.right or (), self.progress.right_at_start or ()
        known = [
            each
            for each in zip(self.splits.val, right, at_start, strict=False)
            if each[1] is not None and each[2] is not None
        ]
        if not known:
            return None
        rows, now, before = zip(*known, strict=True)
        return against_start("validation", rows, now, before, self.recipe)


class ValidationAccuracy(NamedTuple):
    """Validation accuracy of the chosen step, with its 95 % interval."""

    value: float
    low: float
    high: float
    rows: int

    @property
    def is_too_wide(self) -> bool:
        """Tell whether the rows are too few to choose a step by."""
        return (self.high - self.low) / 2 > WIDEST


def validation_accuracy(
    right: Sequence[bool | None], examples: Sequence[LabelledExample]
) -> ValidationAccuracy:
    """Measure accuracy on validation rows; rows of one question count as less than independent."""
    decided = [(r, e) for r, e in zip(right, examples, strict=True) if r is not None]
    clusters = number_clusters([e.group or e.asked for _, e in decided])
    values = np.array([r for r, _ in decided], dtype=np.float64)
    low, high = clustered_rate(values, clusters)
    return ValidationAccuracy(float(values.mean()), low, high, len(values))


def selection_lines(result: RunResult) -> list[str]:
    """Say which step became the judge and why, and warn where chance may have chosen it."""
    progress, run = result.progress, result.recipe.run
    step, validations = int(progress.chosen["step"]), validations_in(progress.history)
    if step == 0:
        chosen = "no step beat the start: the judge in this folder is the one it started from"
    elif run.select == "last":
        best = int(max(validations, key=selection_key)["step"])
        other = "" if best == step else f"; step {best} validated best"
        chosen = f"step {step}, the last one (run.select=last){other}"
    else:
        chosen = f"step {step} of {progress.step}, the best of {len(validations)} validations"
    if progress.right is None or all(row is None for row in progress.right):
        nll = f"nll {progress.chosen['val_nll']:.3f} on {len(result.splits.val)} rows"
        return [f"{chosen} (validation: {nll})"]
    accuracy = validation_accuracy(progress.right, result.splits.val)
    lines = [
        f"{chosen} (validation: accuracy {accuracy.value:.3f} [{accuracy.low:.3f}, "
        f"{accuracy.high:.3f}] on {accuracy.rows} rows)"
    ]
    if accuracy.is_too_wide and run.select == "best":
        half = (accuracy.high - accuracy.low) / 2
        lines.append(
            f"warning: {accuracy.rows} validation rows are too few to choose a step by: their "
            f"accuracy is sure to ±{half:.2f} only; rows on {ENOUGH_QUESTIONS} "
            f"different questions would make it ±{WIDEST:.2f}"
        )
    return lines


def against_start(
    split: str,
    examples: Sequence[LabelledExample],
    right: Sequence[bool],
    before: Sequence[bool],
    recipe: Recipe,
) -> dict[str, Any]:
    """Compare the finished judge with its start on rows of ``test`` or ``validation``.

    To the figures of :func:`~evaluation.paired.paired_accuracies` come ``split``, ``start`` and
    ``chosen_on``, whether the rows also chose the step.
    """
    clusters = number_clusters([row.group or row.asked for row in examples])
    start = str(recipe.adapter.init or f"{recipe.backbone}, untrained")
    chosen_on = split == "validation" and recipe.run.select == "best"
    paired = paired_accuracies(right, before, clusters, seed=recipe.run.seed)
    return {"split": split, "start": start, "chosen_on": chosen_on, **paired}


def learned_line(learned: Mapping[str, Any]) -> str:
    """Say what was learned against the start, in one line."""
    difference = learned["difference"]
    low, high = difference["low"], difference["high"]
    ends = "" if low is None else f" [{low:+.3f}, {high:+.3f}]"
    caution = ", on which the step was chosen" if learned["chosen_on"] else ""
    return (
        f"{learned['split']}: accuracy {with_interval(learned['first'])} against "
        f"{with_interval(learned['second'])} at the start ({learned['start']}): "
        f"{difference['value']:+.3f}{ends}; {learned['n']:,} rows on {learned['clusters']:,} "
        f"questions{caution}, 95 % intervals"
    )


def overlap_lines(result: RunResult) -> list[str]:
    """Describe every overlap of the run's rows that makes its figures better than they are."""
    lines = [overlap.describe() for overlap in result.overlaps]
    if result.known_to_start:
        lines.append(
            f"of {len(result.splits.test or ())} test rows, {result.known_to_start} ask what "
            f"{result.recipe.adapter.init} was trained on or chosen by"
        )
    return lines


MAIN_METRICS = ("accuracy", "kappa", "score_accuracy", "type_accuracy")


@PARTS.measured("grading")
def report_test(
    judge: Judge,
    recipe: Recipe,
    examples: Sequence[LabelledExample],
    start: Mapping[int, Verdict],
    command: str,
    kept: KeptGrades,
) -> dict[str, Any] | None:
    """Grade the test split with the finished judge on all processes; the first writes the report.

    The report has ``against_start`` if there are verdicts of the start. ``None`` without a row that
    the judge can take, and on every process but the first.
    """
    examples = resolve_examples(judge, examples)
    grade = partial(grade_examples, judge, progress=False)
    was_stopped, started = kept.is_begun("grading"), time.perf_counter()
    verdicts = kept.grade("grading", judge, examples, grade, KeptWindow[Verdict])
    seconds = None if was_stopped else time.perf_counter() - started
    if not kept.processes.is_first:
        return None
    name = "start" if recipe.adapter.init else "zero_shot"
    beside = {name: list(start.values())} if len(start) == len(examples) else {}
    try:
        report = build_report(
            examples,
            verdicts,
            uncalibrated=uncalibrated_verdicts(examples, verdicts)
            if judge.calibration is not None
            else None,
            seen=seen_data(judge.folder, None, examples),
            seconds=seconds,
            command=command,
            references=beside,
            family=family_of(judge.backbone.name),
            seed=recipe.run.seed,
        )
    except NothingScored as error:  # The judge is finished all the same.
        Console(stderr=True).print(f"test split: {error}", markup=False, soft_wrap=True)
        return None
    if start:
        rows = [examples[index] for index in start]
        wanted = [full_label(row) for row in rows]
        # A row without a label is not right.
        right = [full_label(verdicts[i]) == label for i, label in zip(start, wanted, strict=True)]
        before = [full_label(v) == label for v, label in zip(start.values(), wanted, strict=True)]
        report["against_start"] = against_start("test", rows, right, before, recipe)
    write_report(report, recipe.run.output)
    return report


def announce(result: RunResult) -> None:
    """Show what was learned, where the judge is, and the commands that use it."""
    folder, report = result.recipe.run.output, result.report
    lines = [f"warning: {line}" for line in overlap_lines(result)]
    lines += selection_lines(result)
    if result.learned:
        lines.append(learned_line(result.learned))
    if report:
        metrics = report["metrics"]
        figures = ", ".join(
            f"{name.replace('_', ' ')} {with_interval(metrics[name])}"
            for name in MAIN_METRICS
            if name in metrics
        )
        num_rows = metrics["accuracy"]["n"]
        figures += f" on {num_rows:,} test rows (95 % intervals), see {folder / 'report.md'}"
    else:
        figures = f"no test split, see {folder / 'README.md'}"
    grade = f"custos grade --judge {folder} --in FILE.jsonl --out verdicts.jsonl"
    lines += [
        f"judge: {folder}: {figures}",
        *(f"caution: {caution}" for caution in (report or {}).get("cautions", ())),
        f"next: {os.environ.get(GRADE_VARIABLE, grade)}",
        f"or:   custos serve --judge {folder.name}={folder}",
    ]
    for line in lines:
        Console().print(line, markup=False, highlight=False, soft_wrap=True)
        RUN_LOG.write(line)
