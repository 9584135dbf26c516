"""Log-probabilities of tokens and of sequences of them."""

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid


def at_least_float32(values: Tensor) -> Tensor:
    """Return values in float32, or unchanged if they are float64."""
    return values if values.dtype == torch.float64 else values.float()


def token_logprobs(logits: Tensor, targets: Tensor) -> Tensor:
    """Compute the log-probability of each target token.

    It is exact near 0, too: a logit 40 above all others gives -4e-18, which a softmax rounds to 0.

    Args:
        logits: ``[..., vocabulary]``, any float dtype; computed in at least float32.
        targets: Token ids, ``[...]`` int64.

    Returns:
        ``[...]`` float32 (float64 for float64 logits).
    """
    logits, index = at_least_float32(logits), targets.unsqueeze(-1)
    others = logits.scatter(-1, index, float("-inf")).logsumexp(-1)
    return logsigmoid(logits.gather(-1, index).squeeze(-1) - others)


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
