"""The card of each judge on the page of judges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evaluation.report.measured_tasks import unmeasured_tasks
from evaluation.report.reliability import HEADING
from evaluation.report.reliability import JSON as RELIABILITY
from judging.judge import Judge

MEASURES = {"accuracy": "accuracy", "kappa": "kappa", "mcc": "MCC", "fpr": "FPR", "ece": "ECE"}
RELIABILITY_MEASURES = ("accuracy", "kappa", "macro_f1", "ece")
BASELINES = (
    "logistic_overlap",
    "sentence_embeddings",
    "containment",
    "majority_label",
    "zero_shot",
)


def card(name: str, judge: Judge) -> dict[str, Any]:
    """Return a judge's tasks, what its fingerprint is made of, and what its report measured.

    Args:
        name: The name that clients call it.
        judge: The judge; without a report in its folder nothing is shown as measured.
    """
    description = judge.describe()
    packages = description.pop("packages")
    report: dict[str, Any] | None = None
    notes: list[list[str]] = []
    if judge.folder:
        try:
            report = json.loads((judge.folder / "report.json").read_text(encoding="utf-8"))
            readme = (judge.folder / "README.md").read_text(encoding="utf-8")
            notes = _paragraphs(readme.partition(HEADING)[0])
        except (OSError, ValueError):
            report = None
    return {
        "name": name,
        "tasks": list(judge.tasks),
        "facts": {
            key: value
            for key, value in {**description, **packages}.items()
            if key not in ("name", "tasks", "instructions") and value not in (None, "")
        },
        "unmeasured": unmeasured_tasks(judge.folder, judge.tasks) if report else [],
        "n": report["n"] if report else None,
        "rows": _rows(judge.name, report) if report else [],
        "measures": list(MEASURES.values()),
        "notes": notes,
        "reliability": _reliability(judge.folder) if judge.folder else None,
    }


def _reliability(folder: Path) -> dict[str, Any] | None:
    """Return the cells of the reliability card in a judge's folder; ``None`` if there is none."""
    try:
        known = json.loads((folder / RELIABILITY).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return {
        "data": [
            {
                "name": name,
                "n": measured["n"],
                "cells": [
                    *(_cell(measured["metrics"].get(key)) for key in RELIABILITY_MEASURES),
                    _cell((measured["abstention"] or {}).get("kept")),
                    _cell((measured["abstention"] or {}).get("error")),
                    (_seconds(measured["seconds_per_1000"]), ""),
                ],
            }
            for name, measured in known["data"].items()
        ],
        "attacks": [
            {
                "name": family.replace("_", " "),
                "n": measured["called_correct"]["n"],
                "cells": [_cell(measured["called_correct"])],
            }
            for kind in ("attacks", "controls")
            for family, measured in ((known["attacks"] or {}).get(kind) or {}).items()
        ],
        "not_measured": known["not_measured"],
    }


def _rows(name: str, report: dict[str, Any]) -> list[dict[str, Any]]:
    metrics_by_name = {name: report["metrics"]} | {
        baseline.replace("_", " "): report["baselines"][baseline]
        for baseline in BASELINES
        if baseline in report["baselines"]
    }
    return [
        {"name": row_name, "cells": [_cell(metrics.get(key)) for key in MEASURES]}
        for row_name, metrics in metrics_by_name.items()
    ]


def _seconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.0f} s"


def _cell(metric: dict[str, Any] | None) -> tuple[str, str]:
    """Return a value and its interval; a dash if there is no value."""
    if not metric or metric["value"] is None:
        return "–", ""
    if metric["low"] is None:
        return f"{metric['value']:.3f}", ""
    return f"{metric['value']:.3f}", f"[{metric['low']:.3f}, {metric['high']:.3f}]"


def _paragraphs(card_text: str) -> list[list[str]]:
    """Return the plain paragraphs of a model card; its table is made from the report instead.

    Returns:
        Per paragraph, text and code in turn, beginning with text.
    """
    blocks = [block for block in card_text.split("\n\n") if block and block[0] not in "#|`"]
    paragraphs = [
        block for block in blocks if not block.startswith("Measured on") and block[-1] != ":"
    ]
    return [" ".join(block.split()).split("`") for block in paragraphs]
