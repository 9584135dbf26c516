"""Train HiEval-QS, the quick-score judge: LoRA and square-root class-balanced focal loss.

accelerate launch train/hieval_stage1.py [--config recipes/hieval_stage1.yaml] [key.path=value ...]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from train.objectives.focal import FocalObjective
from train.setup.recipe import Recipe, Section
from train.stage import run_stage, stage_main

EMBEDDED = (
    "custos prep synthetic --worlds open --rows 7000 --out runs/demo/data && "
    "accelerate launch train/hieval_stage1.py --config recipes/embedded/demo.yaml"
)


class FocalSection(Section):
    """Focal loss (HiEval section 3.1); ``gamma`` 0 with weighting ``none`` is cross-entropy."""

    gamma: float = Field(default=1.0, ge=0)
    t_max: float = Field(default=5.0, gt=0)
    weighting: Literal["sqrt", "none"] = "sqrt"


class Stage1Recipe(Recipe):
    """Recipe of this script."""

    loss: FocalSection = FocalSection()


def train(recipe: Stage1Recipe, command: str) -> None:
    """Train a quick-score judge."""
    loss = recipe.loss
    run_stage(
        recipe,
        command,
        Path(__file__),
        lambda rows: FocalObjective.for_rows(rows.rows, loss.gamma, loss.t_max, loss.weighting),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Command line."""
    stage_main(Stage1Recipe, train, Path(__file__), argv, EMBEDDED)


if __name__ == "__main__":
    main()
