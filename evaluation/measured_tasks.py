"""Figures that were measured of a judge on a task, or a note that there are none."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluation.comparisons.by_task import RULES_NAME, VARIANT_MAJORITY
from evaluation.report.markdown import with_interval
from judging.judge.card import CARD_FILE, SHIPPED, shipped_judges

REPORT_FILE = "report.json"
RIVALS = {
    RULES_NAME: "the benchmark's rules have accuracy",
    VARIANT_MAJORITY: "the most frequent label of each variant has accuracy",
}
ADVICE = {RULES_NAME: ": consider --judge rules", VARIANT_MAJORITY: ""}


def measured_lines(name: str, folder: Path | None, tasks: Iterable[str]) -> list[str]:
    """Return what was measured of a judge, one sentence for each task.

    Args:
        name: Name of the judge or, for a judge that is not trained, of its backbone.
        folder: Run folder of the judge; ``None`` if it has none, as a judge that is not trained.
        tasks: Tasks that it is used for.
    """
    return [_measured_line(name, folder, task) for task in tasks]


def unmeasured_tasks(folder: Path | None, tasks: Iterable[str]) -> list[str]:
    """Return the tasks that the report in a judge's folder has no figures for.

    Args:
        folder: Run folder of the judge; ``None`` if it has none.
        tasks: Tasks that it is used for.
    """
    report = _read(folder / REPORT_FILE) if folder is not None else {}
    return [task for task in tasks if not any(_accuracies(report, task))]


def _measured_line(name: str, folder: Path | None, task: str) -> str:
    report = _read(folder / REPORT_FILE) if folder is not None else {}
    figures = [
        f"accuracy {with_interval(accuracy)} on {accuracy['n']:,} rows ({variant})"
        for variant, accuracy in _accuracies(report, task)
    ]
    if figures:
        beside = list(_beside(report.get("tasks", {}).get(task, {})))
        return "; ".join([f"judge {name} on {task}: {'; '.join(figures)}", *beside])
    line = f"judge {name}: not measured on this task ({task})"
    if folder is None and (others := list(_zero_shot(name))):
        line += f"; untrained on other tasks: {'; '.join(others)}"
    return line


def _accuracies(report: Mapping[str, Any], task: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the variants of a task of which rows got a label, with the accuracy on these rows."""
    for part, measured in report.get("slices", {}).get("task", {}).items():
        name, _, variant = part.partition("/")
        if name == task and measured["accuracy"]["n"]:
            yield variant, measured["accuracy"]


def _beside(measured: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the rules and the majority have on all rows, and if the judge beats them there.

    The judge's own figures leave out the rows that it gave no label. Here such rows count as wrong.

    Args:
        measured: A task's part of :func:`~evaluation.comparisons.by_task.measure_by_task`.
    """
    for name, rival in measured.get("rivals", {}).items():
        gain = rival["gain"]["low"]
        is_better = gain is not None and gain > 0
        verdict = "" if is_better else f", which it is not shown to beat{ADVICE[name]}"
        accuracy = rival["accuracy"]
        yield (
            f"on all {accuracy['n']:,} rows, a missing label being wrong, {RIVALS[name]} "
            f"{with_interval(accuracy)}{verdict}"
        )


def _zero_shot(backbone: str) -> Iterator[str]:
    """Yield what shipped judges measured of their backbone before it was trained."""
    family = backbone.partition("@")[0]
    for judge in shipped_judges():
        trained_on = str(_read(SHIPPED / judge / CARD_FILE).get("backbone", ""))
        report = _read(SHIPPED / judge / REPORT_FILE)
        baseline = report.get("baselines", {}).get("zero_shot")
        if baseline and trained_on.partition("@")[0] == family:
            tasks = ", ".join(report.get("slices", {}).get("task", {}))
            yield f"{trained_on} on {tasks}: accuracy {with_interval(baseline['accuracy'])}"


def _read(path: Path) -> dict[str, Any]:
    """Read a JSON object; a folder from elsewhere need not hold one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
