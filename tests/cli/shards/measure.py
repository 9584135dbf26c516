"""Rows through a judge of rules on a local Ray cluster, with the memory of all that grades.

python -m tests.cli.shards.measure FOLDER [SECONDS]

FOLDER gets the shards, their verdicts, ``memory.json`` and ``memory.png``. What takes longer than
SECONDS (default two hours) is ended; the figures are then about the rows graded so far.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from tests.build_context import ROOT
from tests.serve.made_up import row

NUM_SHARDS, NUM_ROWS = 100, 10_000
SECONDS = 2 * 3600
PAUSE = 1.0
"""Seconds between two looks at the memory of the command."""
RUN = """
import functools, sys
from pathlib import Path
from cli.shards import RayPool
from cli.shards import ShardSettings
from cli.shards import grade_shards
from data_prep.tables.mapping import TableMapping
from tests.cli.shards.made_up import MeasuredJudge

folder = Path(sys.argv[1])
load = functools.partial(MeasuredJudge, folder)
files = f"{folder}/in/*.jsonl", f"{folder}/out/*.jsonl"
settings = ShardSettings(mapping=TableMapping(), risk=None, batch=256)
grade_shards(*files, RayPool("local", 1), load, settings, 0, False, False)
"""


def write_rows(folder: Path) -> None:
    folder.mkdir()
    for shard in range(NUM_SHARDS):
        rows = (row("Paris" if n % 3 else "Rome", id=f"{shard}-{n}") for n in range(NUM_ROWS))
        with (folder / f"s{shard:03}.jsonl").open("w") as file:
            file.writelines(f"{json.dumps(one)}\n" for one in rows)


def measure(folder: Path, seconds: float = SECONDS) -> dict[str, Any]:
    """Grade the shards of a folder; return seconds, rows and MiB of the command and the worker."""
    started, command = time.time(), []
    driver = subprocess.Popen([sys.executable, "-c", RUN, str(folder)], cwd=ROOT)
    try:
        while driver.poll() is None and time.time() - started < seconds:
            size = psutil.Process(driver.pid).memory_info().rss / 2**20
            command.append((round(time.time() - started, 1), round(size, 1)))
            time.sleep(PAUSE)
    finally:
        driver.kill()
        driver.wait(60)
    lines = [line.split() for line in (folder / "measured.log").read_text().splitlines()]
    worker = [(round(float(at) - started, 1), float(size)) for at, _, size in lines]
    graded = sum(len(path.read_bytes().splitlines()) for path in (folder / "out").glob("*.jsonl"))
    return {
        "rows": graded,
        "seconds": round(time.time() - started, 1),
        "cpu_seconds_of_the_worker": float(lines[-1][1]) - float(lines[0][1]),
        "command": command,
        "worker": worker,
    }


def draw(figures: dict[str, Any], path: Path) -> None:
    """Draw memory over time; of the many points of the worker every hundredth."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3), layout="constrained")
    for name, every in (("command", 10), ("worker", 100)):
        points = figures[name][::every]
        axes.plot([at / 60 for at, _ in points], [size for _, size in points], label=name)
    axes.set(xlabel="minutes", ylabel="memory, MiB", ylim=0)
    axes.set_title(f"{figures['rows']:,} rows, one worker", fontsize=10)
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


if __name__ == "__main__":
    out = Path(sys.argv[1])
    if not (out / "in").exists():
        write_rows(out / "in")
    measured = measure(out, float(sys.argv[2]) if len(sys.argv) > 2 else SECONDS)
    (out / "memory.json").write_text(json.dumps(measured), encoding="utf-8")
    draw(measured, out / "memory.png")
