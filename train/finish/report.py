"""The report on the test split, and the last lines that a run shows."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import Console

from evaluation.outcomes import NothingScored
from evaluation.ranking.favour import family_of
from evaluation.report.evaluate import (
    grade_examples,
    resolve_examples,
    seen_data,
    uncalibrated_verdicts,
)
from evaluation.report.markdown import with_interval
from evaluation.report.report import build_report, write_report
from judging.judge import Judge
from judging.types import LabelledExample, Verdict
from train.finish.kept_grades import KeptGrades, KeptWindow
from train.finish.result import (
    RunResult,
    against_start,
    learned_line,
    overlap_lines,
    selection_lines,
)
from train.setup.recipe import Recipe
from train.setup.run_log import GRADE_VARIABLE, RUN_LOG
from train.tracking.parts import PARTS

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

    Args:
        judge: Finished judge, with its calibration.
        recipe: Recipe of the run.
        examples: Test split.
        start: Verdicts of the start (:func:`~train.finish.start.grade_start`).
        command: Command that was typed.
        kept: Grades the rows on all processes.

    Returns:
        The report, with ``against_start`` if there are verdicts of the start; ``None`` without a
        row that the judge can take, and on every process but the first.
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
        report["against_start"] = against_start(
            [examples[index] for index in start],
            [verdicts[index] for index in start],
            list(start.values()),
            recipe,
        )
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
