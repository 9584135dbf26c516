"""Short runs that several processes do together."""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from safetensors.torch import save_file

from tests.tiny import save_picture
from tests.train.made_up import adapter_of, example, examples, recipe, steps_of, trainer
from train.loop.trainer import Trainer


def _end(accelerator: Accelerator) -> None:
    """End a process of several: gloo's threads may abort or hang an interpreter that ends."""
    accelerator.wait_for_everyone()
    if accelerator.num_processes > 1:
        sys.stdout.flush()
        os._exit(0)


def take_steps(
    backbone: str, out: Path, batch_size: int, token_budget: int, pictures: bool = True
) -> None:
    """Take three steps of plain gradient descent, which hides no scale as Adam would."""
    picture = save_picture(out / f"{os.environ.get('RANK', 0)}.png", 60, 60)
    rows = [
        example(i, weight=1.0 + i % 3, images=(picture,) if pictures and i % 5 == 0 else ())
        for i in range(3 * batch_size)
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
    for step in steps_of(learner.plan):
        learner.train_step(step)
        learner.progress.step += 1
    scores = torch.tensor(np.array(learner.runner.label_logprobs(learner.rows.val)))
    if learner.accelerator.is_main_process:
        processes = str(learner.accelerator.num_processes)
        tensors = {**adapter_of(learner), "scores": scores}
        save_file(tensors, out / "after.safetensors", metadata={"processes": processes})
    _end(learner.accelerator)


def of_four_steps(backbone: str, folder: Path, **overrides: Any) -> Trainer:
    """Return a run of four steps that saves after every second one."""
    every: dict[str, Any] = {"optim__epochs": 1, "run__save_every": 2, "run__eval_every": 2}
    return trainer(recipe(folder, **every, **overrides), backbone, examples(4 * 8))


def with_own_folders(backbone: str, out: Path) -> None:
    """Train in a run folder of this process's own, as machines without a shared disk do."""
    rank = os.environ["RANK"]
    learner = of_four_steps(backbone, out / rank, optim__token_budget=100)
    learner.fit()
    assert learner.progress.step == 4
    save_file(adapter_of(learner), out / f"{rank}.safetensors")
    _end(learner.accelerator)


def stop_early(backbone: str, out: Path) -> None:
    """Fit with steps too small to change a weight, so that no validation is better."""
    every: dict[str, Any] = {"run__eval_every": 1, "run__log_every": 5, "run__patience": 2}
    learner = trainer(recipe(out / "run", optim__lr=1e-30, **every), backbone, examples(8 * 4))
    progress = learner.fit()
    rank = learner.accelerator.process_index
    (out / f"{rank}.json").write_text(json.dumps(asdict(progress)), encoding="utf-8")
    _end(learner.accelerator)
