"""Training towards text: critiques, labels and stated confidences, token by token.

A text is a label tree with one branch, so rows, batches and the loop are those of every stage. Its
logits never exist as a whole: log-probabilities are computed a chunk of tokens at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from accelerate.utils import gather_object
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from judging.errors import CustosError
from judging.scoring.label_tree import LabelTree
from judging.scoring.prompts import END_TOKEN, Encoder
from judging.scoring.tree_batch import Prefix, TreeBatch, TreeModel
from judging.tasks import JudgeTask
from judging.types import LabelledExample
from losses import projected_token_logprobs
from train.loop.batches import Row, Rows
from train.loop.trainer import Trainer
from train.objectives.focal import Objective


def answer_tokens(task: JudgeTask, example: LabelledExample, encoder: Encoder) -> list[int]:
    """Tokens of the answer an example trains towards, end of turn included.

    Written piece by piece, exactly as a judge reads it back: opening tag, critique, closing tag,
    label tag, label, and the stated confidence where there is one.

    Raises:
        CustosError: If a critique is wanted and missing.
    """
    end, label = encoder.text(END_TOKEN), task.target(example)
    form = task.critique
    if form is None:
        return [*encoder.text(label), *end]
    if not example.critique:
        raise CustosError(f"field 'critique': task '{task.name}' trains on one")
    tokens = [
        *encoder.text(form.opening),
        *encoder.data(example.critique),
        *encoder.text(form.closing),
        *encoder.text(form.label_opening),
        *encoder.text(label),
        *encoder.text(form.label_closing),
    ]
    if example.confidence is not None:
        tokens += [
            *encoder.text(form.confidence_opening),
            *encoder.text(f"{example.confidence:.2f}"),
            *encoder.text(form.confidence_closing),
        ]
    return [*tokens, *end]


def text_layout(
    task: JudgeTask, example: LabelledExample, encoder: Encoder
) -> tuple[LabelTree, int]:
    """A tree with the example's answer as its one branch."""
    return LabelTree.build([example.label], [answer_tokens(task, example, encoder)]), 0


class TextModel(TreeModel):
    """A tree model that can give the log-probabilities of wanted tokens instead of logits."""

    def forward(
        self, batch: TreeBatch, prefix: Prefix | None = None, targets: Tensor | None = None
    ) -> Tensor:
        """Log-probability of each target, or all logits without targets.

        Args:
            batch: Rows to run.
            prefix: Their prefilled instruction; computed here, with gradients, when ``None``.
            targets: Token wanted at each slot, ``[N, K]`` int64; padded with anything.

        Returns:
            ``[N, K]`` float32; logits as :class:`TreeModel` without targets.
        """
        if targets is None:
            return super().forward(batch, prefix)
        hidden = self.hidden(batch, prefix)
        found = projected_token_logprobs(
            hidden.flatten(0, 1), self.output_embedding.to(hidden.dtype), targets.flatten()
        )
        return found.view(targets.shape)


@dataclass(frozen=True)
class TextObjective(Objective):
    """Plain negative log-likelihood: the mean over a step's tokens, weighted by example."""

    def denominator(self, rows: Sequence[Row]) -> float:
        """Weighted number of tokens."""
        return sum(row.example.weight * len(row.tree.paths[0]) for row in rows)

    def inputs(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """The wanted tokens."""
        paths = [torch.tensor([token for _, token in row.tree.paths[0]]) for row in rows]
        return {"targets": pad_sequence(paths, batch_first=True)}

    def loss_sum(self, outputs: Tensor, rows: Sequence[Row], step: int) -> Tensor:
        """Weighted sum over tokens, given their log-probabilities ``[rows, tokens]``."""
        lengths = torch.tensor([len(row.tree.paths[0]) for row in rows])
        weights = torch.tensor([row.example.weight for row in rows])
        counted = (torch.arange(outputs.shape[1]) < lengths[:, None]) * weights[:, None]
        return -(outputs * counted.to(outputs.device, non_blocking=True)).sum()


class TextTrainer(Trainer):
    """Watches the likelihood of held-out answers; whether labels are right needs generation."""

    model_class = TextModel

    @torch.inference_mode()
    def measure(self, rows: Rows) -> dict[str, float]:
        """Mean negative log-likelihood per token."""
        self.model.eval()
        accelerator, size = self.accelerator, self.recipe.optim.micro_batch_size
        by_rubric: dict[str, list[Row]] = {}
        for row in sorted(rows.rows, key=lambda row: row.length):
            by_rubric.setdefault(row.rubric, []).append(row)
        batches = [
            part[start : start + size]
            for part in by_rubric.values()
            for start in range(0, len(part), size)
        ]
        sums = []
        for batch in batches[accelerator.process_index :: accelerator.num_processes]:
            outputs = self.run(batch, self.unwrapped)  # the wrapper waits for every process
            loss = self.objective.loss_sum(outputs, batch, self.progress.step)
            sums.append((loss.item(), self.objective.denominator(batch)))
        if accelerator.num_processes > 1:
            sums = gather_object(sums)
        return {"nll": sum(loss for loss, _ in sums) / sum(weight for _, weight in sums)}
