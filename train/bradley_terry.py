"""Train a scalar reward of single responses on pairs (the Bradley-Terry paradigm).

accelerate launch train/bradley_terry.py [--config recipes/bradley_terry.yaml] [key.path=value ...]

Reads the rows of ``truthful-pair``. A tie is half a win for each side.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field, model_validator

from losses import BradleyTerryLoss
from train.loop.batches import Rows
from train.objectives.reward import RewardLayout, RewardObjective, RewardTrainer, each_response
from train.setup.recipe import Recipe, Section
from train.stage import run_stage, stage_main

EMBEDDED = (
    "custos prep pairs --rows 8000 --val 150 --cal 240 --test 1200 --out data/pairs && "
    "accelerate launch train/bradley_terry.py --config recipes/embedded/pair_bradley_terry.yaml"
)


class PairSection(Section):
    """Pairwise logistic loss."""

    margin: float = Field(default=0.0, ge=0)
    """By how much the chosen response should score higher."""


class BradleyTerryRecipe(Recipe):
    """Recipe of this script."""

    loss: PairSection = PairSection()

    @model_validator(mode="after")
    def _pairs_are_tested_elsewhere(self) -> BradleyTerryRecipe:
        if self.data.cal or self.data.test:
            raise ValueError(
                "data.cal and data.test: a reward is given to one response and has no labels; "
                "compare rewards on pairs with python -m experiments.findings.paradigms"
            )
        return self


def train(recipe: BradleyTerryRecipe, command: str) -> None:
    """Train a reward judge."""
    run_stage(
        recipe,
        command,
        Path(__file__),
        lambda rows: RewardObjective(BradleyTerryLoss(recipe.loss.margin)),
        encode=lambda examples, encoder: Rows(examples, encoder, RewardLayout(), each_response),
        trainer_class=RewardTrainer,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Command line."""
    stage_main(BradleyTerryRecipe, train, Path(__file__), argv, EMBEDDED)


if __name__ == "__main__":
    main()
