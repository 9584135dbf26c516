"""A killed run ends as if it had never been killed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.train.loop.test_checkpoint import load_checkpoint
from tests.train.made_up import KilledError, example, examples, killed_after, recipe, trainer
from train.loop import batches
from train.loop.checkpoint import best_folder
from train.loop.objective import Measured
from train.methods.focal import FocalObjective
from train.methods.trainer import Trainer
from train.rows.rows import Batch


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


def test_epochs_of_whole_questions_may_differ_in_steps(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every step of every epoch once, also when the run is killed in a late epoch."""
    monkeypatch.setattr(batches, "WINDOW", 1)
    data = [example(i, question="Which" + "?" * (int(i**0.5) % 7)) for i in range(60)]
    settings = recipe(
        tmp_path,
        optim__epochs=5,
        optim__whole_questions=True,
        optim__token_budget=400,
        run__save_every=3,
    )
    seen: list[list[int]] = []

    def train(killed_at: int | None) -> None:
        learner = trainer(settings, small, data)
        lengths = [len(learner.plan.epoch(epoch)) for epoch in range(5)]
        assert len(set(lengths)) > 1, "or this proves nothing"
        assert learner.plan.total_steps == sum(lengths)

        def step(micro_batches: list[list[int]], batches: Iterator[Batch]) -> float:
            if learner.progress.step == killed_at:
                raise KilledError
            made = [next(batches) for _ in micro_batches]
            assert [list(batch.indices) for batch in made] == micro_batches
            seen.append([row for rows in micro_batches for row in rows])
            return 1.0

        monkeypatch.setattr(learner, "train_step", step)
        monkeypatch.setattr(
            FocalObjective, "measure", lambda self, runner, rows: Measured({"nll": 1.0}, [])
        )
        if killed_at is None:
            learner.fit()
            plan = [step for epoch in range(5) for step in learner.plan.epoch(epoch)]
            planned = [[row for rows in step for row in rows] for step in plan]
            assert seen == planned
        else:
            with pytest.raises(KilledError):
                learner.fit()
            del seen[killed_at // 3 * 3 :]  # what the newest checkpoint does not know of

    train(killed_at=32)
    train(killed_at=None)


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


def test_an_earlier_checkpoint_still_finds_its_best(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lose the newest checkpoint, and let no later step be as good as the earlier one's best."""

    def run(every: int, dies_at: int | None, accuracies: list[float]) -> Trainer:
        settings = recipe(tmp_path, run__eval_every=every, run__save_every=2)
        measured = (Measured({"accuracy": a, "nll": 1.0}, []) for a in accuracies)
        monkeypatch.setattr(FocalObjective, "measure", lambda *_: next(measured))
        learner = trainer(settings, small, examples(24))
        take_step = learner.train_step

        def step_or_die(*given: Any) -> float:
            if learner.progress.step == dies_at:
                raise KilledError
            return take_step(*given)

        monkeypatch.setattr(learner, "train_step", step_or_die)
        return learner

    with pytest.raises(KilledError):
        run(2, 5, [0.1, 0.5, 0.9]).fit()
    shutil.rmtree(tmp_path / "checkpoint-000004")
    progress = run(100, None, [0.3]).fit()
    assert (progress.step, progress.chosen["step"]) == (6, 2)
    assert [folder.name for folder in tmp_path.glob("best-*")] == ["best-000002"]
