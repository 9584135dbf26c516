from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.cost.tournament_ranking import main


def test_times_a_tournament_and_finds_its_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "cost.json"
    main(["--out", str(out), "--models", "6", "--matches", "4000", "--resamples", "20"])
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found == json.loads(capsys.readouterr().out)
    assert (found["models"], found["matches"], found["resamples"]) == (6, 4000, 20)
    assert found["bradley_terry_seconds"] > 0
    assert found["elo_seconds"] > 0
    assert found["bradley_terry_tau"] > 0.8
    assert found["elo_tau"] > 0.8
