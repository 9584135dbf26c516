"""Runs the model on rows: to train on them, and to score them, shared over processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from accelerate import Accelerator
from accelerate.utils import gather_object
from numpy.typing import NDArray
from torch import Tensor

from judging.scoring.batch_layout import lay_out
from judging.scoring.packing import shared_rows
from judging.scoring.tree_engine import TreeEngine
from train.loop.batches import Row, Rows

PICTURED_AT_ONCE = 256
"""Rows whose encoded pictures are held at once while they are scored."""


class ModelRunner:
    """The model of a run with what it takes to call it.

    Args:
        model: Prepared :class:`~judging.scoring.tree_batch.TreeModel`.
        accelerator: Accelerator that prepared it.
        pad_id: Padding token.
        batch_size: Rows per pass of :meth:`batches`.
    """

    def __init__(
        self,
        model: Any,
        accelerator: Accelerator,
        pad_id: int,
        *,
        batch_size: int,
    ) -> None:
        self.model, self.accelerator, self.pad_id = model, accelerator, pad_id
        self.batch_size = batch_size

    @property
    def unwrapped(self) -> Any:
        """Return the tree model without its distributed wrapper."""
        return self.accelerator.unwrap_model(self.model)

    def outputs(
        self, rows: Rows, batch: Sequence[Row], inputs: Mapping[str, Tensor], model: Any = None
    ) -> Tensor:
        """Run one forward pass over rows of one rubric.

        Args:
            rows: Rows that the batch is of.
            batch: Rows to run.
            inputs: Further inputs of the model.
            model: Default the wrapped model, whose passes every process must make alike.
        """
        prompts = rows.prompts(batch)
        prompts_per_row = len(prompts) // len(batch)
        laid_out = lay_out(
            self.unwrapped,
            prompts,
            [row.tree for row in batch for _ in range(prompts_per_row)],
            self.pad_id,
            rows=shared_rows(prompts, max(len(row.tree.node_tokens) for row in batch)),
        )
        device = self.accelerator.device
        with self.accelerator.autocast():
            outputs: Tensor = (model or self.model)(
                laid_out.to(device),
                **{name: tensor.to(device) for name, tensor in inputs.items()},
            )
        return outputs

    def label_logprobs(self, rows: Rows) -> list[NDArray[np.float64]]:
        """Return the label log-probabilities of every row, in order.

        Each is ``[labels]``, or ``[prompts, labels]`` for rows that the model reads as several
        prompts.
        """
        accelerator = self.accelerator
        self.model.eval()
        engine = TreeEngine(self.unwrapped, self.pad_id)
        scores_by_row: list[tuple[int, Any]] = []
        for indices in rows.by_rubric().values():
            mine = [
                i for i in indices if i % accelerator.num_processes == accelerator.process_index
            ]
            pictured = any(rows.rows[i].prompts is None for i in mine)
            size = PICTURED_AT_ONCE if pictured else max(1, len(mine))
            for start in range(0, len(mine), size):
                part = mine[start : start + size]
                prompts = rows.prompts([rows.rows[i] for i in part])
                with accelerator.autocast():
                    scores = np.array(engine.score(prompts, rows.rows[part[0]].tree))
                if len(prompts) > len(part):
                    scores = scores.reshape(len(part), -1, scores.shape[1])
                scores_by_row += zip(part, scores.tolist(), strict=True)
        if accelerator.num_processes > 1:
            scores_by_row = gather_object(scores_by_row)
        return [np.array(scores) for _, scores in sorted(scores_by_row)]

    def batches(self, rows: Rows) -> list[list[Row]]:
        """Return this process's batches, each of rows of one rubric and like length."""
        size, batches = self.batch_size, []
        for indices in rows.by_rubric().values():
            ordered = sorted((rows.rows[i] for i in indices), key=lambda row: row.length)
            batches += [ordered[i : i + size] for i in range(0, len(ordered), size)]
        return batches[self.accelerator.process_index :: self.accelerator.num_processes]

    def total(self, sums: Sequence[tuple[float, float]]) -> tuple[float, float]:
        """Return the column sums of pairs over all processes."""
        pairs = gather_object(list(sums)) if self.accelerator.num_processes > 1 else sums
        return sum(first for first, _ in pairs), sum(second for _, second in pairs)


@dataclass(frozen=True)
class Measured:
    """What a validation measures of rows."""

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
    for row, logprobs in zip(rows.rows, runner.label_logprobs(rows), strict=True):
        right.append(int(logprobs.argmax()) == row.target)
        nll.append(np.logaddexp.reduce(logprobs) - logprobs[row.target])
    return Measured({"accuracy": share_right(right), "nll": float(np.mean(nll))}, right)


def share_right(right: Sequence[bool | None]) -> float:
    """Return the share of rows that are right, among those that people decided; nan if none."""
    decided = [row for row in right if row is not None]
    return float(np.mean(decided)) if decided else float("nan")
