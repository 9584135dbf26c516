"""Runs on a Ray cluster of this machine, through kills, and with flat memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.build_context import ROOT
from tests.cli.shards.conftest import Plain
from tests.cli.shards.made_up import contents, times_graded, wait_for_files, write_shards
from tests.cli.shards.measure import NUM_ROWS, NUM_SHARDS, draw, measure, write_rows
from tests.serve.made_up import FakeJudge
from tests.serve.sockets import serving_judges

pytest.importorskip("ray", reason="pip install 'ray[data]'")

NUM_WORKERS = 2
SECONDS = 600
"""Longest that a run may take; it is killed then."""
RUN = f"""
import functools, sys
from pathlib import Path
from cli.shards import RayPool
from cli.shards import grade_shards
from tests.cli.shards.made_up import SETTINGS, LoggingJudge

folder = Path(sys.argv[1])
load = functools.partial(LoggingJudge, folder, float(sys.argv[2]))
pool = RayPool("local", {NUM_WORKERS})
files = f"{{folder}}/in/*.jsonl", f"{{folder}}/out/*.jsonl"
grade_shards(*files, pool, load, SETTINGS, price=3, retry_failed=False, allow_failed=False)
"""


def command(folder: Path, pause_s: float = 0.0) -> list[str]:
    return [sys.executable, "-c", RUN, str(folder), str(pause_s)]


def run_command(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, in time; again if the machine is too busy for Ray to start."""
    for _ in range(3):
        done = subprocess.run(
            arguments, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        if "Ray did not start within 30 s" not in done.stderr:
            break
    return done


def finish(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command that succeeds."""
    done = run_command(arguments)
    assert done.returncode == 0, done.stderr
    return done


def assert_plain(folder: Path, plain: Plain) -> None:
    """Compare every shard's verdicts with those of plain grading."""
    sources = sorted((folder / "in").iterdir())
    assert contents(folder / "out") == {path.name: plain(path, ".jsonl") for path in sources}


def test_a_killed_worker_changes_nothing(tmp_path: Path, plain: Plain) -> None:
    write_shards(tmp_path / "in", 6, 10)
    third = tmp_path / "in" / "s3.jsonl"
    third.write_text(third.read_text().replace("Rome", "Rome or die"))
    done = finish(command(tmp_path))
    assert (tmp_path / "died").exists()
    assert_plain(tmp_path, plain)
    assert "60 rows graded (60 scored): " in done.stdout
    assert "60 rows, " in done.stderr and ", cost " in done.stderr
    times = times_graded(tmp_path)
    assert len(times) == 60
    assert {row for row, count in times.items() if count > 1} <= {f"s3-r{n}" for n in range(10)}


def test_a_shard_that_kills_every_worker_is_left_out(tmp_path: Path) -> None:
    write_shards(tmp_path / "in", 3, 10)
    first = tmp_path / "in" / "s1.jsonl"
    first.write_text(first.read_text().replace("Rome", "die always"))
    done = run_command(command(tmp_path))
    assert done.returncode == 1
    assert (
        f"error: 1 of 3 shards are not graded; the first: {first}: every worker that had it died"
    ) in done.stderr
    assert set(contents(tmp_path / "out")) == {"s0.jsonl", "s2.jsonl"}


def test_a_killed_driver_goes_on(tmp_path: Path, plain: Plain) -> None:
    write_shards(tmp_path / "in", 8, 10)
    driver = subprocess.Popen(command(tmp_path, 0.05), cwd=ROOT)
    try:
        wait_for_files(tmp_path / "out" / "_graded" / "*.json", 3, SECONDS)
    finally:
        driver.kill()
        driver.wait(SECONDS)
    records = (tmp_path / "out" / "_graded").glob("*.json")
    before = {path.name.partition(".")[0] for path in records}
    assert 3 <= len(before) < 8
    done = finish(command(tmp_path))
    assert "80 rows graded (80 scored): " in done.stdout
    assert_plain(tmp_path, plain)
    times = times_graded(tmp_path)
    assert len(times) == 80
    twice = {row.partition("-")[0] for row, count in times.items() if count > 1}
    assert len(twice) <= NUM_WORKERS and not twice & before
    assert "80 rows graded" in finish(command(tmp_path)).stdout, "there is nothing left to do"
    assert times_graded(tmp_path) == times


def test_the_command_with_a_service(tmp_path: Path) -> None:
    write_shards(tmp_path / "in", 3, 6)
    (tmp_path / "out").mkdir()
    with serving_judges({"fake": FakeJudge()}) as url:
        words = ["-m", "cli", "grade", "--ray", "local", "--workers", "1", "--judge", url]
        files = ["--in", f"{tmp_path}/in/*.jsonl", "--out", f"{tmp_path}/out/*.jsonl"]
        assert "18 rows graded (18 scored)" in finish([sys.executable, *words, *files]).stdout
    lines = (tmp_path / "out" / "s2.jsonl").read_text().splitlines()
    verdicts = [json.loads(line) for line in lines]
    assert [verdict["id"] for verdict in verdicts] == [f"s2-r{n}" for n in range(6)]
    assert [verdict["label"] for verdict in verdicts] == ["Wrong", "Correct", "Correct"] * 2


def growth(samples: list[tuple[float, float]]) -> float:
    """The largest size of the last quarter, as a share of that of the second quarter."""
    sizes = [size for _, size in samples]
    quarter = len(sizes) // 4
    return max(sizes[-quarter:]) / max(sizes[quarter : 2 * quarter])


@pytest.mark.slow
def test_memory_is_flat(tmp_path: Path) -> None:
    write_rows(tmp_path / "in")
    figures = measure(tmp_path)
    assert figures["rows"] == NUM_SHARDS * NUM_ROWS
    assert growth(figures["command"]) < 1.1
    assert growth(figures["worker"]) < 1.1
    draw(figures, tmp_path / "memory.png")
    assert 5_000 < (tmp_path / "memory.png").stat().st_size < 100_000
