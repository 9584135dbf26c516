"""Works that are killed again and again make the files of those that are not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments.findings import kill_log
from experiments.findings.kill_log import OF_CHANGED, SAME
from experiments.findings.kill_works import GRADE, RESPOND, TRAIN

ROOT = Path(__file__).parents[3]


def _log(out: Path, *options: str) -> dict[str, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "experiments", "kill_log", "--out", str(out), *options],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=7200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    outcomes: dict[str, dict[str, Any]] = json.loads(out.read_text(encoding="utf-8"))
    return outcomes


def _check(outcome: dict[str, Any], kills: int) -> None:
    assert outcome["kills"] >= kills
    assert outcome["in_start"] < outcome["kills"]
    assert outcome["runs"] >= 1
    assert outcome["compared"] >= 1
    assert outcome["full_disk"].startswith("error: ")
    assert "File too large" in outcome["full_disk"]


@pytest.mark.slow
def test_three_kills(tmp_path: Path) -> None:
    """In this process, whose forks have the libraries already."""
    out = tmp_path / "log.json"
    kill_log.main(["--kills", "3", "--share", "0.03", "--work", RESPOND, "--out", str(out)])
    outcomes = json.loads(out.read_text(encoding="utf-8"))
    assert outcomes.keys() == {RESPOND}
    _check(outcomes[RESPOND], 3)
    assert outcomes[RESPOND]["cut_file"] == SAME
    assert outcomes[RESPOND]["changed_data"] == OF_CHANGED  # the question is asked again


@pytest.mark.slow
def test_thirty_kills_of_each(tmp_path: Path, small: str) -> None:
    outcomes = _log(tmp_path / "log.json", "--kills", "30", "--backbone", small)
    assert outcomes.keys() == {TRAIN, GRADE, RESPOND}
    for outcome in outcomes.values():
        _check(outcome, 30)
        assert outcome["in_start"] < 20
    assert "damaged; delete it" in outcomes[TRAIN]["cut_file"]
    assert "holds another run" in outcomes[TRAIN]["changed_data"]
    assert outcomes[GRADE]["cut_file"] == SAME
    assert "is a result on something else" in outcomes[GRADE]["changed_data"]
