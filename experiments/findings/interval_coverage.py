"""Coverage of intervals and errors of tests, over simulated data.

python -m experiments interval_coverage --out runs/coverage.json

Three parts. Rows that share questions (``question_coverage``): the intervals and tests of a report.
Judged rates and rankings, corrected (``correction_coverage``). Judge-corrected scores: per setting
(accuracy and asymmetry of the judge, rate of people's labels, number of labels, how the labelled
items were picked, how items depend on each other) many benchmarks are drawn and corrected.
Accuracy is balanced, the mean of sensitivity and specificity: at a rate of .9 a plain accuracy of
.9 is what a judge that always says 1 has, and no method can use that one.

Results of the last part with the defaults: 95.6 % for PPI++ over all settings, and no setting of
independent items below 93 %. Where the judge errs on hardly any labelled item (accuracy .95 and
more with 100 labels or fewer) intervals are wider than they need be, up to 100 % coverage: so few
labels cannot tell .95 from 1. With 10 to 25 labelled groups and a rate of .1 or .9 coverage is 95
to 100 %, as for the labels alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.table import Table

from evaluation.correction.scores import Cells, Rates, labels_alone, ppi_plus_plus
from evaluation.intervals import Floats
from experiments.findings.correction_coverage import simulate_corrections
from experiments.findings.question_coverage import question_tables, simulate_questions, stream
from judging.files.records import write_json

ITEMS = 2000
ACCURACIES = (0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
Errors = Literal["alike", "misses", "false alarms"]
ERRORS: tuple[Errors, ...] = ("alike", "misses", "false alarms")
Picked = Literal["random", "groups"]
GROUPED: tuple[Picked, ...] = ("random", "groups")
RATES = (0.1, 0.3, 0.5, 0.7, 0.9)
LABELS = (50, 100, 200, 500)
GROUPED_ACCURACIES, GROUPED_RATES, GROUPED_LABELS = (0.7, 0.9), (0.1, 0.5, 0.9), (100, 500)
GROUP_SIZES = (4, 10)
LABEL_LIKENESS, ERROR_LIKENESS = 0.3, 0.2
"""Correlation, within a group, of people's labels and of the judge's errors."""
BENCHMARKS, DRAWS = 2000, 200
GROUPED_SHARE = 5
"""A grouped setting draws one benchmark for this many of another's: its items are drawn singly."""

_JUDGE = np.array([0.0, 1, 0, 1, 0, 1])
_HUMAN = np.array([0.0, 0, 1, 1, np.nan, np.nan])


@dataclass(frozen=True)
class Setting:
    """One kind of benchmark."""

    accuracy: float
    """Mean of the judge's sensitivity and specificity."""
    errors: Errors
    """``misses``: of people's 1 it gets three times the share wrong that it does of their 0;
    ``false alarms``: the reverse; ``alike``: the same share."""
    rate: float
    """Rate of people's labels over all questions."""
    labels: int
    """Items that people labelled."""
    picked: Picked
    """Which: ``random`` items, or all items of random groups (``groups``)."""
    group_size: int = 1
    """Items per group; 1 for independent items."""

    @property
    def sensitivity(self) -> float:
        """Return the share of people's 1 on which the judge agrees."""
        return (
            1 - (1 - self.accuracy) * {"alike": 1, "misses": 1.5, "false alarms": 0.5}[self.errors]
        )

    @property
    def specificity(self) -> float:
        """Return the share of people's 0 on which the judge agrees."""
        return 2 * self.accuracy - self.sensitivity


def settings() -> Iterator[Setting]:
    """Yield every setting of the simulation."""
    for accuracy, errors, rate, labels in product(ACCURACIES, ERRORS, RATES, LABELS):
        yield Setting(accuracy, errors, rate, labels, "random")
    for size, picked in product(GROUP_SIZES, GROUPED):
        for accuracy, rate, labels in product(GROUPED_ACCURACIES, GROUPED_RATES, GROUPED_LABELS):
            yield Setting(accuracy, "alike", rate, labels, picked, size)


def draw(setting: Setting, benchmarks: int, rng: np.random.Generator) -> Cells:
    """Draw benchmarks of independent items as counts of (judge, human) pairs; ``[B, 6]``."""
    ones = rng.binomial(ITEMS, setting.rate, benchmarks)
    labelled_ones = rng.hypergeometric(ones, ITEMS - ones, setting.labels)
    labelled_zeros = setting.labels - labelled_ones
    hits = rng.binomial(labelled_ones, setting.sensitivity)
    alarms = rng.binomial(labelled_zeros, 1 - setting.specificity)
    called = rng.binomial(ones - labelled_ones, setting.sensitivity)
    called += rng.binomial(ITEMS - ones - labelled_zeros, 1 - setting.specificity)
    counts = [labelled_zeros - alarms, alarms, labelled_ones - hits, hits]
    counts += [ITEMS - setting.labels - called, called]
    return Cells(_JUDGE, _HUMAN, np.stack(counts, axis=-1).astype(np.float64))


def draw_grouped(setting: Setting, benchmarks: int, rng: np.random.Generator) -> Cells:
    """Draw benchmarks item by item, each group with a rate and error rates of its own; ``[B, N]``.

    The group's rates are beta-distributed about the setting's.
    """
    groups = ITEMS // setting.group_size
    grouped, flat = (benchmarks, groups, setting.group_size), (benchmarks, ITEMS)

    def spread(mean: float, likeness: float) -> Floats:
        weight = (1 - likeness) / likeness
        return rng.beta(mean * weight, (1 - mean) * weight, size=(benchmarks, groups, 1))

    ones = rng.random(grouped) < spread(setting.rate, LABEL_LIKENESS)
    sensitivity = spread(setting.sensitivity, ERROR_LIKENESS)
    alarms = 1 - spread(setting.specificity, ERROR_LIKENESS)
    called = rng.random(grouped) < np.where(ones, sensitivity, alarms)
    size = setting.group_size if setting.picked == "groups" else 1
    order = rng.permuted(np.tile(np.arange(ITEMS // size), (benchmarks, 1)), axis=1)
    labelled = np.repeat(order < setting.labels // size, size, axis=1)
    return Cells(
        called.reshape(flat).astype(np.float64),
        np.where(labelled, ones.reshape(flat), np.nan),
        np.ones(flat),
        np.arange(0, ITEMS, setting.group_size),
    )


def simulate(setting: Setting, benchmarks: int, rng: np.random.Generator) -> dict[str, Any]:
    """Draw benchmarks of a setting and correct each.

    Return the setting, and for each method ``coverage`` (share of intervals that hold the rate, of
    those that exist), ``width`` (their mean), ``refused`` (share that do not exist); for PPI++
    also ``width_ratio``, mean width over that of the labels alone, and ``judge_used``.
    """
    if setting.group_size == 1:
        cells = draw(setting, benchmarks, rng)
    else:
        benchmarks //= GROUPED_SHARE
        cells = draw_grouped(setting, benchmarks, rng)
    row: dict[str, Any] = asdict(setting) | {"benchmarks": benchmarks}
    row["raw"] = _scored(labels_alone(cells.judge, cells.counts, cells.starts)[0], setting.rate)
    tuned = ppi_plus_plus(cells)
    row["labels_alone"] = _scored(tuned.alone, setting.rate)
    row["ppi"] = _scored(tuned.rates, setting.rate)
    row["ppi"]["width_ratio"] = row["ppi"]["width"] / row["labels_alone"]["width"]
    row["ppi"]["judge_used"] = float(np.mean(tuned.power != 0))
    return row


def summarise(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Pool coverage over settings of equal weight; find the widest PPI++ intervals."""
    good = [row for row in rows if row["accuracy"] >= 0.8 and row["labels"] >= 100]
    return {
        "ppi": _pooled(rows, "ppi"),
        "labels_alone": _pooled(rows, "labels_alone"),
        "raw": _pooled(rows, "raw"),
        "widest_ppi_to_labels_alone": max(row["ppi"]["width_ratio"] for row in rows),
        "widest_at_accuracy_80_and_100_labels": max(row["ppi"]["width_ratio"] for row in good),
    }


def run(benchmarks: int, seed: int) -> dict[str, Any]:
    """Simulate every setting; one of independent items has so many benchmarks."""
    started = time.perf_counter()
    rng = stream(seed, "scores")
    rows = [simulate(setting, benchmarks, rng) for setting in settings()]
    return {
        "benchmarks": sum(row["benchmarks"] for row in rows),
        "items": ITEMS,
        "seed": seed,
        "seconds": time.perf_counter() - started,
        "summary": summarise(rows),
        "settings": rows,
    }


def tables(rows: Sequence[dict[str, Any]]) -> Iterator[Table]:
    """Yield tables of coverage (mean, lowest, highest) and mean width by accuracy and labels."""
    parts: dict[str, tuple[Picked, bool]] = {
        "PPI++, random items": ("random", False),
        "PPI++, grouped, random items": ("random", True),
        "PPI++, grouped, whole groups": ("groups", True),
    }
    for title, (picked, grouped) in parts.items():
        chosen = [r for r in rows if r["picked"] == picked and (r["group_size"] > 1) == grouped]
        budgets = sorted({row["labels"] for row in chosen})
        table = Table("accuracy", *(f"{labels} labels" for labels in budgets), title=title)
        for accuracy in sorted({row["accuracy"] for row in chosen}):
            cells = []
            for labels in budgets:
                at = [r for r in chosen if (r["accuracy"], r["labels"]) == (accuracy, labels)]
                pooled = _pooled(at, "ppi")
                text = "{coverage:.1%} ({lowest:.1%}-{highest:.1%}) w {width:.3f}".format(**pooled)
                text += f" = {np.mean([r['ppi']['width_ratio'] for r in at]):.2f} x alone"
                cells.append(text)
            table.add_row(f"{accuracy:.2f}", *cells)
        yield table


def _scored(rates: Rates, truth: float) -> dict[str, float]:
    exists = ~np.isnan(rates.value)
    low, high = rates.low[exists], rates.high[exists]
    return {
        "coverage": float(np.mean((low <= truth) & (truth <= high))),
        "width": float(np.mean(high - low)),
        "refused": float(np.mean(~exists)),
    }


def _pooled(rows: Sequence[dict[str, Any]], method: str) -> dict[str, float]:
    coverage = np.array([row[method]["coverage"] for row in rows])
    return {
        "coverage": float(coverage.mean()),
        "lowest": float(coverage.min()),
        "highest": float(coverage.max()),
        "settings": len(rows),
        "settings_below_93": int(np.sum(coverage < 0.93)),
        "settings_above_97": int(np.sum(coverage > 0.97)),
        "width": float(np.mean([row[method]["width"] for row in rows])),
        "refused": float(np.mean([row[method]["refused"] for row in rows])),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--benchmarks", type=int, default=BENCHMARKS, help="per setting")
    parser.add_argument(
        "--draws",
        type=int,
        default=DRAWS,
        help="per setting of questions; four times as many of ECE and of favoured systems",
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(argv)

    questions = simulate_questions(arguments.draws, arguments.seed)
    questions += simulate_corrections(arguments.draws, arguments.seed)
    console = Console(width=120)
    for table in question_tables(questions):
        console.print(table)
    result = run(arguments.benchmarks, arguments.seed)
    write_json(arguments.out, {**result, "questions": questions})
    for table in tables(result["settings"]):
        console.print(table)
    console.print_json(data={"seconds": result["seconds"], **result["summary"]})
