"""The tree engine: exact label log-probabilities for many prompts, in batches by token budget."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import torch
from torch import Tensor

from judging.encoder import EncodedPrompt
from judging.forest import ForestModel, Prefix, forest_batch, label_logprobs
from judging.tree import LabelTree

MAX_PREFIXES = 16


class TreeEngine:
    """Scores label trees with one forward pass per batch over a shared, prefilled instruction.

    Instructions stay prefilled: make a new engine after the weights have changed.

    Args:
        model: Backbone in a :class:`~judging.forest.ForestModel`, in eval mode.
        pad_id: Padding token.
        token_budget: Most item tokens (padding included) in one pass.
    """

    def __init__(self, model: ForestModel, pad_id: int, token_budget: int = 4096) -> None:
        self.model = model
        self.pad_id = pad_id
        self.token_budget = token_budget
        self._prefixes: OrderedDict[tuple[int, ...], Prefix] = OrderedDict()

    @torch.inference_mode()
    def score(self, prompts: Sequence[EncodedPrompt], tree: LabelTree) -> Tensor:
        """Log-probability of every label for every prompt.

        Args:
            prompts: Prompts of one rubric.
            tree: Its label tree.

        Returns:
            ``[prompts, labels]`` float32 on the CPU, in the order given.
        """
        result = torch.empty(len(prompts), len(tree.labels))
        device = next(self.model.parameters()).device
        for rows in self._batches([len(prompt.suffix_ids) for prompt in prompts], tree):
            batch = forest_batch([prompts[i] for i in rows], [tree] * len(rows), self.pad_id)
            prefix = self._prefix(prompts[rows[0]].prefix_ids, device)
            logits = self.model(batch.to(device), prefix)
            result[rows] = label_logprobs(logits, tree).cpu()
        return result

    def _batches(self, lengths: Sequence[int], tree: LabelTree) -> list[list[int]]:
        """Rows by descending length, so that the largest batch comes first and padding is least."""
        batches: list[list[int]] = []
        width = 0
        for row in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
            if not batches or (len(batches[-1]) + 1) * width > self.token_budget:
                batches.append([])
                width = lengths[row] + len(tree.node_tokens)
            batches[-1].append(row)
        return batches

    def _prefix(self, ids: tuple[int, ...], device: torch.device) -> Prefix | None:
        if not ids:
            return None
        if ids not in self._prefixes:
            self._prefixes[ids] = self.model.prefill(torch.tensor(ids, device=device))
            if len(self._prefixes) > MAX_PREFIXES:
                self._prefixes.popitem(last=False)
        self._prefixes.move_to_end(ids)
        return self._prefixes[ids]
