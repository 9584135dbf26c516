"""Each process has its own run folder, as machines without a shared disk do."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from tests.train.made_up import examples, recipe, trainer
from train.loop.checkpoint import trainable
from train.methods.trainer import Trainer

STEPS = 4


def learner(backbone: str, folder: Path, **overrides: Any) -> Trainer:
    """A run of four steps that saves after every second one."""
    settings = recipe(
        folder,
        optim__epochs=1,
        run__save_every=2,
        run__eval_every=2,
        **overrides,
    )
    return trainer(settings, backbone, examples(STEPS * 8))


def run(backbone: str, out: Path) -> None:
    rank = os.environ["RANK"]
    trained = learner(backbone, out / rank, optim__token_budget=100)
    trained.fit()
    assert trained.progress.step == STEPS
    tensors = trainable(trained.runner.unwrapped).items()
    save_file({name: p.detach().clone() for name, p in tensors}, out / f"{rank}.safetensors")
    trained.accelerator.wait_for_everyone()
    sys.stdout.flush()
    os._exit(0)  # gloo's threads may abort or hang an interpreter that ends
