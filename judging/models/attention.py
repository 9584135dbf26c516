"""Attention of text and of pictures, by device.

A prompt is read from left to right, and so is a text that follows it. Only the branches of a label
tree need a mask. The functions here therefore take a mask of the last queries alone, or none, where
transformers' own take one of all queries. They count keys before the first query, such as those of
a shared instruction, as earlier tokens that every query sees.

A vision tower reads the patches of all pictures in one row, and each patch sees those of its own
picture or, in most layers of Qwen2.5-VL, of its own window.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import pad, scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import eager_mask

GROUPED = "custos_grouped"
"""For CPUs: masked queries are plain matrix products."""
FUSED = "custos_fused"
"""For GPUs: causal queries need no mask, so PyTorch may choose its flash kernel."""
VARLEN = "custos_flash_varlen"
"""For pictures on GPUs; see :func:`varlen_attention`. Only to attention with ``flash`` in its name
does transformers hand the pictures of a batch together."""
FLASH_SINCE = (8, 0)
"""Oldest compute capability (Ampere) that PyTorch's flash kernel runs on."""
WITHOUT_KERNELS = (
    "the recurrent layers of this backbone run in plain PyTorch, which is much slower on a GPU: "
    "pip install flash-linear-attention"
)
FEW_PAIRS = 2**20
"""Pairs of a query and a key in a row below which two products under a mask of all queries are as
fast on a CPU as PyTorch's causal kernel."""


def register_attention() -> None:
    """Make :data:`GROUPED`, :data:`FUSED` and :data:`VARLEN` known to transformers."""
    AttentionInterface.register(VARLEN, varlen_attention)
    for name, attend in ((GROUPED, grouped_attention), (FUSED, fused_attention)):
        AttentionInterface.register(name, attend)
        AttentionMaskInterface.register(name, _padding_mask)


def choose_attention(config: Any, device: torch.device, dtype: torch.dtype) -> dict[str, str]:
    """Return the attention of each part of a model, as ``set_attn_implementation`` takes it.

    No package is needed: PyTorch brings the flash kernel that :data:`FUSED` and :data:`VARLEN` use,
    which takes no float32. Elsewhere the vision tower reads picture by picture and window by
    window, which is faster on a CPU than windows of one size together. Without a GPU here, one of
    today is assumed.
    """
    text = GROUPED if device.type == "cpu" else FUSED
    if getattr(config, "vision_config", None) is None:
        return {"": text}  # the library's name of the model itself
    takes_flash = device.type == "cuda" and dtype != torch.float32
    if takes_flash and torch.cuda.is_available():
        takes_flash = torch.cuda.get_device_capability(device) >= FLASH_SINCE
    return {"text_config": text, "vision_config": VARLEN if takes_flash else "sdpa"}


def describe_attention(model: Any) -> str:
    """Return the attention of a model's parts for people: ``text NAME, vision NAME``."""
    line, vision = f"text {_text_attention(model)}", getattr(model.config, "vision_config", None)
    return line if vision is None else f"{line}, vision {vision._attn_implementation}"


def enabled_kernels() -> str:
    """Return the kernels that PyTorch chooses from for attention on a GPU: ``flash, math``."""
    kernels = ("flash", "mem_efficient", "cudnn", "math")
    is_enabled = {name: getattr(torch.backends.cuda, f"{name}_sdp_enabled") for name in kernels}
    return ", ".join(name for name in kernels if is_enabled[name]())


def attention_line(chosen: Mapping[str, str]) -> str:
    """Tell what :func:`choose_attention` chose, for people."""
    names = {"": "text", "text_config": "text", "vision_config": "vision"}
    return ", ".join(f"{names[part]} {name}" for part, name in chosen.items())


def _text_attention(model: Any) -> str:
    name: str = model.config.get_text_config()._attn_implementation
    return name


def is_recurrent(model: Any) -> bool:
    """Tell whether some layers of a backbone are recurrent (Qwen3.5)."""
    layers = getattr(model.config.get_text_config(), "layer_types", None) or ()
    return "linear_attention" in layers


def missing_kernels_line(model: Any, device: torch.device) -> str | None:
    """Tell what to install for recurrent layers that a GPU computes slowly, if anything."""
    if device.type != "cuda" or not is_recurrent(model):
        return None
    try:
        kernel = import_module("fla.ops.gated_delta_rule").chunk_gated_delta_rule
    except Exception:  # noqa: BLE001 -- whatever it is, transformers goes on without the package
        kernel = None
    return None if kernel else WITHOUT_KERNELS


def first_masked_query(model: Any, num_causal: int, queries: int, keys: int) -> int:
    """Return from which query on a model needs a mask, ``queries`` if it needs none.

    The first ``num_causal`` queries of every row see all that comes before them; ``keys`` counts
    those of a shared instruction too.
    """
    name = _text_attention(model)
    if name == GROUPED and queries * keys < FEW_PAIRS:
        return 0
    if num_causal < queries and name not in (GROUPED, FUSED):
        return 0
    return num_causal


def varlen_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: None,
    scaling: float,
    *,
    cu_seq_lens_q: Tensor,
    max_length_q: int,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Compute attention within each picture or window, all of them in one flash kernel.

    The host reads nothing back, as it must to cut a row into pieces. ``query``, ``key`` and
    ``value`` are ``[1, heads, patches, head_dim]`` in half precision, ``head_dim`` a multiple of 8;
    ``cu_seq_lens_q`` ``[pieces + 1]`` int32 is where each piece starts, and the end of the last.
    Returns ``[1, patches, heads, head_dim]`` and no weights.
    """
    ends, most = cu_seq_lens_q, max_length_q
    query, key, value = (tensor[0].transpose(0, 1) for tensor in (query, key, value))
    out = varlen_attn(query, key, value, ends, ends, most, most, scale=scaling)
    assert isinstance(out, Tensor)  # a pair only where more is asked for
    return out[None], None


def _attention(
    masked_attention: Callable[[nn.Module, Tensor, Tensor, Tensor, Tensor, float], Tensor],
) -> Callable[..., tuple[Tensor, None]]:
    """Make attention as transformers calls it: causal, and a function for masked queries.

    ``query`` is ``[batch, heads, queries, head_dim]``, ``key`` and ``value`` are ``[batch,
    kv_heads, keys, head_dim]``, ``keys >= queries``. ``attention_mask`` is additive, ``[batch or 1,
    1, masked, keys]`` in the dtype of ``query``, for the last queries; those before are causal, all
    if it is ``None``. The result is ``[batch, queries, heads, head_dim]`` and no weights.
    """

    def attend(
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        scaling: float,
        **kwargs: Any,  # of other implementations
    ) -> tuple[Tensor, None]:
        num_causal = query.shape[2] - (0 if attention_mask is None else attention_mask.shape[2])
        parts = []
        if num_causal:
            seen = key.shape[2] - query.shape[2] + num_causal
            parts.append(
                _causal(query[:, :, :num_causal], key[:, :, :seen], value[:, :, :seen], scaling)
            )
        if attention_mask is not None:
            last = query[:, :, num_causal:]
            parts.append(masked_attention(module, last, key, value, attention_mask, scaling))
        return torch.cat(parts, dim=1) if len(parts) > 1 else parts[0], None

    return attend


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


def _products(
    _: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float
) -> Tensor:
    """Compute attention under an additive mask as two batched matrix products.

    PyTorch's fused CPU kernel is made for long sequences. Most rows here have about a hundred
    tokens and an explicit mask, for which two products are enough. Query heads of a group are
    folded into rows, so keys and values are never repeated.
    """
    batch, heads, queries, head_dim = query.shape
    kv_heads, keys = key.shape[1], key.shape[2]
    group = heads // kv_heads
    folded = (query * scaling).reshape(batch, kv_heads, group * queries, head_dim)
    scores = torch.matmul(folded, key.transpose(-1, -2))
    scores = scores.view(batch, kv_heads, group, queries, keys) + mask.unsqueeze(2)
    weights = torch.softmax(scores, dim=-1).view(batch, kv_heads, group * queries, keys)
    out = torch.matmul(weights, value).view(batch, heads, queries, head_dim)
    return out.transpose(1, 2).contiguous()


def _fused(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float
) -> Tensor:
    """Compute attention under an additive mask with PyTorch's fused kernels."""
    out: Tensor = sdpa_attention_forward(module, query, key, value, mask, scaling=scaling)[0]
    return out


grouped_attention = _attention(_products)
fused_attention = _attention(_fused)


def _padding_mask(attention_mask: Tensor | None = None, **arguments: Any) -> Tensor | None:
    """Return a mask of all queries where the caller names padding, otherwise none."""
    if attention_mask is None:
        return None
    mask: Tensor = eager_mask(attention_mask=attention_mask, **arguments)
    return mask
