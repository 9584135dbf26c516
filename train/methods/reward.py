"""Scalar rewards of single responses, trained on pairs (the Bradley-Terry paradigm)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field, field_validator
from torch import Tensor

from judging.errors import FieldError
from judging.models.devices import to_device
from judging.scoring.label_tree import LabelTree
from judging.scoring.prompts import Encoder
from judging.scoring.tree_batch import label_logprobs
from judging.tasks import get_task
from judging.types import JudgeRequest, LabelledExample
from losses import BradleyTerryLoss
from train.loop.objective import Measured, ModelRunner, Objective, share_right
from train.methods.base import LossMethod
from train.rows.rows import Row, Rows, Supervision
from train.setup.recipe import DataSection, Recipe, Section

REWARD = "truthful-reward"
FIRST, SECOND = "A", "B"


class PairSection(Section):
    """Pairwise logistic loss."""

    margin: float = Field(default=0.0, ge=0)
    """How much higher the chosen response should score."""


class PairDataSection(DataSection):
    """Pairs to train on and to select the adapter with; nothing to calibrate or report on."""

    @field_validator("cal", "test")
    @classmethod
    def _has_no_labels(cls, path: Path | None) -> None:
        if path is not None:
            raise ValueError(
                "a reward is given to one response and has no labels; "
                "measure rewards on pairs with custos eval"
            )


class RewardRecipe(Recipe):
    """Recipe of rewards."""

    data: PairDataSection
    loss: PairSection = PairSection()


class PairSupervision(Supervision):
    """Reads both responses of a pair, each alone, and learns which one people preferred."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self._tree = encoder.tree(get_task(REWARD).labels("plain"))

    def requests(self, example: LabelledExample) -> tuple[JudgeRequest, ...]:
        """Make one request of the reward task for each response."""
        return each_response(example)

    def target(self, example: LabelledExample) -> tuple[LabelTree, int]:
        """Build the reward task's tree, and the index of the pair's label among A, B and None."""
        task = get_task(example.task)
        return self._tree, task.labels(task.rubric(example)).index(task.target(example))


def each_response(example: LabelledExample) -> tuple[JudgeRequest, JudgeRequest]:
    """Split a pair into two requests for a reward."""
    shared = example.request().model_copy(update={"task": REWARD, "mode": "score"})
    first, second = (
        shared.model_copy(update={"responses": (response,)}) for response in example.responses
    )
    return first, second


def rewards(logits: Tensor, tree: LabelTree) -> Tensor:
    """Compute the log-odds of Good over Bad, ``[N]``, from logits at the tree's slots."""
    good, bad = label_logprobs(logits, tree).unbind(1)
    return good - bad


def pair_losses(
    loss: BradleyTerryLoss, first: Tensor, second: Tensor, labels: Sequence[str]
) -> Tensor:
    """Compute the loss of each pair, ``[rows]``, given the rewards of its two responses."""
    won = to_device(torch.tensor([label != SECOND for label in labels]), first.device)
    is_tie = [label not in (FIRST, SECOND) for label in labels]
    ties = to_device(torch.tensor(is_tie), first.device)
    chosen, rejected = torch.where(won, first, second), torch.where(won, second, first)
    losses: Tensor = loss(chosen, rejected, ties)
    return losses


@dataclass(frozen=True)
class RewardObjective(Objective):
    """Pairwise logistic loss; a step's loss is the mean over pairs, weighted by example."""

    loss: BradleyTerryLoss

    def loss_sum(self, outputs: Tensor, rows: Sequence[Row], step: int) -> Tensor:
        """Add up the weighted losses of pairs, given the logits of both responses of each."""
        first, second = rewards(outputs, rows[0].tree).view(-1, 2).unbind(1)
        weights = to_device(torch.tensor([row.example.weight for row in rows]), outputs.device)
        labels = [row.example.label for row in rows]
        return (pair_losses(self.loss, first, second, labels) * weights).sum()

    def measure(self, runner: ModelRunner, rows: Rows) -> Measured:
        """Measure the accuracy over decided pairs, and the mean pairwise loss without a margin.

        A pair is right where the preferred response has the higher reward; equal rewards are not.
        """
        labels = [example.label for example in rows.examples]
        scores = torch.tensor(np.array(runner.label_logprobs(rows)))
        first, second = (scores[..., 0] - scores[..., 1]).unbind(1)
        right = [
            (a > b if label == FIRST else b > a) if label in (FIRST, SECOND) else None
            for label, a, b in zip(labels, first.tolist(), second.tolist(), strict=True)
        ]
        nll = pair_losses(BradleyTerryLoss(), first, second, labels).mean().item()
        return Measured({"accuracy": share_right(right), "nll": nll}, right)

    def describe_target(self, row: Row, tokenizer: Any) -> str:
        """Say which response people preferred; no token is supervised."""
        return f"preferred: {row.example.label}"


class Reward(LossMethod):
    """Trains a judge that rewards the better response of a pair."""

    recipe_class = RewardRecipe
    script = "bradley_terry"
    without_hub = (
        "custos prep pairs --rows 8000 --val 150 --cal 240 --test 1200 --out data/pairs && "
        "accelerate launch -m train.bradley_terry --config embedded/pair_bradley_terry"
    )
    prompts = 2
    gives_labels = False

    def objective(self) -> Objective:
        """Choose the pairwise loss, of rows that are all pairs."""
        for example in chain(self.splits.train, self.splits.val):
            if len(example.responses) != 2:
                raise FieldError(
                    "responses", "a reward is trained on pairs: give two", f"row '{example.id}'"
                )
        return RewardObjective(BradleyTerryLoss(self.recipe.loss.margin))

    @staticmethod
    def supervision(encoder: Encoder) -> Supervision:
        """Choose both responses, each alone."""
        return PairSupervision(encoder)


METHOD = Reward
