from __future__ import annotations

import subprocess
import sys
import time

from experiments.cost.busy_neighbour import busy_process, summarise, table
from experiments.cost.processor_use import ProcessorUse


def test_a_busy_process_is_seen_and_ends_with_the_block() -> None:
    with busy_process():
        before = ProcessorUse.now()
        time.sleep(0.5)
        assert ProcessorUse.now().other_cores(before) > 0.05
    command = "import time; t = time.process_time; s = t()\nwhile t() - s < 0.3: pass"
    before = ProcessorUse.now()
    subprocess.run([sys.executable, "-c", command], check=True)
    assert ProcessorUse.now().process - before.process < 0.25


def test_speeds_are_compared_with_the_best_idle_one_and_with_the_own_idle_one() -> None:
    def rounds(*speeds: float) -> list[dict[str, float]]:
        return [{"rows_per_second": speed, "others": 0.1} for speed in speeds]

    summary = summarise(
        {
            0: {"idle": rounds(24, 25, 20), "busy": rounds(12, 12, 18)},
            300_000: {"idle": rounds(30), "busy": rounds(3)},
        }
    )
    assert summary["0"]["of_best_idle"] == 0.8
    assert summary["0"]["left"] == 0.5
    assert summary["300000"]["left"] == 0.1
    assert summary["0"]["idle"]["lowest"] == 20
    assert table("scoring", summary).row_count == 2
