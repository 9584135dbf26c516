"""A run shows short lines, or one bar on a terminal; the details are in its log."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tensorboard.backend.event_processing import event_accumulator

from tests.train.made_up import recipe
from train.loop.accelerator import make_accelerator
from train.setup.run_log import LOG_FILE
from train.tracking.trackers import METRICS_FILE, Tracker


def _tracker(folder: Path, **run: Any) -> Tracker:
    accelerator = make_accelerator(recipe(folder, **run).run)
    return Tracker(folder, 4, accelerator, eval_every=4)


def _report(folder: Path, **run: Any) -> None:
    tracker = _tracker(folder, **run)
    with tracker.running(0, {"optim.lr": 1e-3, "data.val": None}):
        tracker.detail("first row: 'Which river?'")
        for step in (1, 2, 3, 4):
            tracker.advance(step, 8)
        tracker.log_steps(4, {"train_loss": 0.25, "lr": 1e-3})
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


def test_lines_that_come_too_often_are_in_the_log_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tracker = _tracker(tmp_path)
    with tracker.running(0, {}):
        for step in (1, 2, 3, 4):
            tracker.advance(step, 8)
            tracker.log_steps(step, {"train_loss": 0.5})
    shown = [line for line in capsys.readouterr().out.splitlines() if "loss" in line]
    assert [line.split()[1] for line in shown] == ["1/4", "4/4"], "the first and the last"
    assert _log(tmp_path).count("loss") == 4


def test_a_full_disk_is_reported_with_its_file(tmp_path: Path) -> None:
    tracker = _tracker(tmp_path)
    with tracker.running(0, {}):
        (tmp_path / METRICS_FILE).symlink_to("/dev/full")
        with pytest.raises(OSError, match="No space left on device") as caught:
            tracker.log_steps(1, {"train_loss": 0.5})
    assert caught.value.filename == str(tmp_path / METRICS_FILE)


def test_metrics_as_lines_of_json(tmp_path: Path) -> None:
    """A resumed run writes again what came after its checkpoint; a kill may cut a line off."""
    tracker = _tracker(tmp_path)
    with tracker.running(0, {}):
        tracker.log_steps(1, {"train_loss": 0.5})
        tracker.log_scores(2, {"val_accuracy": float("nan"), "val_nll": 0.7}, 6)
        tracker.log_steps(3, {"train_loss": 0.25})
    path = tmp_path / METRICS_FILE
    first, second, third = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    assert (first["step"], first["train_loss"]) == (1, 0.5)
    assert second == {"step": 2, "val_accuracy": None, "val_nll": 0.7}
    assert third["step"] == 3
    with path.open("a", encoding="utf-8") as file:
        file.write('{"step": 3, "val')
    with _tracker(tmp_path).running(2, {}):
        pass
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [first, second]
    with _tracker(tmp_path).running(0, {}):
        pass
    assert path.read_text(encoding="utf-8") == "", "killed before its first checkpoint"


def test_time_left_counts_validations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("train.tracking.trackers.monotonic", lambda: now)
    tracker = Tracker(tmp_path, 25, make_accelerator(recipe(tmp_path).run), eval_every=10)
    with tracker.running(0, {}):
        with tracker.validating():
            now += 7
        for step in range(1, 6):
            now += 2
            tracker.advance(step, 8)
        tracker.log_steps(5, {"train_loss": 0.5})
    # 20 steps of 2 s, and validations of 7 s after steps 10, 20 and 25.
    assert "4.0 rows/s  61 s left" in capsys.readouterr().out


def test_a_short_step_counts_as_its_own_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("train.tracking.trackers.monotonic", lambda: now)
    tracker = Tracker(tmp_path, 9, make_accelerator(recipe(tmp_path).run), eval_every=9)
    with tracker.running(0, {}):
        for step, rows in enumerate((8, 3, 8), 1):
            now += 2
            tracker.advance(step, rows)
            if step >= 2:
                tracker.log_steps(step, {"train_loss": 0.5})
    lines = (tmp_path / METRICS_FILE).read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["rows_per_second"] for line in lines] == [11 / 4, 8 / 2]


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
    board = event_accumulator.EventAccumulator(str(tmp_path / "tensorboard" / "custos")).Reload()
    assert set(board.Tags()["scalars"]) == {
        *("train_loss", "lr", "rows_per_second", "val_accuracy", "val_nll")
    }
    [event] = board.Scalars("val_accuracy")
    assert (event.step, event.value) == (4, 0.75)


def test_other_processes_report_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    second = SimpleNamespace(is_main_process=False, log_with=["tensorboard"], trackers=[])
    tracker = Tracker(tmp_path, 4, second, eval_every=4)
    with tracker.running(0, {}):
        tracker.advance(1, 8)
        tracker.log_steps(1, {"train_loss": 0.5})
        tracker.log_scores(1, {"val_nll": 0.5}, 1)
    assert capsys.readouterr().out == ""
    assert not list(tmp_path.iterdir())


def test_a_resumed_run_adds_to_its_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _report(tmp_path)
    with _tracker(tmp_path).running(4, {}):
        pass
    assert f"resuming {tmp_path} at step 4" in capsys.readouterr().out
    assert _log(tmp_path).count("first row") == 1
    assert "resuming" in _log(tmp_path)
