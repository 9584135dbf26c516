"""Train a scalar reward of single responses on pairs (the Bradley-Terry paradigm).

accelerate launch train/bradley_terry.py [--config RECIPE] [key.path=value ...]

The rows are those of task ``truthful-pair``. A tie is half a win for each side.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from pydantic import field_validator

from losses import BradleyTerryLoss
from train.dry_run.rehearsal import with_rehearsal
from train.finish.finish_run import finish_run
from train.loop.accelerator import make_accelerator
from train.loop.backbone import load_encoder
from train.loop.checkpoint import check_run_folder
from train.loop.trainer import Trainer
from train.objectives.reward import (
    PairSection,
    PairSupervision,
    RewardObjective,
    check_pairs,
)
from train.rows.rows import index_splits
from train.setup.command_line import command_line, launch_command, load_recipe
from train.setup.data import check_splits, read_splits
from train.setup.overlap import check_overlaps
from train.setup.recipe import DataSection, Recipe
from train.setup.run_identity import hash_files, run_identity
from train.setup.starting_adapter import with_adapter, with_shape_of_init

SCRIPT = Path(__file__)
WITHOUT_HUB = (
    "custos prep pairs --rows 8000 --val 150 --cal 240 --test 1200 --out data/pairs && "
    "accelerate launch -m train.bradley_terry --config embedded/pair_bradley_terry"
)


class PairDataSection(DataSection):
    """Pairs to train on and to select the adapter with; nothing to calibrate or report on."""

    @field_validator("cal", "test")
    @classmethod
    def _has_no_labels(cls, path: Path | None) -> None:
        if path is not None:
            raise ValueError(
                "a reward is given to one response and has no labels; "
                "compare rewards on pairs with python -m experiments paradigms"
            )


class BradleyTerryRecipe(Recipe):
    """Recipe of this script."""

    data: PairDataSection
    loss: PairSection = PairSection()


@command_line(WITHOUT_HUB)
@with_rehearsal(SCRIPT)
def main(argv: Sequence[str] | None = None) -> None:
    """Train a reward judge."""
    recipe = load_recipe(BradleyTerryRecipe, SCRIPT, argv)
    splits = read_splits(recipe.data)
    overlaps = check_overlaps(splits, recipe.data)
    recipe = with_shape_of_init(recipe)
    check_splits(splits, recipe.data)
    check_pairs(chain(splits.train, splits.val))
    hashes = hash_files(recipe.files)
    check_run_folder(recipe.run.output, run_identity(recipe, None, hashes))

    accelerator = make_accelerator(recipe.run)
    encoder = load_encoder(recipe, accelerator)
    rows = index_splits(splits, PairSupervision(encoder))

    objective = RewardObjective(BradleyTerryLoss(recipe.loss.margin))
    adapted = with_adapter(encoder.backbone, recipe)
    identity = run_identity(recipe, adapted.version, hashes)
    trainer = Trainer(recipe, adapted, rows, objective, accelerator, identity)
    trainer.fit()
    finish_run(trainer, splits, hashes, overlaps, SCRIPT, launch_command(SCRIPT, argv))


if __name__ == "__main__":
    main()
