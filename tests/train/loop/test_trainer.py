"""Scoring rows with the model of a run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from judging.errors import CustosError
from judging.types import LabelledExample
from tests.tiny import save_picture
from tests.train.made_up import (
    adapter_of,
    analysed,
    example,
    examples,
    losses,
    recipe,
    steps_of,
    trainer,
)
from train.loop.batches import StepPlan
from train.loop.checkpoint import best_folder, trainable
from train.loop.trainer import Trainer
from train.methods.joint import JointObjective


def test_a_separable_task_is_learnt(tiny_folder: str, tmp_path: Path) -> None:
    def rows(start: int, count: int) -> list[LabelledExample]:
        # Long enough a response for random attention to notice.
        words = [("green", "Correct"), ("brown", "Wrong")]
        return [
            example(i, responses=(" ".join([word] * 30),), label=label)
            for i in range(start, start + count)
            for word, label in [words[i % 2]]
        ]

    settings = recipe(tmp_path, optim__lr=1e-2, optim__epochs=3, run__eval_every=9)
    learner = trainer(settings, tiny_folder, rows(0, 48), rows(500, 12))
    progress = learner.fit()
    of_steps = losses(learner)
    assert np.mean(of_steps[-3:]) < 0.5 * of_steps[0]
    assert progress.step == learner.plan.total_steps == 18
    validated = [entry for entry in progress.history if "val_nll" in entry]
    assert [entry["step"] for entry in validated] == [0, 9, 18]
    assert validated[0]["val_accuracy"] < 0.9
    assert progress.chosen["val_accuracy"] == 1.0
    assert validated[-1]["val_nll"] < 0.1
    best = max(validated, key=lambda entry: (entry["val_accuracy"], -entry["val_nll"]))
    assert progress.chosen == best
    [folder] = tmp_path.glob("best-*")
    assert folder == best_folder(tmp_path, int(best["step"]))
    assert (folder / "adapter_model.safetensors").is_file()


def test_the_last_adapter_may_be_chosen(small: str, tmp_path: Path) -> None:
    settings = recipe(tmp_path, run__select="last", run__eval_every=2, optim__lr=1e-2)
    progress = trainer(settings, small, examples(24)).fit()
    validations = [entry for entry in progress.history if "val_nll" in entry]
    assert progress.chosen == validations[-1]
    assert progress.chosen["step"] == progress.step == 6
    assert [folder.name for folder in tmp_path.glob("best-*")] == ["best-000006"]
    assert progress.right is not None
    assert np.mean([bool(row) for row in progress.right]) == validations[-1]["val_accuracy"]
    assert progress.right_at_start is not None
    assert np.mean([bool(r) for r in progress.right_at_start]) == validations[0]["val_accuracy"]


PLAIN: dict[str, Any] = {
    "optim__lr": 1.0,
    "optim__schedule": "constant",
    "optim__max_grad_norm": 1e9,
}


def _step_with_sgd(learner: Trainer, micro_batches: list[list[int]]) -> dict[str, torch.Tensor]:
    """Parameters after one step of plain gradient descent, which shows the gradient itself."""
    sgd = torch.optim.SGD(learner.parameters, lr=1.0)
    learner.optimizer = learner.accelerator.prepare(sgd)
    with torch.no_grad():
        for name, parameter in trainable(learner.tree_model).items():
            if "lora_B" in name:  # zero at the start, which would hide lora_A's gradient
                parameter.fill_(0.03)
    before = adapter_of(learner)
    learner.train_step(micro_batches)
    return {name: before[name] - after for name, after in adapter_of(learner).items()}


def test_accumulation_equals_one_large_batch(tiny_folder: str, tmp_path: Path) -> None:
    picture = save_picture(tmp_path / "a.png", 60, 60)
    data = [
        example(i, weight=0.5 + i, **({"images": (picture,)} if i in (2, 5) else {}))
        for i in range(8)
    ]
    settings = recipe(tmp_path, **PLAIN)
    steps = [
        _step_with_sgd(trainer(settings, tiny_folder, data), micro_batches)
        for micro_batches in (
            [[0, 1, 2, 3, 4, 5, 6, 7]],
            [[0, 1, 2, 3], [4, 5, 6, 7]],
            [[0, 1, 2], [3, 4, 5, 6], [7]],
        )
    ]
    for name, gradient in steps[0].items():
        assert gradient.abs().max() > 1e-3, f"{name} gets no gradient"
    for other in steps[1:]:
        torch.testing.assert_close(other, steps[0], rtol=1e-4, atol=1e-5)


def test_gradient_checkpointing_changes_nothing(small: str, tmp_path: Path) -> None:
    picture = save_picture(tmp_path / "a.png", 60, 60)
    data = [example(i, images=(picture,) if i == 2 else ()) for i in range(8)]
    plain, again = (
        _step_with_sgd(
            trainer(recipe(tmp_path, run__gradient_checkpointing=how, **PLAIN), small, data),
            [[0, 1, 2, 3], [4, 5, 6, 7]],
        )
        for how in (False, True)
    )
    torch.testing.assert_close(again, plain, rtol=1e-4, atol=1e-5)


def test_rows_that_weigh_nothing_change_nothing(small: str, tmp_path: Path) -> None:
    data = [example(i, weight=0.0 if i < 8 else 1.0) for i in range(16)]
    learner = trainer(recipe(tmp_path, optim__weight_decay=0.1), small, data)
    before = adapter_of(learner)
    assert learner.train_step([[0, 1, 2, 3], [4, 5, 6, 7]]) == 0
    torch.testing.assert_close(adapter_of(learner), before, rtol=0, atol=0)
    assert learner.train_step([[0, 1, 2, 3], [8, 9, 10, 11]]) > 0
    assert not all(torch.equal(p, before[n]) for n, p in adapter_of(learner).items())


def test_the_loss_of_a_mixed_step_is_the_mean_over_its_rows(small: str, tmp_path: Path) -> None:
    """Eight rows of error analysis and four replayed ones, in steps of six, against each alone."""
    keys: dict[str, Any] = {"optim__batch_size": 6, "optim__token_budget": 300, "optim__epochs": 1}
    settings = recipe(tmp_path, optim__lr=1e-12, **keys)
    made = trainer(settings, small, [*analysed(tmp_path, 8), *examples(4)])
    made.objective = JointObjective(0.3, "all", "whole", 0)
    steps = steps_of(StepPlan(made.rows.train, settings.optim, 0, replayed=4))
    assert [sum(row >= 8 for micro in step for row in micro) for step in steps] == [2, 2]
    alone = [made.train_step([[row]]) for row in range(12)]
    for step in steps:
        expected = sum(alone[row] for micro in step for row in micro) / 6
        assert made.train_step(step) == pytest.approx(expected, rel=1e-5)


def test_a_backbone_that_is_not_finite_is_not_trained(small: str, tmp_path: Path) -> None:
    learner = trainer(recipe(tmp_path / "run"), small, examples(16))
    with torch.no_grad():
        for name, parameter in learner.tree_model.named_parameters():
            if name.endswith("layers.0.mlp.down_proj.base_layer.weight"):
                parameter[0, 0] = float("nan")
    with pytest.raises(CustosError, match=r"its scores are not numbers before step 1"):
        learner.fit()
