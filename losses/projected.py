"""Log-probabilities of the tokens of long texts, without holding the logits of all of them.

Liger's fused kernel computes them where it runs, our own chunks elsewhere. Liger's chunks have
about ``tokens * hidden / vocabulary`` tokens, rounded up to a power of two. They take less memory
than our 256, but their products may be too small for a GPU. Neither was measured on one.
"""

from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from packaging.version import Version
from torch import Tensor

from losses.sequence import at_least_float32

FIRST_CORRECT_VERSION = Version("0.8.5")
"""Earlier versions of Liger, used without a reduction, do not weight each token's gradient."""
CHUNK_TOKENS = 256


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


def chunked_token_logprobs(
    hidden: Tensor, weight: Tensor, targets: Tensor, chunk_tokens: int = CHUNK_TOKENS
) -> Tensor:
    """Compute ``log_softmax(hidden @ weight.T)`` at the targets, a chunk of tokens at a time.

    Value and gradient equal those of the plain expression up to rounding. Only one chunk's logits
    are in memory at a time: the backward pass computes them again. Shapes are those of
    :func:`projected_token_logprobs`; float64 stays float64 on every device.
    """
    logprobs: Tensor = _ChunkedLogprobs.apply(  # type: ignore[no-untyped-call]  # torch's is untyped
        hidden, weight, targets, chunk_tokens
    )
    return logprobs


class _ChunkedLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, chunk_tokens: int
    ) -> Tensor:
        logprobs = []
        for states, chunk_targets in zip(
            hidden.split(chunk_tokens), targets.split(chunk_tokens), strict=True
        ):
            logits = at_least_float32(states @ weight.T)
            target_logits = logits.gather(1, chunk_targets[:, None])[:, 0]
            logprobs.append(target_logits - logits.logsumexp(1))
        ctx.save_for_backward(hidden, weight, targets)
        ctx.chunk_tokens = chunk_tokens
        return torch.cat(logprobs)

    @staticmethod
    def backward(ctx: Any, *outputs: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, targets = ctx.saved_tensors
        [grad_logprobs] = outputs
        grad_hidden = torch.empty_like(hidden) if ctx.needs_input_grad[0] else None
        grad_weight = torch.zeros_like(weight) if ctx.needs_input_grad[1] else None
        for start in range(0, len(hidden), ctx.chunk_tokens):
            chunk = slice(start, start + ctx.chunk_tokens)
            states, chunk_targets = hidden[chunk], targets[chunk]
            # d logp[target] / d logits = one_hot - softmax, in place of the chunk's logits.
            grad_logits = at_least_float32(states @ weight.T).softmax(1).neg_()
            rows = torch.arange(len(chunk_targets), device=targets.device)
            grad_logits[rows, chunk_targets] += 1
            grad_logits = (grad_logits * grad_logprobs[chunk, None]).to(hidden.dtype)
            if grad_hidden is not None:
                grad_hidden[chunk] = grad_logits @ weight
            if grad_weight is not None:
                grad_weight += grad_logits.T @ states
        return grad_hidden, grad_weight, None, None
