"""Figures that were measured of a judge on a task, or a note that there are none."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluation.baselines import RULES_NAME, VARIANT_MAJORITY
from evaluation.report.markdown import with_interval
from judging.judge.card import CARD_FILE, SHIPPED, shipped_judges

REPORT_FILE = "report.json"
RIVALS = {
    RULES_NAME: "the benchmark's rules have accuracy",
    VARIANT_MAJORITY: "the most frequent label of each variant has accuracy",
}
ADVICE = {RULES_NAME: ": consider --judge rules", VARIANT_MAJORITY: ""}


def measured_lines(name: str, folder: Path | None, tasks: Iterable[str]) -> list[str]:
    """Say what was measured of a judge, one sentence for each task that it is used for.

    A judge that is not trained has no run folder, and its name is that of its backbone. The judge's
    own figures leave out the rows that it gave no label. Beside rules, such rows count as wrong.
    """
    report = _read(folder / REPORT_FILE) if folder is not None else {}
    lines = []
    for task in tasks:
        figures = [
            f"accuracy {with_interval(accuracy)} on {accuracy['n']:,} rows ({variant})"
            for variant, accuracy in _accuracies(report, task)
        ]
        if not figures:
            line = f"judge {name}: not measured on this task ({task})"
            if folder is None and (others := list(_zero_shot(name))):
                line += f"; untrained on other tasks: {'; '.join(others)}"
            lines.append(line)
            continue
        parts = [f"judge {name} on {task}: {'; '.join(figures)}"]
        rivals = report.get("tasks", {}).get(task, {}).get("rivals", {})
        for rival, measured in rivals.items():
            accuracy, gain = measured["accuracy"], measured["gain"]["low"]
            is_better = gain is not None and gain > 0
            verdict = "" if is_better else f", which it is not shown to beat{ADVICE[rival]}"
            parts.append(
                f"on all {accuracy['n']:,} rows, a missing label being wrong, {RIVALS[rival]} "
                f"{with_interval(accuracy)}{verdict}"
            )
        lines.append("; ".join(parts))
    return lines


def unmeasured_tasks(folder: Path | None, tasks: Iterable[str]) -> list[str]:
    """List the tasks that a judge's run folder, if it has one, has no figures for."""
    report = _read(folder / REPORT_FILE) if folder is not None else {}
    return [task for task in tasks if not any(_accuracies(report, task))]


def _accuracies(report: Mapping[str, Any], task: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the variants of a task of which rows got a label, with the accuracy on these rows."""
    for part, measured in report.get("slices", {}).get("task", {}).items():
        name, _, variant = part.partition("/")
        if name == task and measured["accuracy"]["n"]:
            yield variant, measured["accuracy"]


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
