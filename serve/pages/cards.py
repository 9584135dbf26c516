"""What the page of judges shows of one."""

from __future__ import annotations

import json
from typing import Any

from judging import Judge
from judging.errors import CustosError

MEASURES = {"accuracy": "accuracy", "kappa": "kappa", "mcc": "MCC", "fpr": "FPR", "ece": "ECE"}
BASELINES = ("containment", "majority_label", "zero_shot")


def card(name: str, judge: Judge) -> dict[str, Any]:
    """Name, tasks, fingerprint's ingredients, and what was measured, where a report lies by.

    Args:
        name: What clients call it.
        judge: The judge.
    """
    described = judge.describe()
    report: dict[str, Any] | None = None
    notes: list[list[str]] = []
    if judge.folder:
        try:
            report = json.loads((judge.folder / "report.json").read_text(encoding="utf-8"))
            notes = _prose((judge.folder / "README.md").read_text(encoding="utf-8"))
        except (OSError, ValueError, CustosError):
            report = None
    return {
        "name": name,
        "tasks": list(judge.tasks),
        "facts": {
            key: value
            for key, value in described.items()
            if key not in ("name", "tasks", "instructions") and value not in (None, "")
        },
        "n": report["n"] if report else None,
        "rows": _rows(judge.name, report) if report else [],
        "measures": list(MEASURES.values()),
        "notes": notes,
    }


def _rows(name: str, report: dict[str, Any]) -> list[dict[str, Any]]:
    measured = {name: report["metrics"]} | {
        baseline.replace("_", " "): report["baselines"][baseline]
        for baseline in BASELINES
        if baseline in report["baselines"]
    }
    return [
        {"name": row, "cells": [_cell(metrics.get(key)) for key in MEASURES]}
        for row, metrics in measured.items()
    ]


def _cell(metric: dict[str, Any] | None) -> tuple[str, str]:
    """A value and its interval; a dash where there is none."""
    if not metric or metric["value"] is None:
        return "–", ""
    if metric["low"] is None:
        return f"{metric['value']:.3f}", ""
    return f"{metric['value']:.3f}", f"[{metric['low']:.3f}, {metric['high']:.3f}]"


def _prose(card_text: str) -> list[list[str]]:
    """The card's plain paragraphs: its table is shown from the report.

    Returns:
        Per paragraph, text and code in turn, beginning with text.
    """
    blocks = [block for block in card_text.split("\n\n") if block and block[0] not in "#|`"]
    told = [block for block in blocks if not block.startswith("Measured on") and block[-1] != ":"]
    return [" ".join(block.split()).split("`") for block in told]
