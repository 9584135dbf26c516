"""The report on the test split, and the last lines that a run shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from evaluation.evaluate import evaluate_judge
from evaluation.report.markdown import with_interval
from evaluation.report.report import write_report
from evaluation.unscored import NothingScored
from judging.judge import Judge
from judging.types import LabelledExample
from train.setup.recipe import Recipe
from train.setup.run_log import RUN_LOG

MAIN_METRICS = ("accuracy", "kappa", "score_accuracy", "type_accuracy")


def report_test(
    recipe: Recipe, examples: Sequence[LabelledExample] | None, command: str
) -> dict[str, Any] | None:
    """Grade the test split with the finished judge and write its report.

    Args:
        recipe: Recipe of the run.
        examples: Test split; ``None`` if the recipe has none.
        command: Command that was typed.

    Returns:
        The report, or ``None`` without a test split or a row of it that the judge can take.
    """
    if examples is None:
        return None
    judge = Judge.load(str(recipe.run.output))
    try:
        report, _ = evaluate_judge(judge, examples, command=command, seed=recipe.run.seed)
    except NothingScored as error:  # The judge is finished all the same.
        Console(stderr=True).print(f"test split: {error}", markup=False, soft_wrap=True)
        return None
    write_report(report, recipe.run.output)
    return report


def announce(folder: Path, report: Mapping[str, Any] | None, best: Mapping[str, float]) -> None:
    """Show where the judge is, its main figures, and the command that uses it.

    Args:
        folder: Run folder.
        report: Report on the test split; ``None`` if the recipe has none.
        best: Scores of the validation that chose the adapter.
    """
    if report:
        metrics = report["metrics"]
        figures = ", ".join(
            f"{name.replace('_', ' ')} {with_interval(metrics[name])}"
            for name in MAIN_METRICS
            if name in metrics
        )
        figures += f" on {report['n']:,} test rows (95 % intervals), see {folder / 'report.md'}"
    else:
        figures = ", ".join(
            f"validation {name.removeprefix('val_')} {value:.3f}"
            for name, value in best.items()
            if name.startswith("val_")
        )
        figures += " (no test split)"
    use = f"custos grade --judge {folder} --in FILE.jsonl --out verdicts.jsonl"
    for line in (f"judge: {folder}: {figures}", f"next: {use}"):
        Console().print(line, markup=False, highlight=False, soft_wrap=True)
        RUN_LOG.write(line)
