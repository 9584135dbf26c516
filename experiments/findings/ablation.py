"""HiEval's ablation (Table 6) on a laptop: every cell trained over several seeds, one table.

python -m experiments ablation --qs-test data/evouna/test.jsonl --ea-test data/charts/test.jsonl \
--out runs/ablation

Each cell is a training script with one thing changed; second stages start from the first stage of
their seed. A killed ablation goes on where it stood when the command is given again. Small models
use cores badly: OMP_NUM_THREADS=1 and --jobs 2 take a fifth less time on two of them.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from scipy import stats

from evaluation.declared_labels import label_set
from evaluation.estimate import without_nan
from evaluation.evaluate import grade_examples
from evaluation.measure import measure
from evaluation.outcomes import gather
from evaluation.report.markdown import number, table
from judging.errors import CustosError
from judging.files.atomic import write_text
from judging.files.kept_work import KeptResult, locked
from judging.files.records import read_records, write_json
from judging.fingerprint import digest, file_sha256, package_versions, picture_sha256
from judging.judge import Judge
from judging.types import LabelledExample
from train.methods.focal import FocalRecipe
from train.methods.joint import JointRecipe
from train.setup.recipe import Recipe, parse_recipe
from train.setup.recipe_files import RECIPES

TRAIN = Path(__file__).parents[2] / "train"
RECIPE_OF: dict[int, tuple[type[Recipe], str]] = {
    1: (FocalRecipe, "ablation_qs.yaml"),
    2: (JointRecipe, "ablation_ea.yaml"),
}
COLUMNS = ("quick score", "S-Acc", "A-Acc")


@dataclass(frozen=True)
class Cell:
    """One line of the table."""

    name: str
    stage: int
    overrides: tuple[str, ...] = ()
    published: tuple[float | None, ...] = (None, None, None)
    """HiEval's Table 6, in the order of ``COLUMNS``."""


CELLS = (
    Cell("HiEval-QS", 1, published=(0.938, None, None)),
    Cell("no focal loss", 1, ("loss.gamma=0", "loss.weighting=none"), (0.925, None, None)),
    Cell("HiEval-EA", 2, published=(None, 0.938, 0.855)),
    Cell("no unlikelihood", 2, ("loss.unlikelihood=0",), (None, 0.910, 0.840)),
    Cell("no replay", 2, ("replay.train=[]",), (None, 0.552, 0.413)),
    Cell("hardest negatives", 2, ("loss.negatives=hardest",)),
    Cell("all negatives", 2, ("loss.negatives=all",)),
    Cell("differing suffix", 2, ("loss.span=suffix",)),
)
FULL = {cell.stage: cell for cell in reversed(CELLS) if not cell.overrides}
"""The full method of each stage, which the other cells change."""

Results = Mapping[str, Sequence[Mapping[str, Any]]]
"""Name of a cell to the figures of each seed."""

Tests = Mapping[int, Sequence[LabelledExample]]
"""Test rows by stage."""


def run_cell(cell: Cell, seed: int, recipes: Path, tests: Tests, out: Path) -> dict[str, Any]:
    """Train and measure one cell with one seed, or read what an earlier run measured.

    Args:
        cell: What to change.
        seed: Seed of adapter, order and negatives.
        recipes: Folder of the two recipes.
        tests: What to measure on.
        out: Folder of the ablation.

    Returns:
        ``seed``, what ``measure_cell`` measures, ``made_from`` and the seconds it took.

    Raises:
        CustosError: If training fails (the message names its log), if the cell was measured with
            another recipe, other data or other test rows, or if another process runs it.
    """
    folder = out / cell.name.replace(" ", "_") / str(seed)
    overrides = [*cell.overrides, f"run.seed={seed}", f"run.output={folder}"]
    if cell.stage == 2:
        overrides.append(f"adapter.init={out / FULL[1].name / str(seed)}")
    kind, name = RECIPE_OF[cell.stage]
    key = _key(parse_recipe(kind, recipes / name, overrides), tests, cell.stage)
    kept = KeptResult(folder / "cell.json", key, key_field="made_from")
    with locked(kept.path):
        if (measured := kept.read()) is not None:
            return measured
        if kept.path.is_file():
            raise CustosError(
                f"{folder}: measured with another recipe, other data, test rows or packages; "
                "choose another --out"
            )
        return kept.write(_train_and_measure(cell, seed, recipes / name, overrides, tests, folder))


def _train_and_measure(
    cell: Cell, seed: int, recipe: Path, overrides: Sequence[str], tests: Tests, folder: Path
) -> dict[str, Any]:
    started = time.monotonic()
    script = TRAIN / f"hieval_stage{cell.stage}.py"
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log.txt"
    with log.open("a", encoding="utf-8") as file:
        command = [sys.executable, str(script), "--config", str(recipe), *overrides]
        done = subprocess.run(command, check=False, stdout=file, stderr=subprocess.STDOUT)
    if done.returncode:
        raise CustosError(f"{cell.name}, seed {seed}: training failed, see {log}")
    scores: dict[str, Any] = without_nan(measure_cell(folder, tests, cell.stage))
    return {"seed": seed, **scores, "seconds": round(time.monotonic() - started, 1)}


def run_cells(
    run: Callable[[Cell, int], dict[str, Any]], seeds: int, jobs: int
) -> dict[str, list[dict[str, Any]]]:
    """Run every cell with every seed, several at once, the first stage of each seed first.

    Args:
        run: Runs one cell with one seed.
        seeds: How many.
        jobs: Most cells at once.

    Returns:
        Name of a cell to the figures of each seed.

    Raises:
        CustosError: As ``run``; cells that have not begun are then cancelled.
    """
    # The queue holds every first stage before the cells that wait for it, so that one of the
    # threads can always work.
    with ThreadPoolExecutor(jobs) as pool:
        first = [pool.submit(run, FULL[1], seed) for seed in range(seeds)]

        def after_first(cell: Cell, seed: int) -> dict[str, Any]:
            figures = first[seed].result()
            return figures if cell is FULL[1] else run(cell, seed)

        cells: dict[str, list[Future[dict[str, Any]]]] = {cell.name: [] for cell in CELLS}
        for seed in range(seeds):
            for cell in CELLS:
                cells[cell.name].append(pool.submit(after_first, cell, seed))
        try:
            ended, _ = wait(chain(*cells.values()), return_when=FIRST_EXCEPTION)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    for future in ended:
        future.result()
    return {name: [run.result() for run in runs] for name, runs in cells.items()}


def measure_cell(folder: Path, tests: Tests, stage: int) -> dict[str, Any]:
    """Measure a finished run on the test rows of its stage and of the stages before.

    Returns:
        ``COLUMNS`` (``None`` where the stage has none) and ``n``, the number of items of its stage.
    """
    judge = Judge.load(str(folder))
    judge.card = None  # So that a second stage without replay takes rows of the first stage.
    figures: dict[str, Any] = dict.fromkeys(COLUMNS)
    for tested in range(1, stage + 1):
        rows = tests[tested]
        verdicts = grade_examples(judge, rows)
        scores = measure(gather(rows, verdicts, label_set(rows, verdicts)))
        figures["n"] = scores["accuracy"]["n"]
        if tested == 1:
            figures["quick score"] = scores["accuracy"]["value"]
        else:
            figures["S-Acc"] = scores["score_accuracy"]["value"]
            figures["A-Acc"] = scores["type_accuracy"]["value"]
    return figures


def _key(recipe: Recipe, tests: Tests, stage: int) -> str:
    """Return a digest of what a cell is made from; training reports files that are missing."""
    rows = [row for tested in range(1, stage + 1) for row in tests[tested]]
    return digest(
        {
            "recipe": recipe.model_dump(mode="json"),
            "files": {n: file_sha256(f) for n, f in recipe.files.items() if f.is_file()},
            "tests": [row.model_dump(mode="json") for row in rows],
            "pictures": [picture_sha256(image) for row in rows for image in row.images],
            "packages": package_versions(),
        }
    )


def render(results: Results, command: str) -> str:
    """Render two tables: means beside the published figures, and the effect of every change."""
    levels: list[tuple[str, ...]] = []
    effects: list[tuple[str, ...]] = []
    for cell in CELLS:
        runs = results[cell.name]
        levels.append((cell.name, *(_mean([run[column] for run in runs]) for column in COLUMNS)))
        if any(cell.published):
            levels.append(("- published", *map(number, cell.published)))
        full = FULL[cell.stage]
        if cell is full:
            continue
        for column, value, best in zip(COLUMNS, cell.published, full.published, strict=True):
            pairs = zip(runs, results[full.name], strict=True)
            ours = [a[column] - b[column] for a, b in pairs if a[column] is not None]
            theirs = None if value is None or best is None else value - best
            if ours:
                direction = _direction(ours, theirs)
                effects.append((cell.name, column, _mean(ours), number(theirs), direction))
    counts = {stage: results[cell.name][0]["n"] for stage, cell in FULL.items()}
    minutes = sum(run["seconds"] for runs in results.values() for run in runs) / 60
    return f"""\
# Ablation over {len(results[CELLS[0].name])} seeds

{table(("", *COLUMNS), levels)}

Mean, standard deviation and [95 % t-interval] over seeds. Every quick score is measured on the \
same {counts[1]} items of the first stage; every second stage starts from {FULL[1].name}. S-Acc \
and A-Acc are measured on {counts[2]} items. Published: HiEval's Table 6, another backbone on \
other data. All cells together took {minutes:.0f} minutes.

## Effect of leaving out or changing a part

{table(("", "metric", "difference to the full method", "published", "direction"), effects)}

Differences are paired by seed. "Within noise" means that the interval holds zero.

    {command}
"""


def _direction(ours: Sequence[float], theirs: float | None) -> str:
    if len(ours) < 2:
        return "one seed"
    mean, half = _t_interval(ours)
    if abs(mean) <= half:
        return "within noise"
    if theirs is None:
        return "better" if mean > 0 else "worse"
    return "as published" if mean * theirs > 0 else "against the published"


def _t_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the half width of its 95 % t-interval."""
    spread = float(np.std(values, ddof=1)) / len(values) ** 0.5
    return float(np.mean(values)), float(stats.t.ppf(0.975, len(values) - 1)) * spread


def _mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return number(known[0] if known else None)
    mean, half = _t_interval(known)
    spread = float(np.std(known, ddof=1))
    return f"{number(mean)} ± {number(spread)} [{number(mean - half)}, {number(mean + half)}]"


def main(argv: Sequence[str]) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments ablation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--qs-test", type=Path, required=True, help="test of the first stage")
    parser.add_argument("--ea-test", type=Path, required=True, help="test of the second stage")
    parser.add_argument("--limit", type=int, default=400, help="rows of each test")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="cells at once")
    parser.add_argument("--recipes", type=Path, default=RECIPES / "embedded" / "experiments")
    options = parser.parse_args(argv)
    if options.seeds < 1 or options.jobs < 1:
        parser.error("--seeds and --jobs: at least 1")
    console = Console()

    def run(cell: Cell, seed: int) -> dict[str, Any]:
        console.print(f"{cell.name}, seed {seed}")
        return run_cell(cell, seed, options.recipes, tests, options.out)

    tests = {
        stage: [row for _, row in read_records(path, LabelledExample)][: options.limit]
        for stage, path in ((1, options.qs_test), (2, options.ea_test))
    }
    results = run_cells(run, options.seeds, options.jobs)
    command = shlex.join(["python", "-m", "experiments", "ablation", *argv])
    page = render(results, command)
    write_json(options.out / "ablation.json", {"command": command, "cells": results})
    write_text(options.out / "ablation.md", page)
    console.print(page, markup=False, soft_wrap=True)
