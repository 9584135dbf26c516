from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from safetensors.torch import load_file

from judging.errors import CustosError
from judging.types import LabelledExample
from tests.tiny import save_picture
from tests.train.made_up import example, examples, recipe, trainer
from train.checkpoint import load_checkpoint, save_checkpoint, trainable
from train.loop import Trainer


def _losses(trained: Trainer) -> list[float]:
    return [entry["train_loss"] for entry in trained.progress.history if "train_loss" in entry]


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
    losses = _losses(learner)
    assert np.mean(losses[-3:]) < 0.5 * losses[0]
    assert progress.step == learner.total_steps == 18
    validated = [entry for entry in progress.history if "val_nll" in entry]
    assert [entry["step"] for entry in validated] == [0, 9, 18]
    assert validated[0]["val_accuracy"] < 0.9
    assert progress.best["val_accuracy"] == 1.0
    assert validated[-1]["val_nll"] < 0.1
    best = max(validated, key=lambda entry: (entry["val_accuracy"], -entry["val_nll"]))
    assert progress.best == best
    assert (tmp_path / "best" / "adapter_model.safetensors").is_file()


def test_only_the_adapter_is_trained(small: str, tmp_path: Path) -> None:
    learner = trainer(recipe(tmp_path, optim__epochs=1), small, examples(16))
    before = {name: p.detach().clone() for name, p in learner.unwrapped.named_parameters()}
    learner.fit()
    moved = {
        name
        for name, p in learner.unwrapped.named_parameters()
        if not torch.equal(p.detach(), before[name])
    }
    assert moved == set(trainable(learner.unwrapped))
    assert all("lora_" in name and "language_model" in name for name in moved)


class _KilledError(Exception):
    pass


def _kill_after_saving(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    save = Trainer._save

    def save_and_die(self: Trainer) -> None:
        save(self)
        if self.progress.step == step:
            raise _KilledError

    monkeypatch.setattr(Trainer, "_save", save_and_die)


@pytest.mark.parametrize("killed_at", [4, 8])
def test_resuming_is_exact(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_at: int
) -> None:
    """Twelve steps at a stretch, or killed within the first or the second epoch."""
    options: dict[str, Any] = {
        "adapter__dropout": 0.2,
        "optim__weight_decay": 0.01,
        "run__save_every": 4,
        "run__eval_every": 3,
    }
    data = examples(6 * 8)
    whole = trainer(recipe(tmp_path / "whole", **options), small, data)
    whole.fit()

    broken = recipe(tmp_path / "broken", **options)
    with monkeypatch.context() as patch, pytest.raises(_KilledError):
        _kill_after_saving(patch, killed_at)
        trainer(broken, small, data).fit()
    torch.manual_seed(12345)  # a new process starts with other random state
    resumed = trainer(broken, small, data)
    resumed.fit()

    assert whole.progress.step == resumed.progress.step == 12
    assert whole.progress.history == resumed.progress.history
    assert whole.progress.best == resumed.progress.best
    for file in ("adapter.safetensors", "optimizer.safetensors"):
        expected = load_file(tmp_path / "whole" / "checkpoint-000012" / file)
        found = load_file(tmp_path / "broken" / "checkpoint-000012" / file)
        assert expected.keys() == found.keys()
        assert all(torch.equal(expected[name], found[name]) for name in expected)
    best = [load_file(tmp_path / run / "best" / "adapter_model.safetensors")
            for run in ("whole", "broken")]  # fmt: skip
    assert all(torch.equal(best[0][name], best[1][name]) for name in best[0])


def test_dropout_is_at_work(small: str, tmp_path: Path) -> None:
    """Or the test above would prove little."""
    runs = []
    for dropout in (0.0, 0.2):
        settings = recipe(tmp_path / str(dropout), adapter__dropout=dropout, optim__max_steps=2)
        runs.append(trainer(settings, small, examples(16)).fit().history)
    assert runs[0] != runs[1]


def test_a_finished_run_is_not_run_again(small: str, tmp_path: Path) -> None:
    settings = recipe(tmp_path, optim__max_steps=2)
    first = trainer(settings, small, examples(16)).fit()
    second = trainer(settings, small, examples(16)).fit()
    assert second.history == first.history


def _step_with_sgd(learner: Trainer, micro_batches: list[list[int]]) -> dict[str, torch.Tensor]:
    """Parameters after one step of plain gradient descent, which shows the gradient itself."""
    sgd = torch.optim.SGD(learner.parameters, lr=1.0)
    learner.optimizer = learner.accelerator.prepare(sgd)
    with torch.no_grad():
        for name, parameter in trainable(learner.unwrapped).items():
            if "lora_B" in name:  # zero at the start, which would hide lora_A's gradient
                parameter.fill_(0.03)
    before = {name: p.detach().clone() for name, p in trainable(learner.unwrapped).items()}
    rows = learner.rows.rows
    learner._step([[rows[i] for i in micro] for micro in micro_batches])
    return {name: before[name] - p.detach() for name, p in trainable(learner.unwrapped).items()}


def test_accumulation_equals_one_large_batch(tiny_folder: str, tmp_path: Path) -> None:
    picture = save_picture(tmp_path / "a.png", 60, 60)
    data = [
        example(i, weight=0.5 + i, **({"images": (picture,)} if i in (2, 5) else {}))
        for i in range(8)
    ]
    settings = recipe(tmp_path, optim__lr=1.0, optim__schedule="constant", optim__max_grad_norm=1e9)
    steps = [
        _step_with_sgd(trainer(settings, tiny_folder, data), micro_batches)
        for micro_batches in (
            [[0, 1, 2, 3, 4, 5, 6, 7]],
            [[0, 1, 2, 3], [4, 5, 6, 7]],
            [[0, 1, 2], [3, 4, 5, 6], [7]],
        )
    ]
    for other in steps[1:]:
        for name, gradient in steps[0].items():
            assert gradient.abs().max() > 1e-3, f"{name} gets no gradient"
            torch.testing.assert_close(other[name], gradient, rtol=1e-4, atol=1e-5)


def test_gradient_checkpointing_changes_nothing(small: str, tmp_path: Path) -> None:
    steps = [
        _step_with_sgd(
            trainer(
                recipe(
                    tmp_path,
                    optim__lr=1.0,
                    optim__schedule="constant",
                    optim__max_grad_norm=1e9,
                    run__gradient_checkpointing=checkpointing,
                ),
                small,
                examples(8),
            ),
            [[0, 1, 2, 3], [4, 5, 6, 7]],
        )
        for checkpointing in (False, True)
    ]
    for name, gradient in steps[0].items():
        torch.testing.assert_close(steps[1][name], gradient, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        # Two of ten steps warm up; then 8 steps of decay from 1.
        ("linear", [0.5, 1.0, 1.0, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]),
        ("constant", [0.5] + [1.0] * 9),
        (
            "cosine",
            [0.5, 1.0, *(0.5 * (1 + math.cos(math.pi * done / 8)) for done in range(8))],
        ),
    ],
)
def test_learning_rate(small: str, tmp_path: Path, schedule: str, expected: list[float]) -> None:
    settings = recipe(
        tmp_path,
        optim__lr=1.0,
        optim__schedule=schedule,
        optim__warmup_ratio=0.2,
        optim__max_steps=10,
        optim__epochs=5,
    )
    learner = trainer(settings, small, examples(16))
    assert [learner._lr(step) for step in range(10)] == pytest.approx(expected)


def test_too_few_rows_for_a_step(small: str, tmp_path: Path) -> None:
    with pytest.raises(CustosError, match=r"4 training rows do not fill .*optim\.batch_size=8"):
        trainer(recipe(tmp_path), small, examples(4))


def test_more_processes_than_micro_batches(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process without a micro-batch would leave the others waiting for its gradients."""
    monkeypatch.setattr(Accelerator, "num_processes", 3)
    with pytest.raises(CustosError, match="holds 2 micro-batches .* fewer than the 3 processes"):
        trainer(recipe(tmp_path), small, examples(16))


def test_checkpoints_are_kept_whole_and_few(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    for step in (1, 2, 30):
        save_checkpoint(tmp_path, step, model, optimizer, {"best": {}}, {})
    (tmp_path / ".checkpoint-000031.partial").mkdir()  # as a kill would leave it
    assert sorted(path.name for path in tmp_path.glob("checkpoint-*")) == [
        "checkpoint-000002",
        "checkpoint-000030",
    ]
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".pt", ".bin", ".pkl")]
    other = torch.nn.Linear(3, 2)
    fresh = torch.optim.AdamW(other.parameters())
    assert load_checkpoint(tmp_path, other, fresh, {}) == {"step": 30, "best": {}}
    assert torch.equal(other.weight, model.weight)
    assert torch.equal(fresh.state[other.weight]["exp_avg"],
                       optimizer.state[model.weight]["exp_avg"])  # fmt: skip


def test_a_checkpoint_of_another_shape_is_refused(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    save_checkpoint(tmp_path, 1, model, torch.optim.AdamW(model.parameters()), {}, {})
    other = torch.nn.Linear(3, 2, bias=False)
    with pytest.raises(CustosError, match="holds other parameters than this recipe trains"):
        load_checkpoint(tmp_path, other, torch.optim.AdamW(other.parameters()), {})
    wider = torch.nn.Linear(4, 2)
    with pytest.raises(CustosError, match="holds other parameters than this recipe trains"):
        load_checkpoint(tmp_path, wider, torch.optim.AdamW(wider.parameters()), {})


def test_no_checkpoint(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    assert load_checkpoint(tmp_path / "none", model, optimizer, {}) is None
