"""Trackers through accelerate: files in the run folder, one run after a resume, nothing sent."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.summary.writer import event_file_writer

from judging.errors import CustosError
from tests.train.made_up import recipe
from train.loop.accelerator import make_accelerator
from train.setup.recipe import TrackerName
from train.tracking import experiment_log
from train.tracking.trackers import RUNS_FILE, ExperimentLog


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for variable in ("WANDB_MODE", "MLFLOW_TRACKING_URI", "MLFLOW_RUN_ID"):
        monkeypatch.delenv(variable, raising=False)
    with monkeypatch.context():
        yield


def _log(folder: Path, *names: TrackerName, notes: list[str] | None = None) -> ExperimentLog:
    accelerator = make_accelerator(recipe(folder, run__trackers=list(names)).run)
    folder.mkdir(exist_ok=True)
    return ExperimentLog(accelerator, folder, (notes if notes is not None else []).append)


def _run_twice(folder: Path, name: TrackerName, **changed: Any) -> None:
    """Steps 1 to 3, killed after the checkpoint of step 2, then steps 3 and 4."""
    first = _log(folder, name)
    first.start(0, {"optim.lr": 0.1, "data.train": ["a.jsonl"], "optim.max_steps": None})
    for step in (1, 2, 3):
        first.log({"train_loss": 1 / step}, step)
    first.finish()
    second = _log(folder, name)
    second.start(
        2, {"optim.lr": 0.1, "data.train": ["a.jsonl"], "optim.max_steps": None, **changed}
    )
    for step in (3, 4):
        second.log({"train_loss": 1 / step}, step)
    second.finish()


def test_tensorboard_goes_on_at_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # TensorBoard reads its files by name: the second, the process and a count as text, 10 before 9.
    # Real runs are processes that start at other seconds; these two may have both in common.
    monkeypatch.setattr(event_file_writer, "_global_uid", event_file_writer.AtomicCounter(0))
    _run_twice(tmp_path, "tensorboard")
    board = event_accumulator.EventAccumulator(str(tmp_path / "tensorboard" / "custos")).Reload()
    assert [event.step for event in board.Scalars("train_loss")] == [1, 2, 3, 4]


@pytest.mark.skipif(not importlib.util.find_spec("mlflow"), reason="pip install mlflow-skinny")
def test_mlflow_goes_on_in_its_run(tmp_path: Path) -> None:
    """A free setting may have changed, which MLflow would not take for its parameters."""
    _run_twice(tmp_path, "mlflow", **{"optim.token_budget": 7, "optim.lr": 0.2})
    [metrics] = (tmp_path / "mlflow").glob("*/*/metrics/train_loss")
    steps = [int(line.split()[2]) for line in metrics.read_text(encoding="utf-8").splitlines()]
    assert set(steps) == {1, 2, 3, 4}
    parameters = metrics.parents[1] / "params"
    assert (parameters / "optim.lr").read_text(encoding="utf-8") == "0.1"
    assert json.loads((tmp_path / RUNS_FILE).read_text(encoding="utf-8"))["mlflow"] == {
        "run folder": metrics.parents[1].name
    }


@pytest.mark.skipif(not importlib.util.find_spec("mlflow"), reason="pip install mlflow-skinny")
def test_mlflow_starts_anew_where_its_run_was_deleted(tmp_path: Path) -> None:
    (tmp_path / RUNS_FILE).write_text('{"mlflow": {"run folder": "' + "0" * 32 + '"}}')
    log = _log(tmp_path, "mlflow")
    log.start(2, {})
    log.log({"train_loss": 1.0}, 3)
    log.finish()
    assert len(list((tmp_path / "mlflow").glob("*/*/metrics/train_loss"))) == 1


@pytest.mark.skipif(not importlib.util.find_spec("wandb"), reason="pip install wandb")
def test_wandb_stays_offline_and_goes_on_in_its_run(tmp_path: Path) -> None:
    _run_twice(tmp_path, "wandb")
    folders = sorted((tmp_path / "wandb").glob("offline-run-*"))
    name = json.loads((tmp_path / RUNS_FILE).read_text(encoding="utf-8"))["wandb"]
    assert len(folders) == 2
    assert all(folder.name.endswith(name) for folder in folders), "one run when it is synced"


def test_a_missing_package_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment_log, "find_spec", lambda name: None)
    with pytest.raises(
        CustosError, match=r"'run\.trackers': .*wandb is not installed: pip install"
    ):
        make_accelerator(recipe(tmp_path, run__trackers="wandb").run)


def test_a_tracker_that_does_not_start_is_one_line(tmp_path: Path) -> None:
    log = _log(tmp_path, "tensorboard")
    (tmp_path / "tensorboard").write_text("a file where a folder should be")
    with pytest.raises(CustosError, match=r"^run\.trackers=tensorboard: .*tensorboard"):
        log.start(0, {})


def test_a_tracker_that_fails_does_not_end_training(tmp_path: Path) -> None:
    notes: list[str] = []
    log = _log(tmp_path, "tensorboard", notes=notes)
    log.start(0, {})
    [tracker] = log.accelerator.trackers
    tracker.writer = None
    log.log({"train_loss": 1.0}, 1)
    log.log({"train_loss": 1.0}, 2)
    log.finish()
    assert len(notes) == 1
    assert notes[0].startswith("warning: tensorboard records no more: ")


def test_no_trackers(tmp_path: Path) -> None:
    log = _log(tmp_path)
    log.start(0, {})
    log.log({"train_loss": 1.0}, 1)
    log.finish()
    assert not list(tmp_path.iterdir())
