from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.cost.training_speed import compare, show
from experiments.cost.training_steps import ProcessorUse, run_steps, training_rows
from judging.files.records import write_records


@pytest.mark.slow
def test_both_trainers_take_steps_on_the_same_rows(capsys: pytest.CaptureFixture[str]) -> None:
    summary = compare(None, steps=3, rounds=1)
    assert {name: figures["rows_per_second"] > 0 for name, figures in summary["trainers"].items()}
    assert summary["speed_ratio"] > 1
    assert summary["memory_ratio"] < 1
    show(summary)
    assert "custos over TRL:" in capsys.readouterr().out


@pytest.mark.slow
def test_memory_is_recorded_after_every_step() -> None:
    report = run_steps("custos", None, steps=3, warm=1, batch=2)
    assert len(report["resident_mib"]) == 3
    assert max(report["resident_mib"]) <= report["peak_mib"] + 1


def test_rows_of_a_short_file_are_repeated_under_other_ids(tmp_path: Path) -> None:
    made = training_rows(None, 3)
    write_records(tmp_path / "rows.jsonl", made)
    rows = training_rows(tmp_path / "rows.jsonl", 5)
    assert [row.question for row in rows[3:]] == [row.question for row in rows[:2]]
    assert len({row.id for row in rows}) == 5


def test_a_busy_process_is_seen() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        before = ProcessorUse.now()
        time.sleep(0.5)
        assert ProcessorUse.now().other_cores(before) > 0.05
        process.kill()
    command = "import time; t = time.process_time; s = t()\nwhile t() - s < 0.3: pass"
    before = ProcessorUse.now()
    subprocess.run([sys.executable, "-c", command], check=True)
    assert ProcessorUse.now().process - before.process < 0.25
