"""The result of a finished run, for the screen and for its card."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from data_prep.splits.overlap import Overlap
from evaluation.intervals import Z_95, clustered_rate, number_clusters
from evaluation.outcomes import full_label
from evaluation.paired import paired_accuracies
from evaluation.report.markdown import with_interval
from judging.types import LabelledExample, Verdict
from train.loop.progress import Progress
from train.loop.selection import selection_key, validations_in
from train.setup.data import RunSplits
from train.setup.overlap import count_known_to_start
from train.setup.recipe import Recipe

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
        """Return how many test rows ask what the start was trained on or chosen by."""
        return count_known_to_start(self.recipe, self.splits.test)

    @property
    def learned(self) -> Mapping[str, Any] | None:
        """Return the accuracy against the start, on test rows or else on validation rows.

        ``None`` if the run chose its start, or has no accuracy.
        """
        if self.progress.chosen["step"] == 0:
            return None
        if self.report:
            of_test: Mapping[str, Any] = self.report["against_start"]
            return of_test
        return validation_against_start(self.progress, self.splits.val, self.recipe)


class ValidationAccuracy(NamedTuple):
    """Validation accuracy of the chosen step, with its 95 % interval."""

    value: float
    low: float
    high: float
    rows: int

    @property
    def is_too_wide(self) -> bool:
        """Return whether the rows are too few to choose a step by."""
        return (self.high - self.low) / 2 > WIDEST


def validation_accuracy(
    right: Sequence[bool | None], examples: Sequence[LabelledExample]
) -> ValidationAccuracy:
    """Measure accuracy on validation rows; rows of one question count as less than independent.

    Args:
        right: Whether each row is judged as people did; ``None`` where they did not decide.
        examples: The rows.
    """
    decided = [(r, e) for r, e in zip(right, examples, strict=True) if r is not None]
    clusters = number_clusters([e.group or e.question for _, e in decided])
    values = np.array([r for r, _ in decided], dtype=np.float64)
    low, high = clustered_rate(values, clusters)
    return ValidationAccuracy(float(values.mean()), low, high, len(values))


def selection_lines(result: RunResult) -> list[str]:
    """Return which step became the judge and why, and a warning where chance may have chosen it."""
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
        figures = [f"nll {progress.chosen['val_nll']:.3f} on {len(result.splits.val)} rows"]
        return [f"{chosen} (validation: {figures[0]})"]
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
    examples: Sequence[LabelledExample],
    verdicts: Sequence[Verdict],
    start: Sequence[Verdict],
    recipe: Recipe,
) -> dict[str, Any]:
    """Compare the finished judge with its start on test rows; a row without a label is not right.

    Returns:
        The figures of :func:`~evaluation.paired.paired_accuracies`, with ``split``,
        ``start`` and ``chosen_on``, whether the rows also chose the step.
    """
    right, before = (
        [full_label(verdict) == full_label(row) for row, verdict in zip(examples, of, strict=True)]
        for of in (verdicts, start)
    )
    clusters = number_clusters([row.group or row.question for row in examples])
    paired = paired_accuracies(right, before, clusters, seed=recipe.run.seed)
    return {"split": "test", "start": start_name(recipe), "chosen_on": False, **paired}


def validation_against_start(
    progress: Progress, examples: Sequence[LabelledExample], recipe: Recipe
) -> dict[str, Any] | None:
    """Compare the chosen step with the start on validation rows; ``None`` without an accuracy."""
    pairs = [
        (now, before, example)
        for now, before, example in zip(
            progress.right or (), progress.right_at_start or (), examples, strict=False
        )
        if now is not None and before is not None
    ]
    if not pairs:
        return None
    now, before, rows = zip(*pairs, strict=True)
    chosen_on = recipe.run.select == "best"
    clusters = number_clusters([row.group or row.question for row in rows])
    paired = paired_accuracies(now, before, clusters, seed=recipe.run.seed)
    return {"split": "validation", "start": start_name(recipe), "chosen_on": chosen_on, **paired}


def learned_line(learned: Mapping[str, Any]) -> str:
    """Return what was learned against the start, in one line."""
    difference = learned["difference"]
    ends = (
        ""
        if difference["low"] is None
        else f" [{difference['low']:+.3f}, {difference['high']:+.3f}]"
    )
    caution = ", on which the step was chosen" if learned["chosen_on"] else ""
    return (
        f"{learned['split']}: accuracy {with_interval(learned['first'])} against "
        f"{with_interval(learned['second'])} at the start ({learned['start']}): "
        f"{difference['value']:+.3f}{ends}; {learned['n']:,} rows on {learned['clusters']:,} "
        f"questions{caution}, 95 % intervals"
    )


def start_name(recipe: Recipe) -> str:
    """Return the name of the judge that a run starts from."""
    init = recipe.adapter.init
    return str(init) if init else f"{recipe.backbone}, untrained"


def overlap_lines(result: RunResult) -> list[str]:
    """Return every overlap of the run's rows that makes its figures better than they are."""
    lines = [overlap.describe() for overlap in result.overlaps]
    if result.known_to_start:
        lines.append(
            f"of {len(result.splits.test or ())} test rows, {result.known_to_start} ask what "
            f"{result.recipe.adapter.init} was trained on or chosen by"
        )
    return lines
