"""What a stage minimises, and the model that runs on its rows, on all processes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from numpy.typing import NDArray
from torch import Tensor

from judging.models.devices import to_device
from judging.scoring.tree_batch import Prefix, TreeBatch, TreeModel, label_logprobs
from losses import projected_token_logprobs
from train.loop.batches import Loader, scoring_batches
from train.loop.sharding import is_sharded
from train.rows.rows import Batch, Row, Rows


class ModelRunner:
    """The model of a run with what it takes to call it."""

    def __init__(
        self, model: Any, accelerator: Accelerator, loader: Loader, token_budget: int
    ) -> None:
        self.model, self.accelerator = model, accelerator
        self.loader, self.token_budget = loader, token_budget

    def outputs(
        self,
        batch: Batch,
        inputs: Mapping[str, Tensor],
        model: Any = None,
        prefix: Prefix | None = None,
    ) -> Tensor:
        """Run one forward pass over rows of one rubric."""
        device = self.accelerator.device
        with self.accelerator.autocast():
            outputs: Tensor = (model or self.model)(
                batch.layout.to(device),
                prefix,
                **{name: to_device(tensor, device) for name, tensor in inputs.items()},
            )
        return outputs

    def label_logprobs(self, rows: Rows) -> list[NDArray[np.float64]]:
        """Compute the label log-probabilities of every row, in order.

        Each is ``[labels]``, or ``[prompts, labels]`` for rows that the model reads as several
        prompts.
        """
        scores_by_row: list[tuple[int, Any]] = []
        for batch, outputs in self.passes(rows):
            row = batch.rows[0]
            scores = label_logprobs(outputs, row.tree).double()
            if len(row.requests) > 1:
                scores = scores.view(len(batch.rows), len(row.requests), -1)
            scores_by_row += zip(batch.indices, scores.tolist(), strict=True)
        return [np.array(scores) for _, scores in sorted(gather_object(scores_by_row))]

    # Not in inference mode: weights that are put together in it could not be trained afterwards.
    @torch.no_grad()
    def passes(
        self,
        rows: Rows,
        inputs: Callable[[Sequence[Row]], Mapping[str, Tensor]] = lambda rows: {},
    ) -> Iterator[tuple[Batch, Tensor]]:
        """Run this process's share of rows, and yield its batches with the model's outputs.

        Each batch has rows of one rubric and like length. The processes of a sharded model run
        equally many: some of them run one more, whose outputs are not yielded.
        """
        self.model.eval()
        accelerator, rubric = self.accelerator, ""
        # A wrapper's own pass would wait for processes that have fewer batches.
        unwrapped = accelerator.unwrap_model(self.model)
        prefix: Prefix | None = None
        every = scoring_batches(rows, self.token_budget)
        mine = every[accelerator.process_index :: accelerator.num_processes]
        most = -(-len(every) // accelerator.num_processes)
        more = every[: most - len(mine)] if is_sharded(accelerator) else []
        for number, batch in enumerate(self.loader.batches(rows, mine + more)):
            if batch.rows[0].rubric != rubric:  # batches of one rubric follow each other
                rubric, prefix, instruction = batch.rows[0].rubric, None, batch.layout.prefix_ids
                if len(instruction):  # once for all batches of a rubric
                    with accelerator.autocast():
                        prefix = unwrapped.prefill(to_device(instruction, accelerator.device))
            outputs = self.outputs(batch, inputs(batch.rows), unwrapped, prefix)
            if number < len(mine):
                yield batch, outputs


@dataclass(frozen=True)
class Measured:
    """The figures that a validation measures on rows."""

    scores: dict[str, float]
    """``nll``, ``accuracy`` and perhaps others."""
    right: list[bool | None]
    """Whether each row is judged as people did; ``None`` where they did not decide."""


def share_right(right: Sequence[bool | None]) -> float:
    """Compute the share of rows that are right, among those that people decided; nan if none."""
    decided = [row for row in right if row is not None]
    return float(np.mean(decided)) if decided else float("nan")


Numbers = NDArray[Any]
"""One number for each row."""


class Objective(ABC):
    """Loss of a stage.

    A step's loss is the sum of :meth:`loss_sum` over all micro-batches of the step on all
    processes, divided by the sum of :meth:`denominator`.
    """

    model_class: ClassVar[type[TreeModel]] = TreeModel
    """Module to wrap the backbone in; its outputs are what :meth:`loss_sum` is given."""

    def denominator(self, weights: Numbers, target_tokens: Numbers) -> float:
        """Choose what the losses of a step are divided by; default the weighted number of its rows.

        ``weights`` say how much each row counts; ``target_tokens`` counts the tokens of its target
        label.
        """
        return float(weights.sum())

    def inputs(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """Give the model's inputs for these rows beside their prompts."""
        return {}

    @abstractmethod
    def loss_sum(self, outputs: Tensor, rows: Sequence[Row], step: int) -> Tensor:
        """Add up the losses of rows of one micro-batch; ``step`` optimizer steps are done before.

        The outputs are ``[prompts, slots, vocabulary]`` logits unless :attr:`model_class` says
        otherwise. The sum is a scalar.
        """

    def measure(self, runner: ModelRunner, rows: Rows) -> Measured:
        """Measure accuracy, and the mean negative log-likelihood of a label among its row's."""
        logprobs, targets = runner.label_logprobs(rows), rows.facts.target.tolist()
        right: list[bool | None] = []
        nll = []
        for target, of_row in zip(targets, logprobs, strict=True):
            right.append(int(of_row.argmax()) == target)
            nll.append(np.logaddexp.reduce(of_row) - of_row[target])
        return Measured({"accuracy": share_right(right), "nll": float(np.mean(nll))}, right)

    def describe_target(self, row: Row, tokenizer: Any) -> str:
        """Describe, in a line for people, what a row is trained towards."""
        tokens = [tokenizer.decode([token]) for _, token in row.tree.paths[row.target]]
        return f"supervised tokens: {tokens!r}"


class TextModel(TreeModel):
    """A tree model that can give the log-probabilities of target tokens instead of logits."""

    def forward(
        self,
        batch: TreeBatch,
        prefix: Prefix | None = None,
        targets: Tensor | None = None,
        target_slots: Tensor | None = None,
    ) -> Tensor:
        """Compute log-probabilities of targets, ``[N, T]`` float32, or all logits without targets.

        Logits are shaped as in :class:`TreeModel`. Targets are ``[N, T]`` int64, padded with
        anything; ``target_slots`` holds the slot before each, default the slots in order, a target
        each. The prefix is the prefilled instruction; computed here, with gradients, when ``None``.
        """
        if targets is None:
            return super().forward(batch, prefix)
        hidden = self.hidden(batch, prefix)
        if target_slots is not None:
            hidden = hidden.take_along_dim(target_slots[..., None], dim=1)
        logprobs = projected_token_logprobs(
            hidden.flatten(0, 1), self.output_embedding.to(hidden.dtype), targets.flatten()
        )
        return logprobs.view(targets.shape)
