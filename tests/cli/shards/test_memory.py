"""A million rows through a judge of rules: the memory of driver and workers stays flat."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.build_context import ROOT
from tests.serve.made_up import row

pytest.importorskip("ray", reason="pip install 'ray[data]'")

NUM_SHARDS, NUM_ROWS = 100, 10_000
HOURS = 2
RUN = """
import functools, sys
from pathlib import Path
from cli.shards.ray_pool import RayPool
from cli.shards.records import ShardSettings
from cli.shards.run import grade_shards
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


def growth(sizes: list[float]) -> float:
    """The largest size of the last quarter, as a share of that of the second quarter."""
    quarter = len(sizes) // 4
    return max(sizes[-quarter:]) / max(sizes[quarter : 2 * quarter])


@pytest.mark.slow
def test_memory_is_flat(tmp_path: Path) -> None:
    write_rows(tmp_path / "in")
    started, driver_sizes = time.monotonic(), []
    driver = subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path)], cwd=ROOT)
    try:
        while driver.poll() is None:
            assert time.monotonic() - started < HOURS * 3600
            driver_sizes.append(psutil.Process(driver.pid).memory_info().rss / 2**20)
            time.sleep(1)
    finally:
        driver.kill()
        driver.wait(60)
    assert driver.returncode == 0
    num_graded = sum(
        len(path.read_bytes().splitlines()) for path in (tmp_path / "out").glob("*.jsonl")
    )
    assert num_graded == NUM_SHARDS * NUM_ROWS
    lines = (tmp_path / "measured.log").read_text().splitlines()
    worker_sizes = [float(line.split()[2]) for line in lines]
    assert growth(driver_sizes) < 1.1
    assert growth(worker_sizes) < 1.1
