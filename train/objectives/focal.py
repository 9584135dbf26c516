"""From logits at tree slots to a loss: what each stage minimises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from judging.errors import CustosError
from losses import FocalLoss, class_weights
from train.loop.batches import Row


class Objective(Protocol):
    """Sum of losses of a micro-batch, and the weight it is to be divided by."""

    def denominator(self, rows: Sequence[Row]) -> float:
        """Weight of these rows; a step's losses are divided by the total over the step."""
        ...

    def inputs(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """What the model needs for these rows beside their prompts."""
        return {}

    def loss_sum(self, outputs: Tensor, rows: Sequence[Row], step: int) -> Tensor:
        """Sum of losses of a step's rows, a scalar, given what the model put out.

        That is ``[prompts, slots, vocabulary]`` logits unless the model was asked otherwise.
        """
        ...


@dataclass(frozen=True)
class FocalObjective(Objective):
    """Focal loss at the scoring tokens of each row's label (HiEval stage 1).

    A step's loss is the mean over its scoring tokens, each weighted by its example's ``weight``.
    """

    loss: FocalLoss
    classes: dict[str, int]

    @classmethod
    def for_rows(
        cls, rows: Sequence[Row], gamma: float, t_max: float, weighting: str
    ) -> FocalObjective:
        """Class weights from the training split's own counts.

        Raises:
            CustosError: If a declared label has no training example (named).
        """
        declared = dict.fromkeys(label for row in rows for label in row.tree.labels)
        counts = Counter(row.tree.labels[row.target] for row in rows)
        if weighting == "none":
            alpha = torch.ones(len(declared))
        else:
            try:
                alpha = class_weights({label: counts[label] for label in declared}, t_max)
            except ValueError as error:
                raise CustosError(f"training split: {error}") from None
        return cls(FocalLoss(alpha, gamma), {label: i for i, label in enumerate(declared)})

    def denominator(self, rows: Sequence[Row]) -> float:
        """Weighted number of scoring tokens."""
        return sum(row.example.weight * len(row.tree.paths[row.target]) for row in rows)

    def loss_sum(self, outputs: Tensor, rows: Sequence[Row], step: int) -> Tensor:
        """Weighted sum over scoring tokens; the step does not matter."""
        logits = outputs
        tokens = [
            (i, slot, token, self.classes[row.tree.labels[row.target]], row.example.weight)
            for i, row in enumerate(rows)
            for slot, token in row.tree.paths[row.target]
        ]
        index = torch.tensor([entry[:4] for entry in tokens]).to(logits.device, non_blocking=True)
        weights = torch.tensor([entry[4] for entry in tokens]).to(logits.device, non_blocking=True)
        row, slot, target, label = index.unbind(1)
        self.loss.to(logits.device)
        return (self.loss.per_token(logits[row, slot], target, label) * weights).sum()
