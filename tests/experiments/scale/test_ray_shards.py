"""What the experiment on Ray measures, on processes that only compute or hold memory."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from experiments.scale import ray_shards
from experiments.scale.ray_shards import run_measured, table
from judging.errors import CustosError

HOLDS_100_MIB = """
import time
held = b"x" * (100 * 2**20)
time.sleep(3)
"""
STARTS_ONE_THAT_COMPUTES = """
import subprocess, sys
work = "import time\\nwhile time.process_time() < 2: pass"
subprocess.run([sys.executable, "-c", work])
"""


@pytest.fixture(autouse=True)
def short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_shards, "PAUSE_S", 0.2)


def test_memory_and_processor_of_all_processes_are_counted(tmp_path: Path) -> None:
    holding = run_measured((sys.executable, "-c", HOLDS_100_MIB), tmp_path / "plain.log")
    assert 100 <= max(size for _, size in holding["memory_mib"]) <= 130
    assert 3.0 <= holding["seconds"] <= 10.0
    computing = run_measured((sys.executable, "-c", STARTS_ONE_THAT_COMPUTES), tmp_path / "ray.log")
    assert 1.0 <= computing["cpu_seconds"] <= 3.0, "those of the process that it started"
    assert table({"plain": holding, "ray": computing, "verdicts": {}}).row_count == 2


def test_a_command_that_fails_names_its_log(tmp_path: Path) -> None:
    with pytest.raises(CustosError, match=r"ray\.log"):
        run_measured(
            (sys.executable, "-c", "import sys; sys.exit('no such judge')"), tmp_path / "ray.log"
        )
    assert "no such judge" in (tmp_path / "ray.log").read_text()


def test_shards_that_do_not_exist_are_an_error(tmp_path: Path) -> None:
    options = ["--judge", "embedded-qs", "--in", f"{tmp_path}/*.jsonl", "--out", f"{tmp_path}/out"]
    with pytest.raises(CustosError, match="no files match"):
        ray_shards.main(options)
