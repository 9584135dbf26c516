"""Train HiEval-QS, the quick-score judge: LoRA and square-root class-balanced focal loss.

accelerate launch train/hieval_stage1.py [--config recipes/hieval_stage1.yaml] [key.path=value ...]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field
from rich.console import Console

from judging.adapters import add_adapter, load_adapter
from judging.backbones import load_backbone
from judging.encoder import Encoder
from judging.errors import CustosError
from train.batches import Rows
from train.data import load_splits
from train.finish import announce, calibrate, report_test, write_judge, write_model_card
from train.loop import Trainer, accelerator_for
from train.objectives import FocalObjective
from train.recipe import Recipe, Section, load_recipe


class FocalSection(Section):
    """Focal loss (HiEval section 3.1); ``gamma`` 0 with weighting ``none`` is cross-entropy."""

    gamma: float = Field(default=1.0, ge=0)
    t_max: float = Field(default=5.0, gt=0)
    weighting: Literal["sqrt", "none"] = "sqrt"


class Stage1Recipe(Recipe):
    """Recipe of this script."""

    loss: FocalSection = FocalSection()


def train(recipe: Stage1Recipe, command: str) -> None:
    """Train, pick the best adapter, calibrate, report."""
    run = recipe.run
    splits = load_splits(recipe.data)
    accelerator = accelerator_for(recipe)
    dtype: Literal["bfloat16", "float32"] = "bfloat16" if run.precision == "bf16" else "float32"
    backbone = load_backbone(recipe.backbone, dtype=dtype, device=accelerator.device)
    encoder = Encoder(backbone, run.response_budget)
    rows, val = Rows(splits["train"], encoder), Rows(splits["val"], encoder)
    objective = FocalObjective.for_rows(
        rows.rows, recipe.loss.gamma, recipe.loss.t_max, recipe.loss.weighting
    )
    objective.loss.to(accelerator.device)
    if recipe.adapter.init:
        adapted = load_adapter(backbone.model, recipe.adapter.init, trainable=True)
    else:
        adapter = recipe.adapter
        adapted = add_adapter(
            backbone.model,
            r=adapter.r,
            alpha=adapter.alpha,
            dropout=adapter.dropout,
            modules=adapter.modules,
            seed=run.seed,
        )
    trainer = Trainer(recipe, backbone.with_model(adapted), rows, val, objective)
    progress = trainer.fit()
    if not accelerator.is_main_process:
        return
    write_judge(recipe, backbone, rows, progress)
    report = None
    if "cal" in splits:
        calibrate(run.output, splits["cal"])
    if "test" in splits:
        report = report_test(run.output, splits["test"], command, run.seed)
        write_model_card(run.output, recipe, report, Path(__file__).name)
    announce(run.output, report)


def main(argv: Sequence[str] | None = None) -> None:
    """Command line."""
    try:
        recipe = load_recipe(Stage1Recipe, Path(__file__), argv)
        train(recipe, "accelerate launch train/hieval_stage1.py " + " ".join(argv or sys.argv[1:]))
    except CustosError as error:
        Console(stderr=True).print(f"error: {error}", markup=False, soft_wrap=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
