"""Attention in which only the last queries of a row need a mask; all before them are causal.

A prompt is read from left to right, and so is a text that follows it. Only the branches of a label
tree need a mask. The functions here therefore take a mask of the last queries alone, or none, where
transformers' own take one of all queries. They count keys before the first query, such as those of
a shared instruction, as earlier tokens that every query sees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import eager_mask
from transformers.utils import is_flash_attn_2_available, is_flash_attn_3_available

GROUPED = "custos_grouped"
"""For CPUs; see :func:`grouped_attention`."""
FUSED = "custos_fused"
"""For GPUs; see :func:`fused_attention`."""
FEW_PAIRS = 2**20
"""Pairs of a query and a key in a row below which two products under a mask of all queries are as
fast on a CPU as PyTorch's causal kernel (``python -m experiments attention_cost``)."""


def register_attention() -> None:
    """Make :data:`GROUPED` and :data:`FUSED` known to transformers."""
    for name, attend in ((GROUPED, grouped_attention), (FUSED, fused_attention)):
        AttentionInterface.register(name, attend)
        AttentionMaskInterface.register(name, _padding_mask)


def installed_flash() -> str | None:
    """Return transformers' name of the newest flash attention of this machine, if it has one.

    It comes with the package ``flash_attn`` or ``flash_attn_interface``. What the package
    ``kernels`` would download is not used: vision towers refuse it, and it is code of the hub.
    """
    if not torch.cuda.is_available():
        return None
    if is_flash_attn_3_available():
        return "flash_attention_3"
    if is_flash_attn_2_available():
        return "flash_attention_2"
    return None


def choose_attention(
    device: str, dtype: torch.dtype, flash: str | None, *, text_alone: bool = False
) -> dict[str, str]:
    """Return the attention of each part of a model, as ``set_attn_implementation`` takes it.

    On a GPU, text needs no package: PyTorch brings the flash kernel that :data:`FUSED` uses. The
    vision tower reads all pictures at once with flash attention, and one after the other without.

    Args:
        device: Type of the device, such as ``cuda``.
        dtype: Format that the model computes in; flash kernels take no float32.
        flash: Flash attention that is installed (:func:`installed_flash`).
        text_alone: Whether the model has no vision tower.
    """
    takes_flash = device == "cuda" and dtype != torch.float32
    text = GROUPED if device == "cpu" else FUSED
    if text_alone:
        return {"": text}  # the library's name of the model itself
    return {
        "text_config": text,
        "vision_config": (flash if takes_flash else None) or "sdpa",
    }


def describe_attention(model: Any) -> str:
    """Return the attention of a model's parts for people: ``text NAME, vision NAME``."""
    text, vision = _text_attention(model), getattr(model.config, "vision_config", None)
    if vision is None:
        return attention_line({"": text})
    return attention_line({"text_config": text, "vision_config": vision._attn_implementation})


def enabled_kernels() -> str:
    """Return the kernels that PyTorch chooses from for attention on a GPU: ``flash, math``."""
    kernels = ("flash", "mem_efficient", "cudnn", "math")
    is_enabled = {name: getattr(torch.backends.cuda, f"{name}_sdp_enabled") for name in kernels}
    return ", ".join(name for name in kernels if is_enabled[name]())


def attention_line(chosen: Mapping[str, str]) -> str:
    """Return what :func:`choose_attention` chose, for people."""
    names = {"": "text", "text_config": "text", "vision_config": "vision"}
    return ", ".join(f"{names[part]} {name}" for part, name in chosen.items())


def _text_attention(model: Any) -> str:
    name: str = model.config.get_text_config()._attn_implementation
    return name


def first_masked_query(model: Any, num_causal: int, queries: int, keys: int) -> int:
    """Return from which query on a model needs a mask, ``queries`` if it needs none.

    Args:
        model: Backbone.
        num_causal: Queries at the start of every row that see all that comes before them.
        queries: Queries of a row.
        keys: Keys of a row, those of a shared instruction included.
    """
    name = _text_attention(model)
    if name == GROUPED and queries * keys < FEW_PAIRS:
        return 0
    if num_causal < queries and name not in (GROUPED, FUSED):
        return 0
    return num_causal


def grouped_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Compute attention, under the mask as plain matrix products, for CPUs.

    PyTorch's fused CPU kernel is made for long sequences. Most rows here have about a hundred
    tokens and an explicit mask, for which two batched products are enough. Query heads of a group
    are folded into rows, so keys and values are never repeated.

    Args:
        module: The attention layer (unused).
        query: ``[batch, heads, queries, head_dim]``.
        key: ``[batch, kv_heads, keys, head_dim]``, ``keys >= queries``.
        value: As ``key``.
        attention_mask: Additive, ``[batch or 1, 1, masked, keys]``, in ``query``'s dtype, for the
            last queries; those before are causal. All are causal if it is ``None``.
        scaling: Factor on the scores.
        kwargs: Arguments of other implementations (unused); Qwen-VL has no attention dropout.

    Returns:
        ``[batch, queries, heads, head_dim]`` and no weights.
    """
    return _attend(_products, query, key, value, attention_mask, scaling), None


def fused_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Compute attention with PyTorch's fused kernels, for GPUs.

    Causal queries need no mask, so PyTorch may choose its flash kernel. Arguments and result are
    those of :func:`grouped_attention`.
    """

    def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float) -> Tensor:
        out: Tensor = sdpa_attention_forward(module, query, key, value, mask, scaling=scaling)[0]
        return out

    return _attend(attend, query, key, value, attention_mask, scaling), None


def _attend(
    masked_attention: Callable[[Tensor, Tensor, Tensor, Tensor, float], Tensor],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scaling: float,
) -> Tensor:
    """Compute causal attention, and that of the masked queries with a function of its own."""
    num_causal = query.shape[2] - (0 if mask is None else mask.shape[2])
    parts = []
    if num_causal:
        seen = key.shape[2] - query.shape[2] + num_causal
        parts.append(
            _causal(query[:, :, :num_causal], key[:, :, :seen], value[:, :, :seen], scaling)
        )
    if mask is not None:
        parts.append(masked_attention(query[:, :, num_causal:], key, value, mask, scaling))
    return torch.cat(parts, dim=1) if len(parts) > 1 else parts[0]


def _causal(query: Tensor, key: Tensor, value: Tensor, scaling: float) -> Tensor:
    """Compute attention in which the last query sees all keys, and each before it one key less.

    PyTorch's flash kernels align query and key of the same number, so queries that are thrown away
    stand in for keys without one: they are few, and a mask would rule those kernels out.
    """
    past = key.shape[2] - query.shape[2]
    out = scaled_dot_product_attention(
        pad(query, (0, 0, past, 0)), key, value, is_causal=True, scale=scaling, enable_gqa=True
    )
    return out[:, :, past:].transpose(1, 2).contiguous()


def _products(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float) -> Tensor:
    """Compute attention under an additive mask as two batched matrix products."""
    batch, heads, queries, head_dim = query.shape
    kv_heads, keys = key.shape[1], key.shape[2]
    group = heads // kv_heads
    folded = (query * scaling).reshape(batch, kv_heads, group * queries, head_dim)
    scores = torch.matmul(folded, key.transpose(-1, -2))
    scores = scores.view(batch, kv_heads, group, queries, keys) + mask.unsqueeze(2)
    weights = torch.softmax(scores, dim=-1).view(batch, kv_heads, group * queries, keys)
    out = torch.matmul(weights, value).view(batch, heads, queries, head_dim)
    return out.transpose(1, 2).contiguous()


def _padding_mask(attention_mask: Tensor | None = None, **arguments: Any) -> Tensor | None:
    """Return a mask of all queries where the caller names padding, otherwise none."""
    if attention_mask is None:
        return None
    mask: Tensor = eager_mask(attention_mask=attention_mask, **arguments)
    return mask
