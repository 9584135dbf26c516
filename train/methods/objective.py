"""Objectives: what a stage minimises, and what its validations measure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from numpy.typing import NDArray
from torch import Tensor

from judging.scoring.tree_batch import TreeModel
from train.loop.model_runner import Measured, ModelRunner, label_scores
from train.rows.rows import Row, Rows

Numbers = NDArray[Any]
"""One number for each row."""


class Objective(ABC):
    """Loss of a stage.

    A step's loss is the sum of :meth:`loss_sum` over all micro-batches of the step on all
    processes, divided by the sum of :meth:`denominator`.
    """

    model_class: ClassVar[type[TreeModel]] = TreeModel
    """Module to wrap the backbone in; its outputs are what :meth:`loss_sum` is given."""

    @abstractmethod
    def denominator(self, weights: Numbers, target_tokens: Numbers) -> float:
        """Return the weight of rows; a step's losses are divided by the total over the step.

        Args:
            weights: How much each row counts.
            target_tokens: Tokens of each row's target label.
        """

    def inputs(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """Return the model's inputs for these rows beside their prompts."""
        return {}

    @abstractmethod
    def loss_sum(self, outputs: Tensor, rows: Sequence[Row], step: int) -> Tensor:
        """Return the sum of losses of rows of one micro-batch, a scalar.

        Args:
            outputs: Outputs of the model: ``[prompts, slots, vocabulary]`` logits unless
                :attr:`model_class` says otherwise.
            rows: The rows.
            step: Optimizer steps done before this one.
        """

    def measure(self, runner: ModelRunner, rows: Rows) -> Measured:
        """Return what a validation reports of rows."""
        return label_scores(runner, rows)

    def describe_target(self, row: Row, tokenizer: Any) -> str:
        """Return a line, for people, on what a row is trained towards."""
        tokens = [tokenizer.decode([token]) for _, token in row.tree.paths[row.target]]
        return f"supervised tokens: {tokens!r}"
