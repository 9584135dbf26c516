"""Train HiEval-EA, the error-analysis judge: replay and contrastive unlikelihood.

accelerate launch train/hieval_stage2.py [--config recipes/hieval_stage2.yaml] [key.path=value ...]

Starts from the stage-1 adapter named by ``adapter.init``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from train.objectives.joint import JointObjective, Negatives, Span
from train.setup.data import read_split
from train.setup.recipe import Recipe, Section
from train.setup.replay import ReplaySection, replay_sample
from train.stage import Splits, run_stage, stage_main

EMBEDDED = (
    "custos prep charts --out runs/demo/charts --rows 260 --val 40 --cal 0 --test 0 && "
    "custos prep synthetic --worlds open --rows 7000 --out runs/demo/data && "
    "accelerate launch train/hieval_stage2.py --config recipes/embedded/demo_ea.yaml"
)


class JointSection(Section):
    """``L_MLE + lambda * 1[error] * L_UL`` (HiEval section 3.2)."""

    unlikelihood: float = Field(default=0.3, ge=0)
    """The paper's lambda; 0 leaves the likelihood alone."""
    negatives: Negatives = "sampled"
    """``sampled``: one other error type at random (the paper's); ``hardest``: the likeliest other;
    ``all``: every other, weighted by the posterior."""
    span: Span = "whole"
    """``whole``: mean over the whole unwanted label (the paper's); ``suffix``: over the tokens in
    which it differs from the wanted one."""


class Stage2Recipe(Recipe):
    """Recipe of this script."""

    loss: JointSection = JointSection()
    replay: ReplaySection = ReplaySection()

    @property
    def files(self) -> dict[str, Path]:
        """Return every file it reads, replayed ones included, by the name the recipe gives it."""
        replayed = (*self.replay.train, self.replay.val)
        return super().files | {str(path): path for path in replayed if path}


def train(recipe: Stage2Recipe, command: str) -> None:
    """Train an error-analysis judge."""
    loss, seed = recipe.loss, recipe.run.seed
    run_stage(
        recipe,
        command,
        Path(__file__),
        lambda rows: JointObjective(loss.unlikelihood, loss.negatives, loss.span, seed),
        lambda splits: with_replay(splits, recipe.replay, seed, recipe.data.exclude_answerer),
    )


def with_replay(
    splits: Splits, replay: ReplaySection, seed: int, exclude_answerer: str | None = None
) -> Splits:
    """Add sampled earlier rows to the training split and the earlier validation as a watch."""
    splits = dict(splits)
    if replay.train:
        earlier = [
            row
            for path in replay.train
            for row in read_split(path, exclude_answerer=exclude_answerer)
        ]
        splits["train"] = splits["train"] + replay_sample(
            earlier, len(splits["train"]), replay.rho, replay.of, seed
        )
    if replay.val:
        splits["watch:stage1"] = read_split(replay.val, replay.val_limit, exclude_answerer)
    return splits


def main(argv: Sequence[str] | None = None) -> None:
    """Command line."""
    stage_main(Stage2Recipe, train, Path(__file__), argv, EMBEDDED)


if __name__ == "__main__":
    main()
