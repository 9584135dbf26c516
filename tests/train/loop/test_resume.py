"""A killed run ends as if it had not been; which validation is best, and where a run stops."""

import math
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.train.loop.test_checkpoint import load_checkpoint
from tests.train.made_up import KilledError, examples, killed_after, recipe, trainer
from train.loop.checkpoint import (
    best_folder,
    early_stop_line,
    selection_key,
    validations_without_gain,
)
from train.loop.objective import Measured
from train.loop.optimizer import learning_rate
from train.loop.trainer import Trainer
from train.methods.focal import FocalObjective
from train.setup.recipe import OptimSection


def _scripted(monkeypatch: pytest.MonkeyPatch, nlls: Iterable[float]) -> None:
    """Validations measure these in turn, the one before the first step included."""
    measured = iter(nlls)
    monkeypatch.setattr(
        FocalObjective,
        "measure",
        lambda self, runner, rows: Measured({"accuracy": 0.5, "nll": next(measured)}, [True] * 6),
    )


@pytest.mark.parametrize("killed_at", [4, 8])
def test_resuming_is_exact(small: str, tmp_path: Path, killed_at: int) -> None:
    """Twelve steps at a stretch, or killed within the first or the second epoch."""
    options: dict[str, Any] = {
        "adapter__dropout": 0.2,
        "optim__weight_decay": 0.01,
        "run__save_every": 4,
        "run__eval_every": 3,
        "run__log_every": 3,  # an entry after the resume holds losses from before it
    }
    data = examples(6 * 8)
    whole = trainer(recipe(tmp_path / "whole", **options), small, data)
    whole.fit()

    broken = recipe(tmp_path / "broken", **options)
    with killed_after(killed_at):
        trainer(broken, small, data).fit()
    torch.manual_seed(12345)  # a new process starts with other random state
    resumed = trainer(broken, small, data)
    resumed.fit()

    assert whole.progress.step == resumed.progress.step == 12
    assert whole.progress.history == resumed.progress.history
    assert whole.progress.chosen == resumed.progress.chosen
    best = best_folder(Path(), int(whole.progress.chosen["step"]))
    for name in (
        "checkpoint-000012/adapter.safetensors",
        "checkpoint-000012/optimizer.safetensors",
        f"{best}/adapter_model.safetensors",
    ):
        expected, found = (load_file(tmp_path / run / name) for run in ("whole", "broken"))
        torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_a_kill_between_the_best_and_the_checkpoint_that_knows_it(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps 3 and 6 are best in turn; the checkpoint of step 4 still finds step 3's adapter."""
    settings = recipe(
        tmp_path, optim__epochs=4, optim__max_steps=8, run__eval_every=3, run__save_every=4
    )
    validate = Trainer.validate

    def validate_and_die(self: Trainer) -> None:
        validate(self)
        if self.progress.step == 6:
            raise KilledError

    _scripted(monkeypatch, count(0, -1))
    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(Trainer, "validate", validate_and_die)
        trainer(settings, small, examples(16)).fit()
    resumed = trainer(settings, small, examples(16))
    state = load_checkpoint(
        tmp_path, resumed.tree_model, resumed.optimizer.optimizer, resumed.identity
    )
    assert (state["step"], state["chosen"]["step"]) == (4, 3)
    at_three, at_six = (load_file(best_folder(tmp_path, step) / "adapter_model.safetensors")
                        for step in (3, 6))  # fmt: skip
    assert any(not torch.equal(at_three[name], at_six[name]) for name in at_three)
    resumed.fit()
    assert [folder.name for folder in tmp_path.glob("best-*")] == ["best-000008"]


def test_scores_that_are_not_numbers_are_the_worst() -> None:
    nothing = {"val_accuracy": 0.9, "val_nll": float("nan")}
    bad = {"val_accuracy": 0.1, "val_nll": 9.0}
    assert selection_key(bad) > selection_key(nothing)
    assert validations_without_gain([nothing, {"train_loss": 0.0}, bad]) == 0


def test_a_run_stops_when_validations_get_no_better(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options: dict[str, Any] = {"run__eval_every": 1, "run__patience": 2, "run__save_every": 5}
    data = examples(8 * 5)
    _scripted(monkeypatch, [0.9, 0.5, 0.6, 0.4, 0.4, 0.7, 0.1])
    learner = trainer(recipe(tmp_path, **options), small, data)
    progress = learner.fit()
    assert (progress.step, progress.planned_steps, progress.chosen["step"]) == (5, 10, 3)
    line = (
        "stopped early at step 5 of 10: 2 validations in a row were no better than step 3's "
        "(run.patience=2)"
    )
    assert line in capsys.readouterr().out
    assert early_stop_line(progress, 2) == line
    assert early_stop_line(progress, None) is None

    again = trainer(recipe(tmp_path, **options), small, data)
    monkeypatch.setattr(again, "train_step", None)  # no step is made
    assert again.fit().step == 5

    _scripted(monkeypatch, [0.3] * 5)
    longer = trainer(recipe(tmp_path, **{**options, "run__patience": 9}), small, data)
    assert longer.fit().step == 10
    assert "run.patience=9 (was 2)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        # Two of ten steps warm up; then 8 steps of decay from 1.
        ("linear", [0.5, 1.0, 1.0, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]),
        ("constant", [0.5] + [1.0] * 9),
        ("cosine", [0.5, 1.0, *(0.5 * (1 + math.cos(math.pi * done / 8)) for done in range(8))]),
    ],
)
def test_learning_rate(schedule: str, expected: list[float]) -> None:
    given = {"lr": 1.0, "schedule": schedule, "warmup_ratio": 0.2}
    optim = OptimSection.model_validate(given)
    rates = [learning_rate(optim, step, total_steps=10) for step in range(10)]
    assert rates == pytest.approx(expected)
