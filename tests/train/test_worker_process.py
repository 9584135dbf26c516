"""Processes that work for a training process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

TRAINING = """
import multiprocessing, os, time
from concurrent.futures import ProcessPoolExecutor
from train.loop.batches import begin_worker

if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, begin_worker) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        print(pool.submit(time.sleep, 1).result(), flush=True)
        pool.submit(time.sleep, 600).result()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Write a program with one worker, which prints the worker's id first."""
    script = tmp_path / "training.py"
    script.write_text(TRAINING, encoding="utf-8")
    return script


def _started(script: Path) -> tuple[subprocess.Popen[str], psutil.Process]:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(
        [sys.executable, str(script)], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    return process, psutil.Process(int(process.stdout.readline()))


def test_a_worker_ends_when_its_parent_is_killed(script: Path) -> None:
    process, worker = _started(script)
    with process:
        process.kill()
    worker.wait(20)


def test_a_worker_leaves_ctrl_c_to_its_parent(script: Path) -> None:
    process, worker = _started(script)
    with process:
        worker.send_signal(2)
        assert process.stdout
        assert process.stdout.readline() == "None\n", "the worker did what it was given"
        process.kill()
