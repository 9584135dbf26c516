"""Logit advantage loss from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.bench.made_up import read, run, write


def test_lal(tmp_path: Path) -> None:
    logits = {1: (4.0, 1.0), 2: (2.0, 3.0), 3: (3.0, 3.0)}
    rows = [
        {
            "case": {"set_id": "s", "id": f"s_level{level}", "level": level, "answer": "A"},
            "result": {"option_logits": {"A": a, "B": b, "C": 0.0, "D": -1.0}},
        }
        for level, (a, b) in logits.items()
    ]
    out = tmp_path / "lal.json"
    done = run("lal", "--results", write(tmp_path / "in.json", rows), "--json", out)
    assert done.exit_code == 0
    [item] = read(out)["items"]
    assert item["lal_1_to_2"] == (4 - 1) - (2 - 3)
    assert item["correct_degradation_1_to_2"] + item["incorrect_amplification_1_to_2"] == 4
    assert item["lal_norm_1_to_2"] == pytest.approx(3 / 5 - -1 / 4)
    assert read(out)["mean"]["lal_1_to_3"] == 3
    assert "1 sets, 1 with all three levels" in done.stdout
