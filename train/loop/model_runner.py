"""The model of a run on batches of rows: to train on them, and to score them, on all processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from numpy.typing import NDArray
from torch import Tensor, nn

from judging.models.devices import to_device
from judging.scoring.tree_batch import Prefix, label_logprobs
from train.loop.batches import scoring_batches
from train.loop.loader import Loader
from train.loop.sharding import is_sharded
from train.rows.rows import Batch, Row, Rows

EntryT = TypeVar("EntryT")


class ModelRunner:
    """The model of a run with what it takes to call it.

    Args:
        model: Prepared :class:`~judging.scoring.tree_batch.TreeModel`.
        accelerator: Accelerator that prepared it.
        loader: What makes batches of rows.
        token_budget: Most tokens of a batch that is scored, padding included.
    """

    def __init__(
        self, model: Any, accelerator: Accelerator, loader: Loader, token_budget: int
    ) -> None:
        self.model, self.accelerator = model, accelerator
        self.loader, self.token_budget = loader, token_budget

    @property
    def unwrapped(self) -> Any:
        """Return the tree model without its distributed wrapper."""
        return self.accelerator.unwrap_model(self.model)

    def outputs(
        self,
        batch: Batch,
        inputs: Mapping[str, Tensor],
        model: Any = None,
        prefix: Prefix | None = None,
    ) -> Tensor:
        """Run one forward pass over rows of one rubric.

        Args:
            batch: Rows to run.
            inputs: Further inputs of the model.
            model: Default the wrapped model, whose passes every process must make alike.
            prefix: Prefilled instruction of the rows.
        """
        device = self.accelerator.device
        with self.accelerator.autocast():
            outputs: Tensor = (model or self.model)(
                batch.layout.to(device),
                prefix,
                **{name: to_device(tensor, device) for name, tensor in inputs.items()},
            )
        return outputs

    def label_logprobs(self, rows: Rows) -> list[NDArray[np.float64]]:
        """Return the label log-probabilities of every row, in order.

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
        return [np.array(scores) for _, scores in sorted(self.gathered(scores_by_row))]

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

        Args:
            rows: Rows to score.
            inputs: Returns further inputs of the model for the rows of a batch.
        """
        self.model.eval()
        accelerator, rubric, prefix = self.accelerator, "", None
        every = scoring_batches(rows, self.token_budget)
        mine = every[accelerator.process_index :: accelerator.num_processes]
        most = -(-len(every) // accelerator.num_processes)
        more = every[: most - len(mine)] if is_sharded(accelerator) else []
        for number, batch in enumerate(self.loader.batches(rows, mine + more)):
            if batch.rows[0].rubric != rubric:  # batches of one rubric follow each other
                rubric, prefix = batch.rows[0].rubric, self._prefill(batch)
            # A wrapper's own pass would wait for processes that have fewer batches.
            outputs = self.outputs(batch, inputs(batch.rows), self.unwrapped, prefix)
            if number < len(mine):
                yield batch, outputs

    def _prefill(self, batch: Batch) -> Prefix | None:
        """Compute the instruction of a batch once, for all batches of its rubric."""
        if not len(batch.layout.prefix_ids):
            return None
        with self.accelerator.autocast():
            prefix: Prefix = self.unwrapped.prefill(
                to_device(batch.layout.prefix_ids, self.accelerator.device)
            )
        return prefix

    def gathered(self, entries: list[EntryT]) -> list[EntryT]:
        """Return the entries of all processes."""
        if self.accelerator.num_processes == 1:
            return entries
        every: list[EntryT] = gather_object(entries)
        return every


@dataclass(frozen=True)
class Measured:
    """The figures that a validation measures on rows."""

    scores: dict[str, float]
    """``nll`` and, if known, ``accuracy``."""
    right: list[bool | None] | None = None
    """Whether each row is judged as people did, ``None`` where they did not decide; ``None`` as a
    whole if there is no accuracy."""


def label_scores(runner: ModelRunner, rows: Rows) -> Measured:
    """Measure accuracy and mean negative log-likelihood of the labels.

    The likelihood is that of the label among a row's labels.
    """
    right: list[bool | None] = []
    nll = []
    for target, logprobs in zip(
        rows.facts.target.tolist(), runner.label_logprobs(rows), strict=True
    ):
        right.append(int(logprobs.argmax()) == target)
        nll.append(np.logaddexp.reduce(logprobs) - logprobs[target])
    return Measured({"accuracy": share_right(right), "nll": float(np.mean(nll))}, right)


def share_right(right: Sequence[bool | None]) -> float:
    """Return the share of rows that are right, among those that people decided; nan if none."""
    decided = [row for row in right if row is not None]
    return float(np.mean(decided)) if decided else float("nan")


def free_weights(model: nn.Module) -> None:
    """Put empty parameters in the place of all parameters of a model."""
    for module in model.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            # Not with to(): weights of 4 bits cannot be moved so.
            empty = torch.empty(parameter.shape, dtype=parameter.dtype, device="meta")
            setattr(module, name, nn.Parameter(empty, requires_grad=False))
