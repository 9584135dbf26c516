"""Train HiEval-QS, the quick-score judge: LoRA and square-root class-balanced focal loss.

accelerate launch train/hieval_stage1.py [--config RECIPE] [key.path=value ...]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from train.dry_run.rehearsal import with_rehearsal
from train.finish.finish_run import finish_run
from train.loop.accelerator import make_accelerator
from train.loop.backbone import load_encoder
from train.loop.checkpoint import check_run_folder
from train.loop.trainer import Trainer
from train.objectives.focal import FocalObjective, FocalSection
from train.rows.rows import index_splits
from train.rows.supervision import LabelSupervision
from train.setup.command_line import command_line, launch_command, load_recipe
from train.setup.data import check_splits, read_splits
from train.setup.overlap import check_overlaps
from train.setup.recipe import Recipe
from train.setup.run_identity import hash_files, run_identity
from train.setup.starting_adapter import with_adapter, with_shape_of_init

SCRIPT = Path(__file__)
WITHOUT_HUB = (
    "custos prep synthetic --worlds open --rows 2800 --val 100 --cal 200 --test 300 "
    "--out runs/demo/data && "
    "accelerate launch -m train.hieval_stage1 --config embedded/demo"
)


class Stage1Recipe(Recipe):
    """Recipe of this script."""

    loss: FocalSection = FocalSection()


@command_line(WITHOUT_HUB)
@with_rehearsal(SCRIPT)
def main(argv: Sequence[str] | None = None) -> None:
    """Train a quick-score judge, calibrate it, and report on its test split."""
    recipe = load_recipe(Stage1Recipe, SCRIPT, argv)
    splits = read_splits(recipe.data)
    overlaps = check_overlaps(splits, recipe.data)
    recipe = with_shape_of_init(recipe)
    check_splits(splits, recipe.data)
    loss = recipe.loss
    objective = FocalObjective.for_examples(splits.train, loss.gamma, loss.t_max, loss.weighting)
    hashes = hash_files(recipe.files)
    check_run_folder(recipe.run.output, run_identity(recipe, None, hashes))

    accelerator = make_accelerator(recipe.run)
    encoder = load_encoder(recipe, accelerator)
    rows = index_splits(splits, LabelSupervision(encoder))

    adapted = with_adapter(encoder.backbone, recipe)
    identity = run_identity(recipe, adapted.version, hashes)
    trainer = Trainer(recipe, adapted, rows, objective, accelerator, identity)
    trainer.fit()
    finish_run(trainer, splits, hashes, overlaps, SCRIPT, launch_command(SCRIPT, argv))


if __name__ == "__main__":
    main()
