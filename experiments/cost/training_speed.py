"""Speed and memory of training: custos and TRL's SFTTrainer side by side on the same rows.

python -m experiments training_speed --data data/evouna/train.jsonl --out runs/training_speed.json

Both train LoRA matrices of rank 16 on the embedded backbone, with eight rows a step, bfloat16
autocast (float32 on a CPU without its instructions) and no activation checkpointing, towards the
same label tokens. Each figure comes from a process of its own, in interleaved rounds. ``others`` is
the part of one core that other processes took meanwhile. ``--long`` then runs custos for 310 steps
of 16 rows and prints its resident memory on the way. Without ``--data`` rows are made.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from rich.console import Console
from rich.table import Table

from experiments.cost.training_steps import TrainerName, run_steps
from judging.files.records import write_json

BATCH, WARM = 8, 2
LONG_BATCH, LONG_STEPS = 16, 310
SHOWN_STEPS = (30, 100, 200, 310)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="rows with labels of task hieval-qs")
    parser.add_argument("--steps", type=int, default=12, help="default %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="default %(default)s")
    parser.add_argument("--long", action="store_true", help="also show memory over a long run")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args(argv)
    summary = compare(arguments.data, arguments.steps, arguments.rounds)
    if arguments.long:
        summary["resident_mib_by_step"] = memory_over_steps(arguments.data)
    if arguments.out:
        write_json(arguments.out, summary)
    show(summary)


def compare(data: Path | None, steps: int, rounds: int) -> dict[str, Any]:
    """Run steps of both trainers in every round.

    Return by trainer ``rows_per_second`` (median, lowest and highest), ``peak_mib`` and ``others``;
    and ``speed_ratio`` and ``memory_ratio`` of custos over TRL.
    """
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in get_args(TrainerName)}
    for _ in range(rounds):
        for name in get_args(TrainerName):
            runs[name].append(run_steps(name, data, steps=steps, warm=WARM, batch=BATCH))
    trainers = {name: summarise(reports) for name, reports in runs.items()}
    ours, theirs = trainers["custos"], trainers["TRL"]
    return {
        "trainers": trainers,
        "speed_ratio": ours["rows_per_second"] / theirs["rows_per_second"],
        "memory_ratio": ours["peak_mib"] / theirs["peak_mib"],
    }


def summarise(reports: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the median speed with its extremes, the largest memory and the most of ``others``."""
    speeds = [report["rows_per_second"] for report in reports]
    return {
        "rows_per_second": statistics.median(speeds),
        "lowest": min(speeds),
        "highest": max(speeds),
        "peak_mib": max(report["peak_mib"] for report in reports),
        "others": max(report["other_cores"] for report in reports),
    }


def memory_over_steps(data: Path | None) -> dict[int, float]:
    """Return the resident memory of a long run of custos, in MiB, by step."""
    report = run_steps("custos", data, steps=LONG_STEPS, warm=WARM, batch=LONG_BATCH)
    return {step: report["resident_mib"][step - 1] for step in SHOWN_STEPS}


def show(summary: dict[str, Any]) -> None:
    """Print the figures."""
    shown = Table("trainer", "rows/s", "peak memory", "others")
    for name, figures in summary["trainers"].items():
        speed = "{rows_per_second:.1f} ({lowest:.1f} to {highest:.1f})".format_map(figures)
        gib = f"{figures['peak_mib'] / 1024:.1f} GiB"
        shown.add_row(name, speed, gib, f"{figures['others']:.2f}")
    console = Console()
    console.print(shown)
    console.print(
        f"custos over TRL: {summary['speed_ratio']:.1f} times the rows/s with "
        f"{summary['memory_ratio']:.2f} times the memory"
    )
    for step, mib in summary.get("resident_mib_by_step", {}).items():
        console.print(f"resident after step {step}: {mib / 1024:.2f} GiB")
