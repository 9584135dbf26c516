"""Log-probabilities of tokens and of sequences of them."""

from __future__ import annotations

import torch
from torch import Tensor

from losses.precision import at_least_float32


def token_logprobs(logits: Tensor, targets: Tensor) -> Tensor:
    """Compute the log-probability of each target token.

    Args:
        logits: ``[..., vocabulary]``, any float dtype; computed in at least float32.
        targets: Token ids, ``[...]`` int64.

    Returns:
        ``[...]`` float32 (float64 for float64 logits).
    """
    logprobs = at_least_float32(logits).log_softmax(-1)
    return logprobs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)


def normalised_logprob(logprobs: Tensor, mask: Tensor) -> Tensor:
    r"""Compute the length-normalised log-probability, ``log P_norm`` of HiEval's Equation 7.

    :math:`\log P_{norm}(y|x) = \frac{1}{|y|} \sum_t \log P(y_t | x, y_{<t})`.

    Args:
        logprobs: Token log-probabilities, ``[batch, tokens]``.
        mask: True at tokens of the sequence, ``[batch, tokens]`` bool. A row without any gives 0.

    Returns:
        ``[batch]``, at most 0.
    """
    total = torch.where(mask, logprobs, 0.0).sum(-1)
    return total / mask.sum(-1).clamp_min(1)
