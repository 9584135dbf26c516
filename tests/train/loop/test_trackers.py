"""What a run shows: short lines, or one bar on a terminal; the details are in its log."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tensorboard.backend.event_processing import event_accumulator

from train.loop.trackers import Tracker
from train.setup.run_log import LOG_FILE


def _report(folder: Path, *, silent: bool = False) -> None:
    tracker = Tracker(folder, 4, 8, silent=silent)
    with tracker.running(0):
        tracker.detail("first row: 'Which river?'")
        for step in (1, 2, 3, 4):
            tracker.advance(step)
        tracker.log_loss(4, 0.25, 1e-3)
        with tracker.validating():
            tracker.log_scores(4, {"val_accuracy": 0.75, "val_nll": 0.5}, 12)


def _log(folder: Path) -> str:
    return (folder / LOG_FILE).read_text(encoding="utf-8")


def test_lines_where_there_is_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _report(tmp_path)
    first, loss, scores = capsys.readouterr().out.splitlines()
    assert first == f"log: {tmp_path / LOG_FILE}"
    assert re.fullmatch(r"step      4/4  loss 0\.2500  lr 1\.00e-03  [\d.]+ rows/s  0 s left", loss)
    assert scores == "step      4/4  val accuracy 0.7500  val nll 0.5000  (n=12)"
    assert _log(tmp_path).splitlines() == [first, "first row: 'Which river?'", loss, scores]


def test_one_bar_on_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich: as if on a terminal
    monkeypatch.setenv("COLUMNS", "80")
    _report(tmp_path)
    screen = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().out).replace("\r", "\n")
    lines = [line.rstrip() for line in screen.splitlines() if line.strip()]
    assert lines[0] == f"log: {tmp_path / LOG_FILE}"
    assert all(line.startswith(("train ", "valid ")) for line in lines[1:])
    for part in ("4/4", "loss 0.250", "rows/s", "0 s left", "val accuracy 0.750"):
        assert part in lines[-1], lines[-1]
    assert "(n=12)" in _log(tmp_path)


def test_curves_for_tensorboard(tmp_path: Path) -> None:
    _report(tmp_path)
    board = event_accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert set(board.Tags()["scalars"]) == {
        *("train_loss", "lr", "rows_per_second", "val_accuracy", "val_nll")
    }
    [event] = board.Scalars("val_accuracy")
    assert (event.step, event.value) == (4, 0.75)


def test_other_processes_report_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _report(tmp_path, silent=True)
    assert capsys.readouterr().out == ""
    assert not list(tmp_path.iterdir())


def test_a_resumed_run_adds_to_its_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _report(tmp_path)
    with Tracker(tmp_path, 8, 8).running(4):
        pass
    assert f"resuming {tmp_path} at step 4" in capsys.readouterr().out
    assert _log(tmp_path).count("first row") == 1
    assert "resuming" in _log(tmp_path)
