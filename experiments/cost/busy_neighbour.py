"""Speed of training and scoring, idle and beside a busy process, by how threads wait for others.

python -m experiments busy_neighbour --data data/evouna/test.jsonl --out runs/neighbour.json

Threads of torch (GNU OpenMP) that wait spin first and sleep later. Spinning saves the time of
waking up; beside a busy process it takes the processor from the thread that is waited for. Every
figure comes from a process of its own, in interleaved rounds: each setting idle, each beside one
process that never rests. ``others`` is the part of one core that yet other processes took
meanwhile; a round in which it is not about 0 says little.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from rich.console import Console
from rich.table import Table

from experiments.cost.processor_use import ProcessorUse
from experiments.cost.training_steps import run_steps, training_rows
from judging.files.records import write_json
from judging.judge import Judge

Work = Literal["scoring", "training"]
SPINS = (0, 1_000, 3_000, 10_000, 300_000)
"""Turns of the waiting loop before a thread sleeps; libgomp's own default is 300,000."""
JUDGE, SCORED_ROWS, WARM_ROWS = "embedded-qs", 96, 48
STEPS, WARM_STEPS, BATCH = 8, 2, 8


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program, which calls itself with ``--scoring``."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="rows with labels; default made rows")
    parser.add_argument("--work", choices=get_args(Work), action="append", help="default both")
    parser.add_argument("--spins", type=int, nargs="+", default=SPINS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--scoring", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.scoring:
        sys.stdout.write(json.dumps(score_rows(arguments.data)))
        return
    summary = {
        work: summarise(measure(work, arguments.data, arguments.spins, arguments.rounds))
        for work in arguments.work or get_args(Work)
    }
    if arguments.out:
        write_json(arguments.out, summary)
    for work, settings in summary.items():
        Console().print(table(work, settings))


def measure(
    work: Work, data: Path | None, spins: Sequence[int], rounds: int
) -> dict[int, dict[str, list[dict[str, float]]]]:
    """Measure every setting in every round.

    Returns:
        By number of spins: ``idle`` and ``busy``, each a list over rounds of ``rows_per_second``
        and ``others``.
    """
    measured: dict[int, dict[str, list[dict[str, float]]]] = {
        spin: {"idle": [], "busy": []} for spin in spins
    }
    for _ in range(rounds):
        for spin in spins:
            settings = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": str(spin)}
            for state, beside in (("idle", contextlib.nullcontext()), ("busy", busy_process())):
                with beside:
                    taken = (
                        run_scoring(data, settings)
                        if work == "scoring"
                        else run_steps(
                            "custos",
                            data,
                            steps=STEPS,
                            warm=WARM_STEPS,
                            batch=BATCH,
                            settings=settings,
                        )
                    )
                others = max(0.0, taken["other_cores"] - (state == "busy"))
                speed = {"rows_per_second": taken["rows_per_second"], "others": others}
                measured[spin][state].append(speed)
    return measured


def run_scoring(data: Path | None, settings: dict[str, str]) -> dict[str, float]:
    """Run :func:`score_rows` in a process of its own."""
    command = [sys.executable, "-m", "experiments.cost.busy_neighbour", "--scoring"]
    command += ["--data", str(data)] if data else []
    done = subprocess.run(
        command, env=os.environ | settings, stdout=subprocess.PIPE, text=True, check=True
    )
    report: dict[str, float] = json.loads(done.stdout)
    return report


def score_rows(data: Path | None) -> dict[str, float]:
    """Grade rows with the shipped judge, after others that are not timed."""
    rows = training_rows(data, SCORED_ROWS + WARM_ROWS)
    requests = [row.request() for row in rows]
    judge = Judge.load(JUDGE)
    list(judge.grade(requests[SCORED_ROWS:]))
    before = ProcessorUse.now()
    list(judge.grade(requests[:SCORED_ROWS]))
    after = ProcessorUse.now()
    speed = SCORED_ROWS / (after.elapsed - before.elapsed)
    return {"rows_per_second": speed, "other_cores": after.other_cores(before)}


@contextlib.contextmanager
def busy_process() -> Iterator[None]:
    """Run a process that never rests while the block runs."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()


def summarise(
    measured: dict[int, dict[str, list[dict[str, float]]]],
) -> dict[str, dict[str, Any]]:
    """Return medians and extremes of every setting, and the share of idle speed that is left.

    ``of_best_idle`` is the median idle speed divided by that of the setting that is fastest idle.
    """
    summary: dict[str, dict[str, Any]] = {}
    for spin, states in measured.items():
        row: dict[str, Any] = {}
        for state, rounds in states.items():
            speeds = [taken["rows_per_second"] for taken in rounds]
            row[state] = {
                "rows_per_second": statistics.median(speeds),
                "lowest": min(speeds),
                "highest": max(speeds),
                "others": max(taken["others"] for taken in rounds),
            }
        row["left"] = row["busy"]["rows_per_second"] / row["idle"]["rows_per_second"]
        summary[str(spin)] = row
    best = max(row["idle"]["rows_per_second"] for row in summary.values())
    for row in summary.values():
        row["of_best_idle"] = row["idle"]["rows_per_second"] / best
    return summary


def table(work: str, settings: dict[str, dict[str, Any]]) -> Table:
    """Return the figures of one kind of work for the screen."""
    shown = Table("spins", "idle rows/s", "of best", "busy rows/s", "left", "others", title=work)
    for spins, row in settings.items():
        speeds = [
            "{rows_per_second:.1f} ({lowest:.1f} to {highest:.1f})".format_map(row[state])
            for state in ("idle", "busy")
        ]
        others = max(row[state]["others"] for state in ("idle", "busy"))
        shares = f"{row['of_best_idle']:.0%}", f"{row['left']:.0%}"
        shown.add_row(spins, speeds[0], shares[0], speeds[1], shares[1], f"{others:.2f}")
    return shown


if __name__ == "__main__":
    main()
