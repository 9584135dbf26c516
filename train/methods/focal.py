"""Focal loss at the tokens of each row's label: HiEval's first stage, and most judges of labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from judging.errors import FieldError
from judging.models.devices import to_device
from judging.tasks import get_task
from judging.types import LabelledExample
from losses import FocalLoss, class_weights
from train.loop.objective import Numbers, Objective
from train.methods.base import LossMethod
from train.rows.rows import Row
from train.setup.recipe import Recipe, Section
from train.setup.run_log import RUN_LOG


class FocalSection(Section):
    """Focal loss (HiEval section 3.1); ``gamma`` 0 with weighting ``none`` is cross-entropy."""

    gamma: float = Field(default=1.0, ge=0)
    """Focusing exponent; 0 weights all tokens alike, whatever their probability."""
    t_max: float = Field(default=5.0, gt=0)
    """Largest class weight."""
    weighting: Literal["sqrt", "none"] = "sqrt"
    """Class weights: square root of the inverse frequency, or none."""


class FocalRecipe(Recipe):
    """Recipe of focal loss."""

    loss: FocalSection = FocalSection()


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
        different labels, and Partial is not rare because most rows cannot have it. A label that
        does not occur is left out of the weights, and the log names it with its rubrics.
        """
        counts: dict[tuple[str, ...], Counter[str]] = {}
        rubrics: dict[tuple[str, ...], dict[str, None]] = {}
        for example in examples:
            task = get_task(example.task)
            labels = task.labels(task.rubric(example))
            counts.setdefault(labels, Counter())[task.target(example)] += 1
            rubrics.setdefault(labels, {})[task.full_rubric(example)] = None
        pairs = [(labels, label) for labels, n in counts.items() for label in labels if n[label]]
        classes = {pair: index for index, pair in enumerate(pairs)}
        if weighting == "none":
            return cls(FocalLoss(torch.ones(len(classes)), gamma), classes)
        if len(names := {label for _, label in pairs}) == 1:
            raise FieldError(
                "data.train",
                f"all rows are labelled '{names.pop()}', so a judge would learn to answer nothing "
                "else; add rows with another label",
            )
        for labels, n in counts.items():
            if absent := [f"'{label}'" for label in labels if not n[label]]:
                RUN_LOG.write(
                    f"no training row of {', '.join(rubrics[labels])} is labelled "
                    f"{' or '.join(absent)}: left out of the class weights"
                )
        alpha = torch.cat(
            [
                class_weights([n[label] for label in labels if n[label]], t_max)
                for labels, n in counts.items()
            ]
        )
        return cls(FocalLoss(alpha, gamma), classes)

    def denominator(self, weights: Numbers, target_tokens: Numbers) -> float:
        """Count the weighted number of scoring tokens."""
        return float((weights * target_tokens).sum())

    def loss_sum(self, outputs: Tensor, rows: Sequence[Row], step: int) -> Tensor:
        """Add up the weighted losses of scoring tokens; the step does not matter."""
        logits = outputs
        tokens = [
            (i, slot, token, self.classes[row.tree.labels, label], row.example.weight)
            for i, row in enumerate(rows)
            for label in [row.tree.labels[row.target]]
            for slot, token in row.tree.paths[row.target]
        ]
        index = to_device(torch.tensor([entry[:4] for entry in tokens]), logits.device)
        weights = to_device(torch.tensor([entry[4] for entry in tokens]), logits.device)
        row, slot, target, label = index.unbind(1)
        self.loss.to(logits.device)
        losses: Tensor = self.loss(logits[row, slot], target, label)
        return (losses * weights).sum()


class Focal(LossMethod):
    """Trains a judge that gives labels at once."""

    recipe_class = FocalRecipe
    script = "hieval_stage1"
    without_hub = (
        "custos prep synthetic --worlds open --rows 2800 --val 100 --cal 200 --test 300 "
        "--out runs/demo/data && "
        "accelerate launch -m train.hieval_stage1 --config embedded/demo"
    )

    def objective(self) -> Objective:
        """Choose focal loss with the class weights of the training rows."""
        loss, train = self.recipe.loss, self.splits.train
        return FocalObjective.for_examples(train, loss.gamma, loss.t_max, loss.weighting)


METHOD = Focal
