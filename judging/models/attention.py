"""Grouped-query attention as plain matrix products, for CPUs.

PyTorch's fused CPU kernel is made for long sequences. Rows here have about a hundred tokens and an
explicit mask, for which two batched products are enough. Query heads of a group are folded into
rows, so keys and values are never repeated.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

GROUPED = "custos_grouped"


def grouped_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor,
    scaling: float,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Compute masked attention; arguments and result are those of transformers' functions.

    Args:
        module: The attention layer (unused).
        query: ``[batch, heads, queries, head_dim]``.
        key: ``[batch, kv_heads, keys, head_dim]``.
        value: As ``key``.
        attention_mask: Additive, ``[batch, 1, queries, keys]``, in ``query``'s dtype.
        scaling: Factor on the scores.
        dropout: Must be zero: Qwen-VL has no attention dropout.
        kwargs: Arguments of other implementations (unused).

    Returns:
        ``[batch, queries, heads, head_dim]`` and no weights.
    """
    batch, heads, queries, head_dim = query.shape
    kv_heads, keys = key.shape[1], key.shape[2]
    group = heads // kv_heads
    folded = (query * scaling).reshape(batch, kv_heads, group * queries, head_dim)
    scores = torch.matmul(folded, key.transpose(-1, -2))
    scores = scores.view(batch, kv_heads, group, queries, keys) + attention_mask.unsqueeze(2)
    weights = torch.softmax(scores, dim=-1).view(batch, kv_heads, group * queries, keys)
    out = torch.matmul(weights, value).view(batch, heads, queries, head_dim)
    return out.transpose(1, 2).contiguous(), None
