"""Token log-probabilities by Liger's fused kernel where it runs, by our own chunks elsewhere.

Liger's chunks have about ``tokens * hidden / vocabulary`` tokens, rounded up to a power of two.
They take less memory than our 256, but their products may be too small for a GPU. Neither was
measured on one.
"""

from importlib.metadata import PackageNotFoundError, version

import torch
from packaging.version import Version
from torch import Tensor

from losses.chunked import chunked_token_logprobs

FIRST_CORRECT_VERSION = Version("0.8.5")
"""Earlier versions of Liger, used without a reduction, do not weight each token's gradient."""


def projected_token_logprobs(hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    """Compute ``log_softmax(hidden @ weight.T)`` at the targets, without the logits of all tokens.

    Args:
        hidden: Last hidden states of the supervised tokens, ``[tokens, hidden]``.
        weight: Output embedding, ``[vocabulary, hidden]``.
        targets: Token ids, ``[tokens]`` int64.

    Returns:
        ``[tokens]`` float32 (float64 for float64 inputs on a CPU).
    """
    if hidden.is_cuda and liger_is_installed():
        return fused_token_logprobs(hidden, weight, targets)
    return chunked_token_logprobs(hidden, weight, targets)


def liger_is_installed() -> bool:
    """Tell whether a correct Liger is installed (``pip install custos[liger]``)."""
    try:
        return Version(version("liger-kernel")) >= FIRST_CORRECT_VERSION
    except PackageNotFoundError:
        return False


def fused_token_logprobs(hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    """Compute the same log-probabilities with Liger's kernel, ``[tokens]`` float32."""
    from liger_kernel.transformers.functional import liger_fused_linear_cross_entropy

    losses: Tensor = liger_fused_linear_cross_entropy(
        hidden, weight, targets, ignore_index=-1, reduction="none"
    )
    return -losses.to(torch.float32)
