"""Training towards text: critiques, labels and stated confidences, token by token.

A text is a label tree with one branch, so rows, batches and the loop are those of every stage.
Log-probabilities are computed for a chunk of tokens at a time; the logits of a whole text are never
in memory at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from judging.errors import FieldError
from judging.scoring.label_tree import LabelTree
from judging.scoring.prefix import Prefix
from judging.scoring.prompts import END_TOKEN, Encoder
from judging.scoring.tree_batch import TreeBatch, TreeModel
from judging.tasks import JudgeTask, get_task
from judging.types import JudgeRequest, LabelledExample, Mode
from losses import projected_token_logprobs
from train.loop.model_runner import Measured, ModelRunner
from train.objectives.base import Numbers, Objective
from train.rows.rows import Row, Rows


def answer_tokens(task: JudgeTask, example: LabelledExample, encoder: Encoder) -> list[int]:
    """Return the tokens of the answer an example trains towards, end of turn included.

    The pieces are encoded one by one, exactly as a judge reads them back: opening tag, critique,
    closing tag, label tag, label, and the stated confidence where there is one.

    Raises:
        FieldError: If the task needs a critique and the example has none.
    """
    end, label = encoder.text(END_TOKEN), task.target(example)
    tags = task.critique
    if tags is None:
        return [*encoder.text(label), *end]
    if not example.critique:
        raise _no_critique(task)
    tokens = [
        *encoder.text(tags.opening),
        *encoder.data(example.critique),
        *encoder.text(tags.closing),
        *encoder.text(tags.label_opening),
        *encoder.text(label),
        *encoder.text(tags.label_closing),
    ]
    if example.confidence is not None:
        tokens += [
            *encoder.text(tags.confidence_opening),
            *encoder.text(f"{example.confidence:.2f}"),
            *encoder.text(tags.confidence_closing),
        ]
    return [*tokens, *end]


def check_critiques(examples: Iterable[LabelledExample]) -> None:
    """Check that every example has the critique that its task trains on.

    Raises:
        FieldError: If one has none; the message names the row.
    """
    for example in examples:
        task = get_task(example.task)
        if task.critique and not example.critique:
            raise _no_critique(task).at(f"row '{example.id}'")


def _no_critique(task: JudgeTask) -> FieldError:
    return FieldError("critique", f"task '{task.name}' trains on one")


class TextSupervision:
    """Reads the example itself and learns its answer token by token.

    Args:
        encoder: Encoder of the backbone to train.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def requests(self, example: LabelledExample) -> tuple[JudgeRequest, ...]:
        """Return the example."""
        return (example,)

    def mode(self, example: LabelledExample) -> Mode:
        """Return ``critique`` for tasks that write one; others learn the label at once."""
        return "critique" if get_task(example.task).critique else "score"

    def target(self, example: LabelledExample) -> tuple[LabelTree, int]:
        """Return a tree with the example's answer as its one branch."""
        tokens = answer_tokens(get_task(example.task), example, self.encoder)
        return LabelTree.build([example.label], [tokens]), 0


class TextModel(TreeModel):
    """A tree model that can give the log-probabilities of target tokens instead of logits."""

    def forward(
        self, batch: TreeBatch, prefix: Prefix | None = None, targets: Tensor | None = None
    ) -> Tensor:
        """Return the log-probability of each target, or all logits without targets.

        Args:
            batch: Rows to run.
            prefix: Their prefilled instruction; computed here, with gradients, when ``None``.
            targets: Target token of each slot, ``[N, K]`` int64; padded with anything.

        Returns:
            ``[N, K]`` float32; logits as :class:`TreeModel` without targets.
        """
        if targets is None:
            return super().forward(batch, prefix)
        hidden = self.hidden(batch, prefix)
        logprobs = projected_token_logprobs(
            hidden.flatten(0, 1), self.output_embedding.to(hidden.dtype), targets.flatten()
        )
        return logprobs.view(targets.shape)


@dataclass(frozen=True)
class TextObjective(Objective):
    """Plain negative log-likelihood: the mean over a step's tokens, weighted by example."""

    model_class = TextModel

    def denominator(self, weights: Numbers, target_tokens: Numbers) -> float:
        """Return the weighted number of tokens."""
        return float((weights * target_tokens).sum())

    def inputs(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """Return the target tokens."""
        paths = [torch.tensor([token for _, token in row.tree.paths[0]]) for row in rows]
        return {"targets": pad_sequence(paths, batch_first=True)}

    def loss_sum(self, outputs: Tensor, rows: Sequence[Row], step: int) -> Tensor:
        """Return the weighted sum over tokens, given their log-probabilities ``[rows, tokens]``."""
        lengths = torch.tensor([len(row.tree.paths[0]) for row in rows])
        weights = torch.tensor([row.example.weight for row in rows])
        counted = (torch.arange(outputs.shape[1]) < lengths[:, None]) * weights[:, None]
        return -(outputs * counted.to(outputs.device, non_blocking=True)).sum()

    @torch.inference_mode()
    def measure(self, runner: ModelRunner, rows: Rows) -> Measured:
        """Return the mean negative log-likelihood per token of held-out answers.

        Whether their labels are right would need generation.
        """
        runner.model.eval()
        sums = []
        for batch in runner.batches(rows):
            # The wrapper's own pass would wait for processes that have fewer batches.
            outputs = runner.outputs(batch, self.inputs(batch.rows), runner.unwrapped)
            weight = self.denominator(*rows.weights(batch.indices))
            sums.append((self.loss_sum(outputs, batch.rows, 0).item(), weight))
        loss, weight = runner.total(sums)
        return Measured({"nll": loss / weight})
