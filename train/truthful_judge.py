"""Train a judge of pairs that writes a critique before its label (TruthfulJudge, section 5).

accelerate launch train/truthful_judge.py [--config RECIPE] [key.path=value ...]

The task of the rows decides the paradigm: ``truthful-pair`` (critique, label, confidence),
``truthful-pure-label`` or ``truthful-critique-score``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Literal

from train.dry_run.rehearsal import with_rehearsal
from train.finish.finish_run import finish_run
from train.loop.accelerator import make_accelerator
from train.loop.backbone import load_encoder
from train.loop.checkpoint import check_run_folder
from train.loop.trainer import Trainer
from train.objectives.critique_text import TextObjective, TextSupervision, check_critiques
from train.rows.rows import index_splits
from train.setup.command_line import command_line, launch_command, load_recipe
from train.setup.data import check_splits, read_splits, under_task
from train.setup.overlap import check_overlaps
from train.setup.recipe import Recipe
from train.setup.run_identity import hash_files, run_identity
from train.setup.starting_adapter import with_adapter, with_shape_of_init

Task = Literal["truthful-pair", "truthful-pure-label"]

SCRIPT = Path(__file__)
WITHOUT_HUB = (
    "custos prep pairs --rows 8000 --val 150 --cal 240 --test 1200 --out data/pairs && "
    "accelerate launch -m train.truthful_judge --config embedded/pair"
)


class TruthfulRecipe(Recipe):
    """Recipe of this script."""

    task: Task | None = None
    """Train every pair under this task, whatever task its row names."""


@command_line(WITHOUT_HUB)
@with_rehearsal(SCRIPT)
def main(argv: Sequence[str] | None = None) -> None:
    """Train a judge that answers in text, calibrate it, and report on its test split."""
    recipe = load_recipe(TruthfulRecipe, SCRIPT, argv)
    splits = under_task(read_splits(recipe.data), recipe.task)
    overlaps = check_overlaps(splits, recipe.data)
    recipe = with_shape_of_init(recipe)
    check_splits(splits, recipe.data)
    check_critiques(chain(splits.train, splits.val))
    hashes = hash_files(recipe.files)
    check_run_folder(recipe.run.output, run_identity(recipe, None, hashes))

    accelerator = make_accelerator(recipe.run)
    encoder = load_encoder(recipe, accelerator)
    with_labels = TextSupervision(encoder, with_labels=True)
    rows = index_splits(splits, TextSupervision(encoder), with_labels)

    objective = TextObjective()
    adapted = with_adapter(encoder.backbone, recipe)
    identity = run_identity(recipe, adapted.version, hashes)
    trainer = Trainer(recipe, adapted, rows, objective, accelerator, identity)
    trainer.fit()
    finish_run(trainer, splits, hashes, overlaps, SCRIPT, launch_command(SCRIPT, argv))


if __name__ == "__main__":
    main()
