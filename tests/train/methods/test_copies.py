"""No loss has the host wait for a GPU: targets are copied while it computes, no value is read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from judging.models.backbones import load_backbone
from judging.scoring.prompts import Encoder
from losses import BradleyTerryLoss
from tests.gpu.host_waits import META, no_host_waits
from tests.train.made_up import analysed
from train.loop.objective import ModelRunner
from train.methods.critique import TextObjective
from train.methods.focal import FocalObjective
from train.methods.joint import JointObjective
from train.methods.reward import RewardObjective
from train.rows.rows import Rows, Supervision


def _joint(negatives: Any, span: Any) -> Callable[[Rows], JointObjective]:
    return lambda rows: JointObjective(0.3, negatives, span, seed=3)


def _focal(rows: Rows) -> FocalObjective:
    objective = FocalObjective.for_examples(rows.examples, 1.0, 5.0, "sqrt")
    objective.loss.to(META)  # once, in the first step
    return objective


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(_focal, id="focal"),
        pytest.param(_joint("sampled", "whole"), id="sampled"),
        pytest.param(_joint("all", "suffix"), id="all"),
        pytest.param(_joint("hardest", "suffix"), id="hardest"),
        pytest.param(lambda rows: RewardObjective(BradleyTerryLoss()), id="reward"),
    ],
)
def test_no_loss_waits_for_the_device(
    make: Callable[[Rows], Any], small: str, tmp_path: Path
) -> None:
    encoder = Encoder(load_backbone(small, weights=False), shows_all_pictures=True)
    rows = Rows(analysed(tmp_path, 4), Supervision(encoder), "train")
    objective, part = make(rows), rows[:4]
    tree = part[0].tree
    if isinstance(objective, RewardObjective):
        tree = encoder.tree(("Good", "Bad"))
        part = [cast(Any, SimpleNamespace(tree=tree, example=row.example)) for row in part]
    prompts = len(part) * (2 if isinstance(objective, RewardObjective) else 1)
    logits = torch.empty(
        prompts, tree.num_slots, len(encoder.backbone.tokenizer), device=META, requires_grad=True
    )
    with no_host_waits():
        objective.loss_sum(logits, part, step=8).backward()
    assert logits.grad is not None


def test_the_loss_of_critiques_does_not_wait_either(small: str, tmp_path: Path) -> None:
    encoder = Encoder(load_backbone(small, weights=False), shows_all_pictures=True)
    part = Rows(analysed(tmp_path, 4), Supervision(encoder), "train")[:4]
    width = max(len(row.tree.paths[row.target]) for row in part)
    logprobs = torch.empty(len(part), width, device=META, requires_grad=True)
    with no_host_waits():
        TextObjective().loss_sum(logprobs, part, step=8).backward()
    assert logprobs.grad is not None


def test_no_batch_waits_for_the_device(small: str, tmp_path: Path) -> None:
    encoder = Encoder(load_backbone(small, weights=False), shows_all_pictures=True)
    rows = Rows(analysed(tmp_path, 4), Supervision(encoder), "train")
    batch, objective = rows.batch([0, 1]), TextObjective()
    accelerator = SimpleNamespace(device=META, autocast=nullcontext)
    runner = ModelRunner(lambda *_, **inputs: inputs, cast(Any, accelerator), cast(Any, None), 1)
    with no_host_waits():
        inputs = cast(Any, runner.outputs(batch, objective.inputs(batch.rows)))
    assert inputs["targets"].device == META
