"""Scalar rewards trained on pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from judging.scoring.label_tree import LabelTree
from judging.scoring.prompts import Encoder
from judging.scoring.tree_batch import label_logprobs
from judging.tasks import JudgeTask, get_task
from judging.types import JudgeRequest, LabelledExample
from losses import BradleyTerryLoss
from train.loop.batches import Row, Rows
from train.loop.trainer import Trainer
from train.objectives.focal import Objective

REWARD = "truthful-reward"
FIRST, SECOND = "A", "B"


def each_response(example: LabelledExample) -> tuple[JudgeRequest, JudgeRequest]:
    """The two responses of a pair, each to be rewarded alone."""
    shared = example.request().model_copy(update={"task": REWARD, "mode": "score"})
    first, second = (
        shared.model_copy(update={"responses": (response,)}) for response in example.responses
    )
    return first, second


class RewardLayout:
    """The reward task's tree; the target is the pair's label among A, B and None."""

    def __init__(self) -> None:
        self._tree: LabelTree | None = None

    def __call__(
        self, task: JudgeTask, example: LabelledExample, encoder: Encoder
    ) -> tuple[LabelTree, int]:
        """Tree of one response, and the index of what people preferred."""
        task.check(example)
        preference = task.labels(task.rubric(example)).index(task.target(example))
        if self._tree is None:
            self._tree = encoder.tree(get_task(REWARD).labels("plain"))
        return self._tree, preference


def rewards(logits: Tensor, tree: LabelTree) -> Tensor:
    """Log-odds of Good over Bad, ``[N]``, from logits at the tree's slots."""
    good, bad = label_logprobs(logits, tree).unbind(1)
    return good - bad


def pair_losses(
    loss: BradleyTerryLoss, first: Tensor, second: Tensor, rows: Sequence[Row]
) -> Tensor:
    """Loss of each pair, ``[rows]``, given the rewards of its first and second response."""
    labels = [row.example.label for row in rows]
    won = torch.tensor([label != SECOND for label in labels], device=first.device)
    ties = torch.tensor([label not in (FIRST, SECOND) for label in labels], device=first.device)
    chosen, rejected = torch.where(won, first, second), torch.where(won, second, first)
    return loss.per_pair(chosen, rejected, ties)


@dataclass(frozen=True)
class RewardObjective(Objective):
    """Pairwise logistic loss; a step's loss is the mean over pairs, weighted by example."""

    loss: BradleyTerryLoss

    def denominator(self, rows: Sequence[Row]) -> float:
        """Weighted number of pairs."""
        return sum(row.example.weight for row in rows)

    def loss_sum(self, outputs: Tensor, rows: Sequence[Row], step: int) -> Tensor:
        """Weighted sum over pairs, given the logits of both responses of each, in order."""
        first, second = rewards(outputs, rows[0].tree).view(-1, 2).unbind(1)
        weights = torch.tensor([row.example.weight for row in rows], device=outputs.device)
        return (pair_losses(self.loss, first, second, rows) * weights).sum()


class RewardTrainer(Trainer):
    """Watches how often the preferred response gets the higher reward."""

    def describe_target(self, row: Row) -> str:
        """Which response people preferred; no token is supervised."""
        return f"preferred: {row.example.label}"

    def measure(self, rows: Rows) -> dict[str, float]:
        """Accuracy over decided pairs, and the mean pairwise loss."""
        scores = torch.tensor(np.array(self.score(rows)))
        first, second = (scores[..., 0] - scores[..., 1]).unbind(1)
        right = [
            (a > b) == (row.example.label == FIRST)
            for row, a, b in zip(rows.rows, first.tolist(), second.tolist(), strict=True)
            if row.example.label in (FIRST, SECOND)
        ]
        return {
            "accuracy": float(np.mean(right)) if right else float("nan"),
            "nll": pair_losses(BradleyTerryLoss(), first, second, rows.rows).mean().item(),
        }
