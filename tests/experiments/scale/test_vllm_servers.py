"""What the experiment on vLLM servers does to them, on processes that only count."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.scale.vllm_servers import VllmServer, differences, slowed
from judging.types import Verdict

COUNTING = """
import subprocess, sys, time
if len(sys.argv) > 2:  # as vLLM does, the work is in a process of its own
    subprocess.run([sys.executable, "-c", sys.argv[2], sys.argv[1]])
while True:
    open(sys.argv[1], "ab").write(b".")
    time.sleep(0.01)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[VllmServer]:
    command = [sys.executable, "-c", COUNTING, str(tmp_path / "count"), COUNTING]
    with subprocess.Popen(command, start_new_session=True) as process:
        server = VllmServer(process, "http://127.0.0.1:9/v1")
        until = time.monotonic() + 60
        while not (tmp_path / "count").exists() and time.monotonic() < until:
            time.sleep(0.05)
        yield server
        server.kill()


def counted(path: Path, seconds: float) -> int:
    before = path.stat().st_size
    time.sleep(seconds)
    return path.stat().st_size - before


@pytest.mark.slow
def test_a_slowed_server_works_a_tenth_of_the_time_and_then_again(
    server: VllmServer, tmp_path: Path
) -> None:
    whole = counted(tmp_path / "count", 2.0)
    with slowed(server):
        part = counted(tmp_path / "count", 4.0)
    assert 0 < part < whole, "twice the time, and less done"
    assert counted(tmp_path / "count", 1.0) > 0


def test_a_killed_server_is_gone_with_all_its_processes(server: VllmServer, tmp_path: Path) -> None:
    server.kill()
    server.process.wait(timeout=30)
    time.sleep(0.2)
    assert counted(tmp_path / "count", 0.5) == 0
    server.kill()  # once more does nothing


def test_verdicts_are_compared_row_by_row() -> None:
    def verdict(label: str, right: float, **fields: str) -> Verdict:
        given = {"status": "scored", "label": label} | fields
        return Verdict.model_validate(given | {"probabilities": {"Correct": right}})

    here = [verdict("Correct", 0.9), verdict("Correct", 0.6), verdict("Wrong", 0.2)]
    there = [
        verdict("Correct", 0.88),
        verdict("Wrong", 0.45),
        Verdict(status="judge_error", message="no server answers"),
    ]
    assert differences(here, there) == {
        "without verdict": 1,
        "other labels": 1,
        "largest difference of a probability": 0.15,
    }
