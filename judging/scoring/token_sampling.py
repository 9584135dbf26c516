"""Drawing the next token from a model's logits: greedy, by temperature, from a nucleus."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from judging.models.devices import to_device
from judging.scoring.engine import Sampling

NUCLEUS_TOKENS = 256
"""Tokens among which a nucleus is sought before the whole vocabulary is sorted."""
LEAST = 1e-30
"""Temperature and top_p below which the likeliest token is all that is left; float32 would take
numbers that are much smaller for 0."""


def sample_tokens(
    logits: Tensor, sampling: Sampling, generators: Sequence[torch.Generator]
) -> list[int]:
    """Draw one token per row, on the device of the logits.

    Args:
        logits: ``[rows, vocabulary]`` float32.
        sampling: Temperature and nucleus.
        generators: One per row, on the CPU: every device draws by the same numbers. Unused at
            temperature 0.
    """
    if sampling.temperature == 0:
        return logits.argmax(-1).tolist()
    numbers = [torch.rand(1, generator=each, dtype=torch.float64) for each in generators]
    uniform = to_device(torch.stack(numbers), logits.device)
    temperature, top_p = max(sampling.temperature, LEAST), max(sampling.top_p, LEAST)
    probabilities = (logits / temperature).softmax(-1)
    if top_p >= 1:
        # On a CPU the sums of one row stay in its cache.
        at_once = 1 if logits.device.type == "cpu" else len(logits)
        parts = zip(probabilities.split(at_once), uniform.split(at_once), strict=True)
        return torch.cat([_draw(*part) for part in parts])[:, 0].tolist()
    tokens = _draw_from_nucleus(probabilities, uniform, top_p, NUCLEUS_TOKENS)
    if wide := [row for row, token in enumerate(tokens) if token < 0]:
        rows = to_device(torch.tensor(wide), logits.device)
        drawn = _draw_from_nucleus(probabilities[rows], uniform[rows], top_p, logits.shape[1])
        for row, token in zip(wide, drawn, strict=True):
            tokens[row] = token
    return tokens


def _draw(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """Return where a uniform number meets each row's cumulative distribution.

    Args:
        probabilities: ``[rows, tokens]``, of any total.
        uniform: ``[rows, 1]`` float64, from 0 to below 1.

    Returns:
        Columns, ``[rows, 1]`` int64.
    """
    cumulative = probabilities.double().cumsum_(-1)
    # In float64 the product of a total and a number below 1 is below the total: no token of
    # probability 0 after the others is drawn.
    places = torch.searchsorted(cumulative, uniform * cumulative[:, -1:], right=True)
    return places.clamp(max=probabilities.shape[1] - 1)  # NaN would fall there, too


def _draw_from_nucleus(
    probabilities: Tensor, uniform: Tensor, top_p: float, width: int
) -> list[int]:
    """Draw one token per row from its nucleus; -1 where that is wider than ``width``.

    Args:
        probabilities: ``[rows, vocabulary]``.
        uniform: ``[rows, 1]`` float64, from 0 to below 1.
        top_p: Total that a nucleus reaches.
        width: Most tokens of a nucleus.
    """
    inside, tokens, is_whole = nuclei(probabilities, top_p, width)
    drawn = tokens.gather(1, _draw(inside, uniform))
    found: list[int] = torch.where(is_whole, drawn, -1)[:, 0].tolist()
    return found


def nuclei(probabilities: Tensor, top_p: float, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Find each row's likeliest tokens, best first, up to the one that reaches a total probability.

    Args:
        probabilities: ``[rows, vocabulary]``.
        top_p: Total to reach.
        width: Most tokens of a nucleus.

    Returns:
        Probabilities, 0 outside the nucleus, and ids of the likeliest tokens, ``[rows, width]``
        both; and whether no further token belongs to the nucleus, ``[rows, 1]``.
    """
    vocabulary = probabilities.shape[1]
    ordered, tokens = probabilities.topk(min(width, vocabulary))
    cumulative = ordered.cumsum(-1)
    is_whole = cumulative[:, -1:] >= top_p
    if width >= vocabulary:
        is_whole = torch.ones_like(is_whole)  # though rounding may keep the total below 1
    return ordered.where(cumulative - ordered < top_p, 0), tokens, is_whole
