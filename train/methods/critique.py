"""Training towards text: critiques, labels and stated confidences, token by token.

A text is a label tree with one branch, so rows, batches and the loop are those of every stage.
Log-probabilities are computed for a chunk of tokens at a time; the logits of a whole text are never
in memory at once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import torch
from accelerate.utils import gather_object
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from judging.errors import FieldError
from judging.models.devices import to_device
from judging.scoring.label_tree import LabelTree
from judging.scoring.prompts import Encoder
from judging.tasks import JudgeTask, get_task
from judging.types import END_TOKEN, LabelledExample, Mode
from train.loop.objective import Measured, ModelRunner, Numbers, Objective, TextModel, share_right
from train.methods.base import LossMethod
from train.rows.data import RunSplits, read_splits, under_task
from train.rows.rows import Row, Rows, Supervision
from train.setup.recipe import Recipe


class CritiqueRecipe(Recipe):
    """Recipe of answers in text."""

    task: Literal["truthful-pair", "truthful-pure-label"] | None = None
    """Train every pair under this task, whatever task its row names."""


def answer_tokens(
    task: JudgeTask, example: LabelledExample, encoder: Encoder, label: str | None = None
) -> list[int]:
    """Encode the answer an example trains towards, end of turn included.

    The pieces are encoded one by one, exactly as a judge reads them back: opening tag, critique,
    closing tag, label tag, label, and the stated confidence where there is one. With ``label`` that
    one follows the critique instead, and the tokens end with those of its closing tag.
    """
    tags, text = task.critique, encoder.text(label or task.target(example))
    if tags is None:
        return [*text, *encoder.text(END_TOKEN)]
    if not example.critique:
        raise FieldError("critique", f"task '{task.name}' trains on one")
    tokens = [
        *encoder.text(tags.opening),
        *encoder.data(example.critique),
        *encoder.text(tags.closing),
        *encoder.text(tags.label_opening),
        *text,
        *encoder.text(tags.label_closing),
    ]
    return tokens if label else [*tokens, *_after_label(task, example, encoder)]


def _after_label(task: JudgeTask, example: LabelledExample, encoder: Encoder) -> list[int]:
    """Encode what follows the label and its closing tag: confidence and end of turn."""
    if task.critique is None:
        return []
    tags, tokens = task.critique, []
    if example.confidence is not None:
        tokens = [
            *encoder.text(tags.confidence_opening),
            *encoder.text(f"{example.confidence:.2f}"),
            *encoder.text(tags.confidence_closing),
        ]
    return [*tokens, *encoder.text(END_TOKEN)]


class TextSupervision(Supervision):
    """Reads the example itself and learns its answer token by token.

    ``with_labels`` reads the other labels too, each after the example's own critique: a validation
    then tells which label is likeliest.
    """

    def __init__(self, encoder: Encoder, *, with_labels: bool = False) -> None:
        super().__init__(encoder)
        self.with_labels = with_labels

    def mode(self, example: LabelledExample) -> Mode:
        """Choose ``critique`` for tasks that write one; others learn the label at once."""
        return "critique" if get_task(example.task).critique else "score"

    def target(self, example: LabelledExample) -> tuple[LabelTree, int]:
        """Build a tree with the example's answer, and tell which of its branches that is."""
        task = get_task(example.task)
        gold, answer = task.target(example), answer_tokens(task, example, self.encoder)
        labels = task.labels(task.rubric(example)) if self.with_labels else (gold,)
        branches = [
            answer if label == gold else answer_tokens(task, example, self.encoder, label)
            for label in labels
        ]
        return LabelTree.build(labels, branches), labels.index(gold)


@dataclass(frozen=True)
class TextObjective(Objective):
    """Plain negative log-likelihood: the mean over a step's tokens, weighted by example."""

    model_class = TextModel

    def denominator(self, weights: Numbers, target_tokens: Numbers) -> float:
        """Count the weighted number of tokens."""
        return float((weights * target_tokens).sum())

    def inputs(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """Give the target tokens."""
        paths = [torch.tensor([token for _, token in row.tree.paths[row.target]]) for row in rows]
        return {"targets": pad_sequence(paths, batch_first=True)}

    def loss_sum(self, outputs: Tensor, rows: Sequence[Row], step: int) -> Tensor:
        """Add up the weighted losses of tokens, given log-probabilities ``[rows, tokens]``."""
        lengths = torch.tensor([len(row.tree.paths[row.target]) for row in rows])
        weights = torch.tensor([row.example.weight for row in rows])
        counted = (torch.arange(outputs.shape[1]) < lengths[:, None]) * weights[:, None]
        return -(outputs * to_device(counted, outputs.device)).sum()

    def measure(self, runner: ModelRunner, rows: Rows) -> Measured:
        """Measure the accuracy of labels, and the negative log-likelihood per token of answers.

        Every row counts, whatever its weight. A label is judged after the example's own critique:
        what a judge would write itself takes minutes to draw. One pass gives both: the labels are
        branches of the tree of the answer.
        """
        measured = list[tuple[int, bool, float, int]]()
        for batch, outputs in runner.passes(rows, _with_labels):
            for index, row, logprobs in zip(
                batch.indices, batch.rows, outputs.double().tolist(), strict=True
            ):
                scores = _label_scores(row, logprobs, rows.encoder)
                is_right = scores.index(max(scores)) == row.target
                answer = logprobs[: len(row.tree.paths[row.target])]
                measured.append((int(index), is_right, -sum(answer), len(answer)))
        _, right, losses, lengths = zip(*sorted(gather_object(measured)), strict=True)
        nll = sum(losses) / sum(lengths)
        return Measured({"accuracy": share_right(right), "nll": nll}, list(right))


Path = Sequence[tuple[int, int]]
"""Tokens of an answer, each after the slot that predicts it."""


def _with_labels(rows: Sequence[Row]) -> dict[str, Tensor]:
    """List the targets of rows: those of the answer, then those of the other labels alone."""
    paths = [
        torch.tensor([*row.tree.paths[row.target], *(t for _, rest in _others(row) for t in rest)])
        for row in rows
    ]
    slots, tokens = pad_sequence(paths, batch_first=True).unbind(-1)
    return {"targets": tokens, "target_slots": slots}


def _others(row: Row) -> list[tuple[int, Path]]:
    """Split each label but the row's own: the tokens shared with the answer, and the rest."""
    answer = row.tree.paths[row.target]
    others: list[tuple[int, Path]] = []
    for label, path in enumerate(row.tree.paths):
        if label != row.target:
            shared = len(os.path.commonprefix([answer, path]))
            others.append((shared, path[shared:]))
    return others


def _label_scores(row: Row, logprobs: Sequence[float], encoder: Encoder) -> list[float]:
    """Score each label by the log-probability of the critique with it, in the order of the tree."""
    task, start = get_task(row.example.task), len(row.tree.paths[row.target])
    answer = logprobs[: start - len(_after_label(task, row.example, encoder))]
    scores = []
    for shared, rest in _others(row):
        scores.append(sum(answer[:shared]) + sum(logprobs[start : start + len(rest)]))
        start += len(rest)
    scores.insert(row.target, sum(answer))
    return scores


class Critique(LossMethod):
    """Trains a judge that answers in text: a critique, a label, a confidence."""

    recipe_class = CritiqueRecipe
    script = "truthful_judge"
    without_hub = (
        "custos prep pairs --rows 8000 --val 150 --cal 240 --test 1200 --out data/pairs && "
        "accelerate launch -m train.truthful_judge --config embedded/pair"
    )
    learns_text = True

    @classmethod
    def read_rows(cls, recipe: CritiqueRecipe) -> RunSplits:
        """Read the rows, under the task that the recipe names."""
        return under_task(read_splits(recipe.data), recipe.task)

    def objective(self) -> Objective:
        """Choose the likelihood of answers, of which no row lacks its critique."""
        for example in chain(self.splits.train, self.splits.val):
            if get_task(example.task).critique and not example.critique:
                text, location = f"task '{example.task}' trains on one", f"row '{example.id}'"
                raise FieldError("critique", text, location)
        return TextObjective()

    @staticmethod
    def supervision(encoder: Encoder) -> Supervision:
        """Choose the answers, learnt token by token."""
        return TextSupervision(encoder)

    def validation(self, encoder: Encoder) -> Supervision:
        """Read the other labels too."""
        return TextSupervision(encoder, with_labels=True)


METHOD = Critique
