from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.forks import run_together
from tests.train.finish import graded_together
from tests.train.finish.test_start import run_folder
from tests.train.made_up import example
from train.finish.grading import TOGETHER, share_rows


@pytest.mark.parametrize(("processes", "rows"), [(2, 25), (3, 2)], ids=["shared", "one is idle"])
def test_processes_give_the_verdicts_of_one(
    small: str, tmp_path: Path, processes: int, rows: int
) -> None:
    """Only the first process has the run folder; the others get it sent."""
    run = run_folder(small, tmp_path / "run")
    one, several = tmp_path / "one", tmp_path / "several"
    one.mkdir()
    several.mkdir()
    graded_together.run(run, one, rows)
    run_together(processes, graded_together.run, run, several, rows)
    expected, found = (
        json.loads((folder / "verdicts.json").read_text()) for folder in (one, several)
    )
    assert found["ids"] == expected["ids"] == [str(i) for i in range(rows)]
    for left, right in zip(found["probabilities"], expected["probabilities"], strict=True):
        assert left == pytest.approx(right, abs=2e-2)  # bfloat16, in other batches
    assert found["fitted"] == expected["fitted"]


@pytest.mark.usefixtures("forking_python")
def test_a_failing_process_ends_all_with_one_line(small: str, tmp_path: Path) -> None:
    """Under torchrun itself, which ends the other one."""
    run = run_folder(small, tmp_path / "run")
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node")
    arguments = (str(run), str(tmp_path), "6", "1")
    done = subprocess.run(
        [*torchrun, "2", "-m", "tests.train.finish.graded_together", *arguments],
        env=os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode != 0
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert errors == ["error: a row cannot be scored"]


@given(
    lengths=st.lists(st.integers(0, 400), max_size=40),
    questions=st.integers(1, 40),
    count=st.integers(1, 9),
)
def test_every_row_has_one_process_and_loads_are_balanced(
    lengths: list[int], questions: int, count: int
) -> None:
    rows = [
        example(i, question=f"q{i % questions}", responses=("x" * n,))
        for i, n in enumerate(lengths)
    ]
    shares = share_rows(rows, count)
    assert len(shares) == count
    assert sorted(index for share in shares for index in share) == list(range(len(rows)))
    loads = [sum(lengths[index] + 10 for index in share) for share in shares]
    assert max(loads) - min(loads) <= TOGETHER * 412
