"""Likelihood of the label, unlikelihood of other error types, and replay: HiEval's second stage."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from judging.models.devices import to_device
from judging.types import score_of, type_of
from losses import UnlikelihoodLoss, normalised_logprob, token_logprobs
from train.loop.objective import Objective
from train.methods.base import LossMethod
from train.rows.data import ReplaySection, RunSplits, read_splits, with_replay
from train.rows.rows import Row
from train.setup.recipe import Recipe, Section, local_files

Negatives = Literal["sampled", "hardest", "all"]
Span = Literal["whole", "suffix"]


class JointSection(Section):
    """``L_MLE + lambda * 1[error] * L_UL`` (HiEval section 3.2)."""

    unlikelihood: float = Field(default=0.3, ge=0)
    """The paper's lambda; 0 trains on the likelihood only."""
    negatives: Negatives = "sampled"
    """``sampled``: one other error type at random (our reading of the paper, which samples "hard"
    types without saying how); ``hardest``: the likeliest other type; ``all``: every other type,
    weighted by the posterior."""
    span: Span = "whole"
    """``whole``: mean over all tokens of the wrong label (the paper's choice); ``suffix``: mean
    over the tokens in which it differs from the right one."""


class JointRecipe(Recipe):
    """Recipe of the joint loss."""

    loss: JointSection = JointSection()
    replay: ReplaySection = ReplaySection()

    @property
    def files(self) -> dict[str, Path]:
        """List every file it reads, replayed ones included, by the name the recipe gives it."""
        return super().files | local_files((*self.replay.train, self.replay.val))


@dataclass(frozen=True)
class JointObjective(Objective):
    r"""``L_MLE(y+) + lambda * 1[x in D_err] * L_UL(y-)`` (HiEval section 3.2, Equations 6 to 9).

    ``L_MLE`` is the mean token negative log-likelihood of the label. ``y-`` is the label with its
    error type replaced by another; rows without an error type (``Correct``, replayed rows) have
    none. A step's loss is the mean over rows, each weighted by its example's ``weight``.
    """

    unlikelihood: float
    negatives: Negatives
    span: Span
    seed: int

    def loss_sum(self, outputs: Tensor, rows: Sequence[Row], step: int) -> Tensor:
        """Add up the weighted losses of rows, given ``[rows, slots, vocabulary]`` logits."""
        logits, device = outputs, outputs.device
        weights = to_device(torch.tensor([row.example.weight for row in rows]), device)
        logprobs, mask = _path_logprobs(logits, rows, [[row.target] for row in rows])
        loss = -(normalised_logprob(logprobs, mask) * weights).sum()
        wrong = [self.candidates(row, step) for row in rows]
        if not self.unlikelihood or not any(wrong):
            return loss
        logprobs, whole = _path_logprobs(logits, rows, wrong)
        owners = torch.tensor([i for i, labels in enumerate(wrong) for _ in labels])
        owner = to_device(owners, device)
        mask = whole & self._differing(rows, wrong, whole) if self.span == "suffix" else whole
        penalties: Tensor = UnlikelihoodLoss()(logprobs, mask)
        # A judge decides by the probability of the whole label, so that is what ranks candidates.
        likelihood = torch.where(whole, logprobs, 0).sum(-1).detach()
        shares = self._shares(likelihood, owner, len(rows))
        return loss + self.unlikelihood * (penalties * shares * weights[owner]).sum()

    def candidates(self, row: Row, step: int) -> list[int]:
        """List the labels to push down, as indices in the row's tree.

        They have the target's score and another error type; with ``sampled`` it is one of them.
        There are none where the score has a single error type.
        """
        target = row.tree.labels[row.target]
        if not type_of(target):
            return []
        others = [
            index
            for index, label in enumerate(row.tree.labels)
            if index != row.target and score_of(label) == score_of(target)
        ]
        if others and self.negatives == "sampled":
            # By row and step alone: the same on every process and after a resume.
            return [random.Random(f"{self.seed}/{step}/{row.example.id}").choice(others)]
        return others

    def _shares(self, likelihood: Tensor, owner: Tensor, num_rows: int) -> Tensor:
        """Weigh each candidate among its row's, ``[candidates]``; the weights of a row sum to one.

        ``likelihood`` is the log-probability of each candidate, and ``owner`` the index of its row.
        """
        if self.negatives == "sampled":
            return torch.ones_like(likelihood)
        table = likelihood.new_full((num_rows, len(owner)), float("-inf"))
        columns = torch.arange(len(owner), device=owner.device)
        table[owner, columns] = likelihood
        if self.negatives == "hardest":
            return (table[owner].argmax(-1) == columns).to(likelihood.dtype)
        return table[owner].softmax(-1)[columns, columns]

    def _differing(self, rows: Sequence[Row], wrong: list[list[int]], whole: Tensor) -> Tensor:
        """Mask, with true, from the first token in which a candidate leaves its row's target."""
        starts = []
        for row, labels in zip(rows, wrong, strict=True):
            target = row.tree.paths[row.target]
            for label in labels:
                pairs = enumerate(zip(target, row.tree.paths[label], strict=False))
                starts.append(next(depth for depth, (wanted, other) in pairs if wanted != other))
        depths = torch.arange(whole.shape[1], device=whole.device)
        return depths >= to_device(torch.tensor(starts), whole.device).unsqueeze(1)


def _path_logprobs(
    logits: Tensor, rows: Sequence[Row], labels: Sequence[Sequence[int]]
) -> tuple[Tensor, Tensor]:
    """Compute the token log-probabilities of the given labels, and the mask of real tokens.

    The logits are ``[rows, slots, vocabulary]``; the labels of each row are indices in its tree.
    Both results are ``[sequences, tokens]``, the sequences in the order of ``labels``.
    """
    paths = [
        torch.tensor([(i, slot, token) for slot, token in row.tree.paths[label]])
        for i, row in enumerate(rows)
        for label in labels[i]
    ]
    table = pad_sequence(paths, batch_first=True, padding_value=-1)
    table = to_device(table, logits.device)
    mask = table[..., 2] >= 0
    row, slot, token = table.clamp_min(0).unbind(-1)
    return token_logprobs(logits[row, slot], token), mask


class Joint(LossMethod):
    """Trains an error-analysis judge: labels with types of error."""

    recipe_class = JointRecipe
    script = "hieval_stage2"
    without_hub = (
        "custos prep charts --out runs/demo/charts --rows 260 --val 40 --cal 0 --test 0 && "
        "custos prep synthetic --worlds open --rows 2800 --out runs/demo/data && "
        "accelerate launch -m train.hieval_stage2 --config embedded/error_analysis/try"
    )

    @classmethod
    def read_rows(cls, recipe: JointRecipe) -> RunSplits:
        """Read the rows, and those of the earlier stage that are mixed in."""
        data = recipe.data
        return with_replay(read_splits(data), recipe.replay, recipe.run.seed, data.exclude_answerer)

    def objective(self) -> Objective:
        """Choose the joint loss."""
        loss, seed = self.recipe.loss, self.recipe.run.seed
        return JointObjective(loss.unlikelihood, loss.negatives, loss.span, seed)


METHOD = Joint
