"""Stage 1's objective: focal loss at the tokens of each row's label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from judging.errors import FieldError
from judging.tasks import get_task
from judging.types import LabelledExample
from losses import FocalLoss, class_weights
from train.objectives.base import Numbers, Objective
from train.rows.rows import Row
from train.setup.recipe import Section


class FocalSection(Section):
    """Focal loss (HiEval section 3.1); ``gamma`` 0 with weighting ``none`` is cross-entropy."""

    gamma: float = Field(default=1.0, ge=0)
    """Focusing exponent; 0 weights all tokens alike, whatever their probability."""
    t_max: float = Field(default=5.0, gt=0)
    """Largest class weight."""
    weighting: Literal["sqrt", "none"] = "sqrt"
    """Class weights: square root of the inverse frequency, or none."""


@dataclass(frozen=True)
class FocalObjective(Objective):
    """Focal loss at the scoring tokens of each row's label (HiEval section 3.1).

    A step's loss is the mean over its scoring tokens, each weighted by its example's ``weight``.
    """

    loss: FocalLoss
    classes: dict[tuple[tuple[str, ...], str], int]
    """A set of labels and one of them, to its index in the loss's class weights."""

    @classmethod
    def for_examples(
        cls, examples: Sequence[LabelledExample], gamma: float, t_max: float, weighting: str
    ) -> FocalObjective:
        """Make the objective with class weights from the training split's own counts.

        Rows are counted apart for every set of labels: two rubrics of one task may declare
        different labels, and Partial is not rare because most rows cannot have it.

        Args:
            examples: Training rows.
            gamma: Focusing exponent.
            t_max: Largest class weight.
            weighting: ``sqrt`` (square root of inverse frequency) or ``none``.

        Raises:
            FieldError: If a declared label has no training example; the message names it.
        """
        counts: dict[tuple[str, ...], Counter[str]] = {}
        for example in examples:
            task = get_task(example.task)
            labels = task.labels(task.rubric(example))
            counts.setdefault(labels, Counter())[task.target(example)] += 1
        pairs = [(labels, label) for labels in counts for label in labels]
        classes = {pair: index for index, pair in enumerate(pairs)}
        if weighting == "none":
            return cls(FocalLoss(torch.ones(len(classes)), gamma), classes)
        try:
            alpha = torch.cat(
                [
                    class_weights({label: n[label] for label in labels}, t_max)
                    for labels, n in counts.items()
                ]
            )
        except ValueError as error:
            raise FieldError(
                "loss.weighting", f"training split: {error}; add rows, or set it to none"
            ) from None
        return cls(FocalLoss(alpha, gamma), classes)

    def denominator(self, weights: Numbers, target_tokens: Numbers) -> float:
        """Return the weighted number of scoring tokens."""
        return float((weights * target_tokens).sum())

    def loss_sum(self, outputs: Tensor, rows: Sequence[Row], step: int) -> Tensor:
        """Return the weighted sum over scoring tokens; the step does not matter."""
        logits = outputs
        tokens = [
            (i, slot, token, self.classes[row.tree.labels, label], row.example.weight)
            for i, row in enumerate(rows)
            for label in [row.tree.labels[row.target]]
            for slot, token in row.tree.paths[row.target]
        ]
        index = torch.tensor([entry[:4] for entry in tokens]).to(logits.device, non_blocking=True)
        weights = torch.tensor([entry[4] for entry in tokens]).to(logits.device, non_blocking=True)
        row, slot, target, label = index.unbind(1)
        self.loss.to(logits.device)
        return (self.loss.per_token(logits[row, slot], target, label) * weights).sum()
