"""Token log-probabilities of long texts, without holding the logits of all their tokens."""

from typing import Any

import torch
from torch import Tensor

from losses.precision import at_least_float32

CHUNK_TOKENS = 256


def chunked_token_logprobs(
    hidden: Tensor, weight: Tensor, targets: Tensor, chunk_tokens: int = CHUNK_TOKENS
) -> Tensor:
    """Compute ``log_softmax(hidden @ weight.T)`` at the targets, a chunk of tokens at a time.

    Value and gradient equal those of the plain expression up to rounding. Only one chunk's logits
    are in memory at a time: the backward pass computes them again.

    Args:
        hidden: Last hidden states of the supervised tokens, ``[tokens, hidden]``.
        weight: Output embedding, ``[vocabulary, hidden]``; frozen or trainable.
        targets: Token ids, ``[tokens]`` int64.
        chunk_tokens: Tokens whose logits exist at a time.

    Returns:
        ``[tokens]`` float32 (float64 for float64 inputs).
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
