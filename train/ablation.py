"""HiEval's ablation (Table 6) on a laptop: every cell trained over several seeds, one table.

python -m train.ablation --out runs/ablation

Runs ``recipes/embedded/demo.yaml`` (stage 1) and ``recipes/embedded/ea.yaml`` (stage 2) with one
thing changed per cell. A killed ablation goes on where it stood when the command is given again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from scipy import stats

from evaluation.markdown import number, table
from judging.rows import atomic_write, write_json
from train.recipe import RECIPES

TRAIN = Path(__file__).parent
COLUMNS = ("quick score", "S-Acc", "A-Acc", "stage 1 kept")


@dataclass(frozen=True)
class Cell:
    """One line of the table."""

    name: str
    stage: int
    overrides: tuple[str, ...] = ()
    published: tuple[float | None, ...] = (None, None, None, None)
    """HiEval's Table 6, in the order of ``COLUMNS``."""


CELLS = (
    Cell("HiEval-QS", 1, published=(0.938, None, None, None)),
    Cell("no focal loss", 1, ("loss.gamma=0", "loss.weighting=none"), (0.925, None, None, None)),
    Cell("HiEval-EA", 2, published=(None, 0.938, 0.855, None)),
    Cell("no unlikelihood", 2, ("loss.unlikelihood=0",), (None, 0.910, 0.840, None)),
    Cell("no replay", 2, ("replay.train=[]",), (None, 0.552, 0.413, None)),
    Cell("hardest negatives", 2, ("loss.negatives=hardest",)),
    Cell("all negatives", 2, ("loss.negatives=all",)),
    Cell("differing suffix", 2, ("loss.span=suffix",)),
)


def main(argv: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--stage1", type=Path, default=RECIPES / "embedded" / "demo.yaml")
    parser.add_argument("--stage2", type=Path, default=RECIPES / "embedded" / "ea.yaml")
    arguments = parser.parse_args(argv)
    recipes = {1: arguments.stage1, 2: arguments.stage2}
    started = time.monotonic()
    results = {
        cell.name: [run_cell(cell, seed, recipes, arguments.out) for seed in range(arguments.seeds)]
        for cell in CELLS
    }
    command = "python -m train.ablation " + " ".join(sys.argv[1:] if argv is None else argv)
    page = render(results, command)
    write_json(
        arguments.out / "ablation.json",
        {"command": command, "seconds": time.monotonic() - started, "cells": results},
    )
    with atomic_write(arguments.out / "ablation.md") as file:
        file.write(page)
    Console().print(page, markup=False)


def run_cell(cell: Cell, seed: int, recipes: Mapping[int, Path], out: Path) -> dict[str, Any]:
    """Train and measure one cell with one seed, or read what an earlier run measured."""
    folder = out / cell.name.replace(" ", "_") / str(seed)
    if not (folder / "report.json").is_file():
        start = out / CELLS[0].name / str(seed)
        overrides = [*cell.overrides, f"run.seed={seed}", f"run.output={folder}"]
        if cell.stage == 2:
            overrides.append(f"adapter.init={start}")
        Console().print(f"{cell.name}, seed {seed}: {folder}")
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "log.txt").open("a", encoding="utf-8") as log:
            subprocess.run(
                [
                    *(sys.executable, str(TRAIN / f"hieval_stage{cell.stage}.py")),
                    *("--config", str(recipes[cell.stage]), *overrides),
                ],
                check=True,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ,
            )
    metrics = json.loads((folder / "report.json").read_text(encoding="utf-8"))["metrics"]
    history = json.loads((folder / "history.json").read_text(encoding="utf-8"))
    watched = [entry["stage1_accuracy"] for entry in history if "stage1_accuracy" in entry]
    return {
        "seed": seed,
        "n": metrics["accuracy"]["n"],
        "quick score": metrics["accuracy"]["value"] if cell.stage == 1 else None,
        "S-Acc": metrics["score_accuracy"]["value"] if cell.stage == 2 else None,
        "A-Acc": metrics["type_accuracy"]["value"] if cell.stage == 2 else None,
        "stage 1 before": watched[0] if watched else None,
        "stage 1 kept": watched[-1] if watched else None,
    }


def render(results: Mapping[str, Sequence[Mapping[str, Any]]], command: str) -> str:
    """The table: mean over seeds with a 95 % t-interval, the published figure below it."""
    rows: list[tuple[str, ...]] = []
    for cell in CELLS:
        runs = results[cell.name]
        rows.append((cell.name, *(_mean([run[column] for run in runs]) for column in COLUMNS)))
        if any(cell.published):
            rows.append(("  published", *(number(value) for value in cell.published)))
    counts = {cell.stage: results[cell.name][0]["n"] for cell in CELLS}
    return (
        f"# Ablation over {len(results[CELLS[0].name])} seeds\n\n{table(('', *COLUMNS), rows)}\n\n"
        f"Means over seeds [95 % t-interval over seeds]; quick score on {counts[1]} items, error "
        f"analysis on {counts[2]}. Published: HiEval's Table 6, another backbone on other data. "
        "'stage 1 kept' is the quick-score accuracy on the earlier stage's validation split after "
        f"stage 2 (before it: {number(_before(results))}).\n\n    {command}\n"
    )


def _before(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> float | None:
    before = [run["stage 1 before"] for runs in results.values() for run in runs]
    known = [value for value in before if value is not None]
    return float(np.mean(known)) if known else None


def _mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    mean = float(np.mean(known))
    if len(known) < 2:
        return number(mean)
    half = float(stats.t.ppf(0.975, len(known) - 1) * stats.sem(known))
    return f"{number(mean)} [{number(mean - half)}, {number(mean + half)}]"


if __name__ == "__main__":
    main()
