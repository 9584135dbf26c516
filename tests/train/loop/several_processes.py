"""A few steps on every process, parameters saved by the first."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from tests.tiny import save_picture
from tests.train.made_up import example, recipe, trainer
from train.loop.checkpoint import trainable

STEPS = 3


def run(
    backbone: str, out: Path, batch_size: int, token_budget: int, pictures: bool = True
) -> None:
    """Three steps of plain gradient descent, which hides no scale as Adam would."""
    picture = save_picture(out / f"{os.environ.get('RANK', 0)}.png", 60, 60)
    rows = [
        example(
            i, weight=1.0 + i % 3, **({"images": (picture,)} if pictures and i % 5 == 0 else {})
        )
        for i in range(STEPS * batch_size)
    ]
    settings = recipe(
        out,
        optim__lr=2e-3,
        optim__schedule="constant",
        optim__batch_size=batch_size,
        optim__token_budget=token_budget,
        optim__epochs=1,
        optim__warmup_ratio=0.0,
        optim__max_grad_norm=1e9,  # clipping would hide a wrong scale
    )
    learner = trainer(settings, backbone, rows)
    learner.optimizer = learner.accelerator.prepare(torch.optim.SGD(learner.parameters, lr=1.0))
    for step in learner.plan.epoch(0):
        learner.train_step(step)
        learner.progress.step += 1
    scores = learner.runner.label_logprobs(learner.rows.val)
    if learner.accelerator.is_main_process:
        tensors = {
            name: p.detach().clone() for name, p in trainable(learner.runner.unwrapped).items()
        }
        tensors["scores"] = torch.tensor(np.array(scores))
        processes = learner.accelerator.num_processes
        save_file(tensors, out / "after.safetensors", metadata={"processes": str(processes)})
    learner.accelerator.wait_for_everyone()
    if learner.accelerator.num_processes > 1:
        os._exit(0)  # gloo's threads may abort or hang an interpreter that ends
