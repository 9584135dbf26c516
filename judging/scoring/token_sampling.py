"""Drawing the next token from a model's logits: greedy, by temperature, from a nucleus."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from judging.scoring.engine import Sampling

NUCLEUS_TOKENS = 256
"""Tokens among which a nucleus is sought before the whole vocabulary is sorted."""


def sample_tokens(
    logits: Tensor, sampling: Sampling, generators: Sequence[torch.Generator]
) -> list[int]:
    """Draw one token per row.

    Args:
        logits: ``[rows, vocabulary]`` float32.
        sampling: Temperature and nucleus.
        generators: One per row; unused at temperature 0.
    """
    if sampling.temperature == 0:
        return logits.argmax(-1).tolist()
    probabilities = (logits / sampling.temperature).softmax(-1)
    return [
        _sample_token(row, sampling.top_p, generator)
        for row, generator in zip(probabilities, generators, strict=True)
    ]


def _sample_token(probabilities: Tensor, top_p: float, generator: torch.Generator) -> int:
    """Return the token where a uniform number meets the cumulative distribution."""
    tokens = None
    if top_p < 1:
        probabilities, tokens = nucleus(probabilities, top_p)
    cumulative = probabilities.double().cumsum(0)
    uniform = torch.rand(1, generator=generator, dtype=torch.float64) * cumulative[-1]
    # A number so near 1 that the product rounds to the total would fall behind the last token.
    last = len(probabilities) - 1
    position = min(int(torch.searchsorted(cumulative, uniform, right=True)), last)
    return position if tokens is None else int(tokens[position])


def nucleus(probabilities: Tensor, top_p: float) -> tuple[Tensor, Tensor]:
    """Return the likeliest tokens, best first, up to the one that reaches a total probability.

    Args:
        probabilities: ``[vocabulary]``.
        top_p: Total to reach.

    Returns:
        Probabilities and ids of those tokens.
    """
    for width in (NUCLEUS_TOKENS, len(probabilities)):
        ordered, tokens = probabilities.topk(min(width, len(probabilities)))
        cumulative = ordered.cumsum(0)
        if cumulative[-1] >= top_p:
            break
    inside = cumulative - ordered < top_p
    return ordered[inside], tokens[inside]
