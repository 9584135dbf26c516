"""Token log-probabilities by Liger's fused kernel where it can run, by our own chunks elsewhere."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import torch
from torch import Tensor

from losses.chunked import chunked_token_logprobs

RIGHT_SINCE = (0, 8, 5)
"""Liger's first version known to weight the gradient token by token without a reduction."""


def projected_token_logprobs(hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    """``log_softmax(hidden @ weight.T)`` at the targets, without the logits of all tokens.

    Args:
        hidden: Last hidden states of the supervised tokens, ``[tokens, hidden]``.
        weight: Output embedding, ``[vocabulary, hidden]``.
        targets: Token ids, ``[tokens]`` int64.

    Returns:
        ``[tokens]`` float32 (float64 for float64 inputs on a CPU).
    """
    if hidden.is_cuda and liger_is_installed():
        return _liger(hidden, weight, targets)
    return chunked_token_logprobs(hidden, weight, targets)


def liger_is_installed() -> bool:
    """Whether a Liger that is right here is installed (``pip install custos[gpu]``)."""
    try:
        parts = version("liger-kernel").split(".")[:3]
    except PackageNotFoundError:
        return False
    return tuple(int(part) if part.isdigit() else 0 for part in parts) >= RIGHT_SINCE


def _liger(hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    from liger_kernel.transformers.functional import liger_fused_linear_cross_entropy

    losses: Tensor = liger_fused_linear_cross_entropy(
        hidden, weight, targets, ignore_index=-1, reduction="none"
    )
    return -losses.to(torch.float32)
