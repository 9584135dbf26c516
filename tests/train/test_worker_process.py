"""Processes that work for a training process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from train.vision import pictures

from judging.errors import CustosError
from judging.models.backbones import load_backbone

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


def test_a_killed_process_that_draws_is_one_error(
    small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "POOL_FROM", 0)
    backbone = load_backbone(small, weights=False)
    killing = threading.Thread(target=_kill_a_worker, args=(psutil.Process().children(),))
    killing.start()
    with pytest.raises(CustosError, match="a process that draws pictures was killed"):
        pictures.draw(backbone, 2_000, seed=0)
    killing.join()


def _kill_a_worker(earlier: list[psutil.Process]) -> None:
    """Kill the first process that a pool of this one starts, within a minute."""
    for _ in range(1200):
        for child in psutil.Process().children():
            if child not in earlier and "spawn_main" in " ".join(child.cmdline()):
                child.kill()
                return
        time.sleep(0.05)
