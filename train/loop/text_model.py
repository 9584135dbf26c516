"""The model of methods that learn text: log-probabilities of tokens in place of logits."""

from __future__ import annotations

from torch import Tensor

from judging.scoring.tree_batch import Prefix, TreeBatch, TreeModel
from losses import projected_token_logprobs


class TextModel(TreeModel):
    """A tree model that can give the log-probabilities of target tokens instead of logits."""

    def forward(
        self,
        batch: TreeBatch,
        prefix: Prefix | None = None,
        targets: Tensor | None = None,
        target_slots: Tensor | None = None,
    ) -> Tensor:
        """Return the log-probability of each target, or all logits without targets.

        Args:
            batch: Rows to run.
            prefix: Their prefilled instruction; computed here, with gradients, when ``None``.
            targets: Target tokens, ``[N, T]`` int64; padded with anything.
            target_slots: Slot before each target, ``[N, T]`` int64; default the slots in order,
                a target each.

        Returns:
            ``[N, T]`` float32; logits as :class:`TreeModel` without targets.
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
