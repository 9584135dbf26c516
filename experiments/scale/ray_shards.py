"""Time, memory and verdicts of a judge on Ray, beside plain grading of the same rows.

python -m experiments ray_shards --judge embedded-qs --in 'SHARDS/*.jsonl' --out FOLDER

``custos grade --ray local`` grades the shards, and then ``custos grade`` one file with the rows of
all of them; both use all cores. FOLDER gets their verdicts and ``figures.json``, with the memory of
all processes over time. ``others`` is the number of cores that processes outside the measured
command kept busy meanwhile.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from experiments.cost.processor_use import ProcessorUse
from experiments.scale.vllm_servers import differences
from judging.errors import CustosError
from judging.files.records import read_records, write_json
from judging.types import Verdict

PAUSE_S = 5.0
"""Seconds between two looks at the memory of the commands."""
GRADE = (sys.executable, "-m", "cli", "grade")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judge", required=True)
    parser.add_argument("--in", dest="shards", required=True, help="pattern of the shards, JSONL")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args(argv)

    pattern = Path(arguments.shards)
    shards = sorted(pattern.parent.glob(pattern.name))
    if not shards:
        raise CustosError(f"--in: no files match {pattern}")
    out: Path = arguments.out
    (out / "ray").mkdir(parents=True)
    all_rows = out / "rows.jsonl"
    all_rows.write_bytes(b"".join(shard.read_bytes() for shard in shards))
    judge = ("--judge", arguments.judge)
    ray_files = ("--in", str(pattern), "--out", str(out / "ray/*.jsonl"))
    commands = {
        "ray": (*GRADE, *judge, *ray_files, "--ray", "local"),
        "plain": (*GRADE, *judge, "--in", str(all_rows), "--out", str(out / "plain.jsonl")),
    }
    figures = {
        name: run_measured(command, out / f"{name}.log") for name, command in commands.items()
    }
    in_ray = [row for shard in shards for row in verdicts(out / "ray" / shard.name)]
    figures["verdicts"] = differences(verdicts(out / "plain.jsonl"), in_ray)
    write_json(out / "figures.json", figures)
    Console(highlight=False).print(table(figures))


def verdicts(path: Path) -> list[Verdict]:
    """Read verdicts."""
    return [verdict for _, verdict in read_records(path, Verdict)]


def run_measured(command: Sequence[str], log: Path) -> dict[str, Any]:
    """Run a command to its end and measure all its processes meanwhile.

    Args:
        command: Command.
        log: File that gets its output.

    Returns:
        ``seconds``; ``cpu_seconds`` of its processes; ``memory_mib``, pairs of seconds since the
        start and MiB that none but its processes use; ``others``.

    Raises:
        CustosError: If it fails.
    """
    before, cpu_seconds = ProcessorUse.now(), 0.0
    memory: list[tuple[float, int]] = []
    with log.open("wb") as output:
        process = psutil.Popen(command, stdout=output, stderr=output)
    try:
        while process.poll() is None:
            size, cpu = resources_of(process)
            memory.append((round(time.perf_counter() - before.elapsed, 1), size))
            cpu_seconds = max(cpu_seconds, cpu)  # at the end, some end before others
            with suppress(psutil.TimeoutExpired):
                process.wait(PAUSE_S)
    finally:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    if process.returncode:
        raise CustosError(f"a command failed: see {log}")
    after = ProcessorUse.now()
    seconds = after.elapsed - before.elapsed
    others = max(0.0, after.system - before.system - cpu_seconds) / seconds
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1),
        "others": round(others, 2),
        "memory_mib": memory,
    }


def resources_of(process: psutil.Process) -> tuple[int, float]:
    """Return the MiB and the processor seconds of a process and all that it has started."""
    size, cpu_seconds = 0, 0.0
    for one in (process, *process.children(recursive=True)):
        with suppress(psutil.Error), one.oneshot():
            size += one.memory_full_info().uss
            cpu_seconds += sum(one.cpu_times()[:4])  # those of ended children too
    return size // 2**20, cpu_seconds


def table(figures: dict[str, Any]) -> Table:
    """Return the figures as a table, and how verdicts differ as its caption."""
    shown = Table("", "seconds", "CPU seconds", "others", "MiB after a fifth", "most MiB")
    for name in ("plain", "ray"):
        of_one = figures[name]
        sizes = [size for _, size in of_one["memory_mib"]]
        shown.add_row(
            name,
            *(str(of_one[key]) for key in ("seconds", "cpu_seconds", "others")),
            str(sizes[len(sizes) // 5]),
            str(max(sizes)),
        )
    shown.caption = str(figures["verdicts"])
    return shown
