"""A killed run ends as if it had never been killed."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.train.loop.test_checkpoint import load_checkpoint
from tests.train.made_up import KilledError, examples, killed_after, recipe, trainer
from train.loop.checkpoint import best_folder
from train.loop.objective import Measured
from train.methods.focal import FocalObjective
from train.methods.trainer import Trainer


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
    for file in ("adapter.safetensors", "optimizer.safetensors"):
        expected = load_file(tmp_path / "whole" / "checkpoint-000012" / file)
        resumed_tensors = load_file(tmp_path / "broken" / "checkpoint-000012" / file)
        assert expected.keys() == resumed_tensors.keys()
        assert all(torch.equal(expected[name], resumed_tensors[name]) for name in expected)
    step = int(whole.progress.chosen["step"])
    best = [load_file(best_folder(tmp_path / run, step) / "adapter_model.safetensors")
            for run in ("whole", "broken")]  # fmt: skip
    assert all(torch.equal(best[0][name], best[1][name]) for name in best[0])


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

    likelihoods = count(0, -1)
    monkeypatch.setattr(
        FocalObjective,
        "measure",
        lambda self, runner, rows: Measured({"nll": next(likelihoods)}, []),
    )
    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(Trainer, "validate", validate_and_die)
        trainer(settings, small, examples(16)).fit()
    resumed = trainer(settings, small, examples(16))
    state = load_checkpoint(
        tmp_path, resumed.runner.unwrapped, resumed.optimizer.optimizer, resumed.identity
    )
    assert (state["step"], state["chosen"]["step"]) == (4, 3)
    at_three, at_six = (load_file(best_folder(tmp_path, step) / "adapter_model.safetensors")
                        for step in (3, 6))  # fmt: skip
    assert any(not torch.equal(at_three[name], at_six[name]) for name in at_three)
    resumed.fit()
    assert [folder.name for folder in tmp_path.glob("best-*")] == ["best-000008"]
