"""Loss on sequences that must not be produced."""

import math

import torch
from torch import Tensor, nn

from losses.sequence import at_least_float32, normalised_logprob


def log1mexp(x: Tensor) -> Tensor:
    """Compute ``log(1 - exp(x))`` for ``x < 0`` without cancellation at either end."""
    near_zero = x > -math.log(2)
    # Each branch gets arguments in its range alone; else its gradient is nan even where unused.
    small = torch.where(near_zero, x, -1.0)
    large = torch.where(near_zero, -1.0, x)
    return torch.where(near_zero, (-torch.expm1(small)).log(), torch.log1p(-large.exp()))


class UnlikelihoodLoss(nn.Module):
    r"""Contrastive unlikelihood of HiEval's Equations 7 and 8.

    :math:`L_{UL} = -\log(1 - P_{norm}(y^-|x))` with the length-normalised probability
    :math:`P_{norm}(y|x) = \exp(\frac{1}{|y|} \sum_t \log P(y_t|x, y_{<t}))`.
    """

    def forward(self, token_logprobs: Tensor, mask: Tensor) -> Tensor:
        """Compute the loss of each sequence.

        Args:
            token_logprobs: Log-probabilities of the unwanted tokens, ``[batch, tokens]``.
            mask: True at tokens that count, ``[batch, tokens]`` bool. All tokens for the paper's
                loss; only the tokens that differ from the right sequence to spare shared tokens.

        Returns:
            ``[batch]`` in at least float32, 0 where the mask is empty, finite where P rounds to 1.
            The slope ``P / (1 - P)`` is cut only where it would overflow; with respect to logits
            (through :func:`losses.token_logprobs`) the gradient is at most 1.
        """
        logprobs = at_least_float32(token_logprobs)
        largest = -torch.finfo(logprobs.dtype).tiny
        normalised = normalised_logprob(logprobs, mask).clamp_max(largest)
        return torch.where(mask.any(-1), -log1mexp(normalised), 0.0)
