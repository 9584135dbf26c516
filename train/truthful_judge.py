"""Train a judge of pairs that writes a critique before its label (TruthfulJudge, section 5).

accelerate launch train/truthful_judge.py [--config RECIPE] [key.path=value ...]

The task of the rows decides the paradigm: ``truthful-pair`` (critique, label, confidence),
``truthful-pure-label`` or ``truthful-critique-score``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from train.loop.batches import Rows
from train.objectives.critique_text import TextObjective, TextTrainer, text_layout
from train.setup.recipe import Recipe
from train.stage import Splits, run_stage, stage_main

Task = Literal["truthful-pair", "truthful-pure-label"]

EMBEDDED = (
    "custos prep pairs --rows 8000 --val 150 --cal 240 --test 1200 --out data/pairs && "
    "accelerate launch train/truthful_judge.py --config recipes/embedded/pair.yaml"
)


class TruthfulRecipe(Recipe):
    """Recipe of this script."""

    task: Task | None = None
    """Train every pair under this task, whatever task its row names."""


def train(recipe: TruthfulRecipe, command: str) -> None:
    """Train a judge that answers in text."""
    run_stage(
        recipe,
        command,
        Path(__file__),
        lambda rows: TextObjective(),
        prepare=lambda splits: under_task(splits, recipe.task),
        encode=lambda examples, encoder: Rows(examples, encoder, text_layout),
        trainer_class=TextTrainer,
    )


def under_task(splits: Splits, task: Task | None) -> Splits:
    """The same pairs under another task; one without critiques is judged without them."""
    if task is None:
        return splits
    change = {"task": task} | ({"mode": "score"} if task == "truthful-pure-label" else {})
    return {name: [row.model_copy(update=change) for row in rows] for name, rows in splits.items()}


def main(argv: Sequence[str] | None = None) -> None:
    """Command line."""
    stage_main(TruthfulRecipe, train, Path(__file__), argv, EMBEDDED)


if __name__ == "__main__":
    main()
