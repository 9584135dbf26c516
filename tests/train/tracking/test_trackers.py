"""A run shows short lines or one bar, keeps the details in its log, and counts its speed."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.summary.writer import event_file_writer
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from judging.errors import CustosError
from tests.tiny import save_picture
from tests.train.made_up import example, examples, recipe, trainer
from train.loop.accelerator import make_accelerator
from train.setup.recipe import TrackerName
from train.setup.run_log import LOG_FILE
from train.tracking.throughput import peak_memory
from train.tracking.trackers import METRICS_FILE, RUNS_FILE, ExperimentLog, Tracker


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


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("WANDB_MODE", "MLFLOW_TRACKING_URI", "MLFLOW_RUN_ID"):
        monkeypatch.delenv(variable, raising=False)


def _experiment(folder: Path, name: TrackerName, notes: list[str] | None = None) -> ExperimentLog:
    accelerator = make_accelerator(recipe(folder, run__trackers=name).run)
    return ExperimentLog(accelerator, folder, ([] if notes is None else notes).append)


def _run_twice(folder: Path, name: TrackerName, **changed: Any) -> None:
    """Steps 1 to 3, killed after the checkpoint of step 2, then steps 3 and 4."""
    config = {"optim.lr": 0.1, "data.train": ["a.jsonl"], "optim.max_steps": None}
    for begun, steps, keys in ((0, (1, 2, 3), config), (2, (3, 4), config | changed)):
        log = _experiment(folder, name)
        log.start(begun, keys)
        for step in steps:
            log.log({"train_loss": 1 / step}, step)
        log.finish()


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


@pytest.mark.skipif(not importlib.util.find_spec("wandb"), reason="pip install wandb")
def test_wandb_stays_offline_and_goes_on_in_its_run(tmp_path: Path) -> None:
    _run_twice(tmp_path, "wandb")
    folders = sorted((tmp_path / "wandb").glob("offline-run-*"))
    name = json.loads((tmp_path / RUNS_FILE).read_text(encoding="utf-8"))["wandb"]
    assert len(folders) == 2
    assert all(folder.name.endswith(name) for folder in folders), "one run when it is synced"


def test_a_missing_package_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("train.tracking.trackers.find_spec", lambda name: None)
    with pytest.raises(CustosError, match=r"'run\.trackers': .*wandb is not installed: pip inst"):
        make_accelerator(recipe(tmp_path, run__trackers="wandb").run)


def test_a_tracker_that_fails_does_not_end_training(tmp_path: Path) -> None:
    notes: list[str] = []
    log = _experiment(tmp_path, "tensorboard", notes)
    log.start(0, {})
    [tracker] = log.accelerator.trackers
    tracker.writer = None
    log.log({"train_loss": 1.0}, 1)
    log.log({"train_loss": 1.0}, 2)
    log.finish()
    [note] = notes
    assert note.startswith("warning: tensorboard records no more: ")


def test_operations_are_those_that_pytorch_counts(tiny_folder: str, tmp_path: Path) -> None:
    """Of a whole step, with a picture in every second row; PyTorch counts padding too.

    It does not count what the CPU's fused attention kernel does, so plain products stand in.
    """
    picture = save_picture(tmp_path / "a.png", 112, 112)
    rows = [example(4 * i, **({"images": (picture,)} if i % 2 else {})) for i in range(8)]
    learner = trainer(recipe(tmp_path / "run", optim__epochs=1), tiny_folder, rows)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        learner.train_step(learner.plan.micro_batches(0))
    counted = learner.throughput.operations
    assert counted == pytest.approx(counter.get_total_flops(), rel=0.25)


def test_figures_of_every_report(small: str, tmp_path: Path) -> None:
    settings = recipe(tmp_path, optim__max_steps=4, run__peak_tflops=0.5)
    learner = trainer(settings, small, examples(32))
    tokens, padding = 0, 0
    for step in range(4):
        for micro_batch in learner.plan.micro_batches(step):
            [batch] = learner.loader.batches(learner.rows.train, [micro_batch])
            pad = learner.rows.train.encoder.backbone.tokenizer.pad_token_id
            tokens += int((batch.layout.input_ids != pad).sum()) + len(batch.layout.prefix_ids)
            padding += int((batch.layout.input_ids == pad).sum())
    learner.fit()
    lines = (tmp_path / METRICS_FILE).read_text(encoding="utf-8").splitlines()
    reports = [entry for line in lines if "train_loss" in (entry := json.loads(line))]
    assert [report["step"] for report in reports] == [2, 4]
    seconds = [16 / report["rows_per_second"] for report in reports]
    of_tokens = [r["tokens_per_second"] * s for r, s in zip(reports, seconds, strict=True)]
    assert sum(of_tokens) == pytest.approx(tokens, rel=0.05)
    assert 0 < min(r["padded_share"] for r in reports) < padding / tokens * 3
    resident = peak_memory(torch.device("cpu")) / 1e9
    for report in reports:
        assert report["grad_norm"] > 0
        assert 0 < report["mfu"] < 1
        assert 0 <= report["data_wait_share"] <= 1
        assert report["peak_memory_gb"] == pytest.approx(resident, rel=0.2)
