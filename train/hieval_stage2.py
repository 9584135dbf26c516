"""Train HiEval-EA, the error-analysis judge: replay and contrastive unlikelihood.

accelerate launch train/hieval_stage2.py [--config RECIPE] [key.path=value ...]

Training starts from the stage-1 adapter that ``adapter.init`` names.
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
from train.objectives.joint import JointObjective, JointSection
from train.rows.rows import index_splits
from train.rows.supervision import LabelSupervision
from train.setup.command_line import command_line, launch_command, load_recipe
from train.setup.data import check_splits, read_splits
from train.setup.overlap import check_overlaps
from train.setup.recipe import Recipe, local_files
from train.setup.replay import ReplaySection, with_replay
from train.setup.run_identity import hash_files, run_identity
from train.setup.starting_adapter import with_adapter, with_shape_of_init

SCRIPT = Path(__file__)
WITHOUT_HUB = (
    "custos prep charts --out runs/demo/charts --rows 260 --val 40 --cal 0 --test 0 && "
    "custos prep synthetic --worlds open --rows 2800 --out runs/demo/data && "
    "accelerate launch -m train.hieval_stage2 --config embedded/error_analysis/try"
)


class Stage2Recipe(Recipe):
    """Recipe of this script."""

    loss: JointSection = JointSection()
    replay: ReplaySection = ReplaySection()

    @property
    def files(self) -> dict[str, Path]:
        """Return every file it reads, replayed ones included, by the name the recipe gives it."""
        return super().files | local_files((*self.replay.train, self.replay.val))


@command_line(WITHOUT_HUB)
@with_rehearsal(SCRIPT)
def main(argv: Sequence[str] | None = None) -> None:
    """Train an error-analysis judge, calibrate it, and report on its test split."""
    recipe = load_recipe(Stage2Recipe, SCRIPT, argv)
    splits = read_splits(recipe.data)
    splits = with_replay(splits, recipe.replay, recipe.run.seed, recipe.data.exclude_answerer)
    overlaps = check_overlaps(splits, recipe.data)
    recipe = with_shape_of_init(recipe)
    check_splits(splits, recipe.data)
    hashes = hash_files(recipe.files)
    check_run_folder(recipe.run.output, run_identity(recipe, None, hashes))

    accelerator = make_accelerator(recipe.run)
    encoder = load_encoder(recipe, accelerator)
    rows = index_splits(splits, LabelSupervision(encoder))

    loss = recipe.loss
    objective = JointObjective(loss.unlikelihood, loss.negatives, loss.span, recipe.run.seed)
    adapted = with_adapter(encoder.backbone, recipe)
    identity = run_identity(recipe, adapted.version, hashes)
    trainer = Trainer(recipe, adapted, rows, objective, accelerator, identity)
    trainer.fit()
    finish_run(trainer, splits, hashes, overlaps, SCRIPT, launch_command(SCRIPT, argv))


if __name__ == "__main__":
    main()
