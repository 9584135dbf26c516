"""Train a judge to prefer critiques that lead to the right label (DPO, by TRL).

python train/critique_dpo.py [--config RECIPE] [key.path=value ...]

The judge that the run starts from draws several critiques of every pair. They are ranked by the
log-probability that its label tree gives the right label after each, in both orders of the pair;
the best and the worst are a preference. Rows need labels and no critiques. It runs in one process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field

from judging.errors import FieldError
from judging.files.kept_work import KeptFile, locked
from train.critiques.preferences import (
    PREFERENCES_FILE,
    Drawing,
    DrawnPair,
    Preference,
    PreferenceCollator,
    as_columns,
    check_ids,
    read_preferences,
)
from train.critiques.recipe import CritiqueRecipe
from train.critiques.run import CritiqueRun, CritiqueSupervision
from train.critiques.start import load_policy, read_rows
from train.dry_run.parts import PARTS
from train.dry_run.rehearsal import with_rehearsal
from train.finish.finish_run import finish_run
from train.loop.checkpoint import check_run_folder
from train.rows.examples import Examples
from train.rows.rows import index_splits
from train.setup.command_line import command_line, launch_command, load_recipe
from train.setup.recipe import Section
from train.setup.run_identity import hash_files, run_identity
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
    splits, overlaps = read_rows(recipe, pictures=True)
    check_ids(splits.train)
    recipe = with_shape_of_init(recipe)
    hashes = hash_files(recipe.files)
    check_run_folder(recipe.run.output, run_identity(recipe, None, hashes))

    policy = load_policy(recipe)
    identity = run_identity(recipe, policy.backbone.version, hashes)
    path = recipe.dpo.preferences
    if path is None:
        path = recipe.run.output / PREFERENCES_FILE
        drawing = Drawing(
            policy, recipe.critiques, recipe.run.seed, drawing_identity(recipe, identity)
        )
        with locked(path), PARTS.measured("drawing"):
            drawing.fill(KeptFile(path, DrawnPair), splits.train)
    least_margin = recipe.dpo.least_margin
    preferences = read_preferences(path, splits.train, least_margin)
    if not preferences:
        raise FieldError("dpo.least_margin", f"{least_margin}: no two critiques differ so much")
    splits = replace(splits, train=Examples.write(pair.example for pair in preferences))
    rows = index_splits(splits, CritiqueSupervision(policy.encoder))

    run = CritiqueRun(recipe, policy, rows, len(preferences), identity)
    run.tracker.note(f"{len(preferences)} rows with critiques that differ enough")
    if run.items_left:
        train(run, preferences)
    finish_run(run, splits, hashes, overlaps, SCRIPT, launch_command(SCRIPT, argv))


def drawing_identity(recipe: CritiqueDpoRecipe, identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a run's identity that decides which critiques a row gets."""
    names = ("backbone", "adapter.", "critiques.", "run.", f"sha256.{recipe.adapter.init}")
    return {name: value for name, value in identity.items() if name.startswith(names)}


def train(run: CritiqueRun, preferences: Sequence[Preference]) -> None:
    """Train on the preferences of the steps that are left."""
    from datasets import Dataset
    from trl import DPOConfig, DPOTrainer

    recipe, policy = run.recipe, run.policy
    assert isinstance(recipe, CritiqueDpoRecipe)
    trainer = DPOTrainer(
        model=policy.backbone.model,
        args=DPOConfig(
            **run.settings(),
            beta=recipe.dpo.beta,
            max_length=None,
            remove_unused_columns=False,
        ),
        data_collator=PreferenceCollator(policy.encoder),
        train_dataset=Dataset.from_list([as_columns(preferences[i]) for i in run.items_left]),
        # TRL takes a processor of pictures and text, or a tokenizer.
        processing_class=(
            policy.backbone.processor
            if policy.backbone.reads_pictures
            else policy.backbone.tokenizer
        ),
        optimizers=run.optimizers(),
    )
    run.fit(trainer)


if __name__ == "__main__":
    main()
