"""Token log-probabilities of long texts without ever holding their logits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

CHUNK_TOKENS = 256


def chunked_token_logprobs(
    hidden: Tensor, weight: Tensor, targets: Tensor, chunk_tokens: int = CHUNK_TOKENS
) -> Tensor:
    """``log_softmax(hidden @ weight.T)`` at the targets, a chunk of tokens at a time.

    Equal to the plain expression, value and gradient, up to rounding. Memory is that of one chunk's
    logits, in the backward pass too, which computes them again.

    Args:
        hidden: Last hidden states of the supervised tokens, ``[tokens, hidden]``.
        weight: Output embedding, ``[vocabulary, hidden]``; frozen or trainable.
        targets: Token ids, ``[tokens]`` int64.
        chunk_tokens: Tokens whose logits exist at a time.

    Returns:
        ``[tokens]`` float32 (float64 for float64 inputs).
    """
    # torch leaves Function.apply without types.
    found: Tensor = _ChunkedLogprobs.apply(  # type: ignore[no-untyped-call]
        hidden, weight, targets, chunk_tokens
    )
    return found


class _ChunkedLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, chunk_tokens: int
    ) -> Tensor:
        found = []
        for states, wanted in zip(
            hidden.split(chunk_tokens), targets.split(chunk_tokens), strict=True
        ):
            logits = _precise(states @ weight.T)
            found.append(logits.gather(1, wanted[:, None])[:, 0] - logits.logsumexp(1))
        ctx.save_for_backward(hidden, weight, targets)
        ctx.chunk_tokens = chunk_tokens
        return torch.cat(found)

    @staticmethod
    def backward(ctx: Any, *outputs: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, targets = ctx.saved_tensors
        [above] = outputs
        grad_hidden = torch.empty_like(hidden) if ctx.needs_input_grad[0] else None
        grad_weight = torch.zeros_like(weight) if ctx.needs_input_grad[1] else None
        for start in range(0, len(hidden), ctx.chunk_tokens):
            part = slice(start, start + ctx.chunk_tokens)
            states, wanted = hidden[part], targets[part]
            # d logp[target] / d logits = one_hot - softmax, in place of the chunk's logits.
            slope = _precise(states @ weight.T).softmax(1).neg_()
            slope[torch.arange(len(wanted), device=wanted.device), wanted] += 1
            slope = (slope * above[part, None]).to(hidden.dtype)
            if grad_hidden is not None:
                grad_hidden[part] = slope @ weight
            if grad_weight is not None:
                grad_weight += slope.T @ states
        return grad_hidden, grad_weight, None, None


def _precise(logits: Tensor) -> Tensor:
    return logits if logits.dtype == torch.float64 else logits.float()
