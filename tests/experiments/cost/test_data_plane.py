from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.cost import data_plane


def test_made_rows_are_read_to_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_plane, "PAUSE", 0.001)
    data_plane.write_rows(tmp_path, 60)
    lines = (tmp_path / "train.jsonl").read_text(encoding="utf-8").splitlines()
    assert sum("images" in json.loads(line) for line in lines) == 20
    data_plane.main(["--data", str(tmp_path), "--measured", "0", "--full", "0"])
    measured = json.loads(capsys.readouterr().out)
    assert measured["seconds_to_step_0"] > 0
    assert 0 < measured["waiting_share"] < 1
    assert set(measured["memory_mib"]) == {"at the end"}
