"""Direct preference optimisation among critiques that the judge draws itself (by TRL).

The judge that the run starts from draws several critiques of every pair. They are ranked by the
log-probability that its label tree gives the right label after each, in both orders of the pair;
the best and the worst are a preference. Rows need labels and no critiques. It runs in one process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field

from judging.errors import FieldError
from judging.files.kept_work import KeptFile, locked
from train.methods.own_critiques import CritiqueRun, OwnCritiqueRecipe, OwnCritiques
from train.methods.policy import Policy
from train.methods.preferences import (
    PREFERENCES_FILE,
    Drawing,
    DrawnPair,
    Preference,
    PreferenceCollator,
    as_columns,
    check_ids,
    read_preferences,
)
from train.setup.data import RunSplits
from train.setup.examples import Examples
from train.setup.recipe import Section
from train.tracking.parts import PARTS


class DpoSection(Section):
    """Direct preference optimisation (Rafailov et al., 2023)."""

    beta: float = Field(default=0.1, gt=0)
    """How strongly the judge is held to the one that it started from."""
    least_margin: float = Field(default=0.1, ge=0)
    """Least difference between the rewards of two critiques; pairs without one are left out."""
    preferences: Path | None = None
    """``preferences.jsonl`` of an earlier run over the same rows: its critiques are trained on, and
    none are drawn."""


class DpoRecipe(OwnCritiqueRecipe):
    """Recipe of DPO."""

    dpo: DpoSection = DpoSection()

    @property
    def files(self) -> dict[str, Path]:
        """Return every file it reads, preferences among them."""
        path = self.dpo.preferences
        return super().files | ({str(path): path} if path else {})


class Dpo(OwnCritiques):
    """Trains a judge to prefer critiques that lead to the right label."""

    recipe_class = DpoRecipe
    script = "critique_dpo"
    default_recipe = "embedded/pair_dpo"

    def __init__(self, recipe: DpoRecipe, splits: RunSplits) -> None:
        super().__init__(recipe, splits)
        check_ids(splits.train)
        self.preferences: list[Preference] = []

    def draw_items(self, policy: Policy, identity: Mapping[str, Any]) -> int:
        """Draw critiques of the rows, if the recipe names none; keep those that differ enough.

        Raises:
            FieldError: If no two do.
        """
        recipe, train = self.recipe, self.splits.train
        path = recipe.dpo.preferences
        if path is None:
            path = recipe.run.output / PREFERENCES_FILE
            of_drawing = drawing_identity(recipe, identity)
            drawing = Drawing(policy, recipe.critiques, recipe.run.seed, of_drawing)
            with locked(path), PARTS.measured("drawing"):
                drawing.fill(KeptFile(path, DrawnPair), train)
        least_margin = recipe.dpo.least_margin
        self.preferences = read_preferences(path, train, least_margin)
        if not self.preferences:
            raise FieldError("dpo.least_margin", f"{least_margin}: no two critiques differ so much")
        rows = Examples.write(pair.example for pair in self.preferences)
        self.splits = replace(self.splits, train=rows)
        return len(self.preferences)

    def trainer(self, run: CritiqueRun) -> Any:
        """Return TRL's trainer of preferences."""
        from datasets import Dataset
        from trl import DPOConfig, DPOTrainer

        run.tracker.note(f"{len(self.preferences)} rows with critiques that differ enough")
        policy, backbone = run.policy, run.policy.backbone
        return DPOTrainer(
            model=backbone.model,
            args=DPOConfig(
                **run.settings(),
                beta=self.recipe.dpo.beta,
                max_length=None,
                remove_unused_columns=False,
            ),
            data_collator=PreferenceCollator(policy.encoder),
            train_dataset=Dataset.from_list(
                [as_columns(self.preferences[i]) for i in run.items_left]
            ),
            # TRL takes a processor of pictures and text, or a tokenizer.
            processing_class=backbone.processor if backbone.reads_pictures else backbone.tokenizer,
            optimizers=run.optimizers(),
        )


def drawing_identity(recipe: DpoRecipe, identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a run's identity that decides which critiques a row gets."""
    names = ("backbone", "adapter.", "critiques.", "run.", f"sha256.{recipe.adapter.init}")
    return {name: value for name, value in identity.items() if name.startswith(names)}


METHOD = Dpo
