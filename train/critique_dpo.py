"""Train a judge to prefer critiques that lead to the right label (DPO, by TRL).

python train/critique_dpo.py [--config RECIPE] [key.path=value ...]

The judge that the run starts from draws several critiques of every pair. They are ranked by the
log-probability that its label tree gives the right label after each, in both orders of the pair;
the best and the worst are a preference. Rows need labels and no critiques. It runs in one process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from judging.errors import FieldError
from train.critiques.preferences import (
    PreferenceCollator,
    as_columns,
    draw_preferences,
    read_preferences,
    write_preferences,
)
from train.critiques.recipe import CritiqueRecipe
from train.critiques.run import CritiqueRun, CritiqueSupervision
from train.critiques.start import load_policy, read_rows
from train.dry_run.parts import PARTS
from train.dry_run.rehearsal import with_rehearsal
from train.finish.finish_run import finish_run
from train.rows.examples import Examples
from train.rows.rows import index_splits
from train.setup.command_line import command_line, launch_command, load_recipe
from train.setup.recipe import Section
from train.setup.run_identity import hash_files
from train.setup.starting_adapter import with_shape_of_init

SCRIPT = Path(__file__)
DEFAULT_RECIPE = "embedded/pair_dpo"
PREPARE = "custos prep pairs --rows 2000 --pictures 0 --seed 7 --out data/new-pairs"


class DpoSection(Section):
    """Direct preference optimisation (Rafailov et al., 2023)."""

    beta: float = Field(default=0.1, gt=0)
    """How strongly the judge is held to the one that it started from."""
    least_margin: float = Field(default=0.1, ge=0)
    """Least difference between the rewards of two critiques; pairs without one are left out."""
    preferences: Path | None = None
    """``preferences.jsonl`` of an earlier run over the same rows: its critiques are trained on, and
    none are drawn."""


class CritiqueDpoRecipe(CritiqueRecipe):
    """Recipe of this script."""

    dpo: DpoSection = DpoSection()

    @property
    def files(self) -> dict[str, Path]:
        """Return every file it reads, preferences among them."""
        path = self.dpo.preferences
        return super().files | ({str(path): path} if path else {})


@command_line(PREPARE)
@with_rehearsal(SCRIPT, DEFAULT_RECIPE)
def main(argv: Sequence[str] | None = None) -> None:
    """Train a judge on preferences among its own critiques, calibrate it, and report."""
    recipe = load_recipe(CritiqueDpoRecipe, SCRIPT, argv, DEFAULT_RECIPE)
    checked = read_rows(recipe, pictures=True)
    splits = checked.splits
    recipe = with_shape_of_init(recipe)
    hashes = hash_files(recipe.files)

    path, least_margin = recipe.dpo.preferences, recipe.dpo.least_margin
    preferences = read_preferences(path, splits.train, least_margin) if path else []
    policy = load_policy(recipe)
    if not path:
        with PARTS.measured("drawing"):
            preferences = draw_preferences(
                policy, splits.train, recipe.critiques, least_margin, recipe.run.seed
            )
    if not preferences:
        raise FieldError("dpo.least_margin", f"{least_margin}: no two critiques differ so much")
    write_preferences(recipe.run.output, preferences)
    splits = replace(splits, train=Examples.write(pair.example for pair in preferences))
    rows = index_splits(splits, CritiqueSupervision(policy.encoder))

    from datasets import Dataset
    from trl import DPOConfig, DPOTrainer

    batch_size = recipe.optim.batch_size
    run = CritiqueRun(recipe, policy, rows, len(preferences))
    run.tracker.note(f"{len(preferences)} rows with critiques that differ enough")
    trainer = DPOTrainer(
        model=policy.backbone.model,
        args=DPOConfig(
            **run.settings(batch_size),
            beta=recipe.dpo.beta,
            max_length=None,
            remove_unused_columns=False,
        ),
        data_collator=PreferenceCollator(policy.encoder),
        train_dataset=Dataset.from_list([as_columns(pair) for pair in preferences]),
        processing_class=policy.backbone.processor,
        optimizers=run.optimizers(),
    )
    run.fit(trainer)
    del trainer
    finish_run(run, splits, hashes, checked.overlaps, SCRIPT, launch_command(SCRIPT, argv))


if __name__ == "__main__":
    main()
