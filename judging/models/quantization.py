"""Backbones in four bits, on which an adapter is trained with less memory (QLoRA).

NF4 with double quantisation (Dettmers et al. 2023) of the linear layers of the text tower, by
bitsandbytes. A judge is never loaded so: its adapter is merged into the weights of the checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Literal

from judging.errors import CustosError

Quantization = Literal["nf4"]
BITS = 4 + 8 / 64 + 32 / (64 * 256)
"""Bits of a weight: its own, and its share of the scales of 64 weights and of 256 scales."""


def check_bitsandbytes(key: str) -> None:
    """Raise ``CustosError`` if bitsandbytes, for which a recipe's key asks, is not installed."""
    if find_spec("bitsandbytes") is None:
        raise CustosError(f"{key}: bitsandbytes is not installed; pip install bitsandbytes")


def check_quantization(name: str, config: Any) -> None:
    """Raise ``CustosError`` if a backbone cannot be quantized, before its weights are loaded."""
    check_bitsandbytes("run.quantization=nf4")
    if "moe" in config.model_type:
        raise CustosError(
            f"run.quantization=nf4: the experts of backbone '{name}' would stay as they are, which "
            f"saves little; choose a dense backbone or leave the key out"
        )


def quantized_layers(model: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield the layers that are quantized: the parent, the name in it, and the layer."""
    from torch import nn

    text = getattr(model.model, "language_model", model.model)
    for parent in list(text.layers.modules()):
        for name, layer in list(parent.named_children()):
            if type(layer) is nn.Linear:
                yield parent, name, layer


def quantize(model: Any) -> None:
    """Replace the linear layers of the text tower, which become NF4 when they reach a device."""
    from bitsandbytes.nn import Linear4bit

    for parent, name, layer in quantized_layers(model):
        quantized = Linear4bit(
            layer.in_features,
            layer.out_features,
            bias=layer.bias is not None,
            compute_dtype=layer.weight.dtype,
            quant_type="nf4",
            device="meta",
        )
        quantized.weight = type(quantized.weight)(
            layer.weight.data,
            requires_grad=False,
            compress_statistics=True,
            quant_type="nf4",
            module=quantized,
        )
        quantized.bias = layer.bias
        # Otherwise validation would pack the weights anew for some CPUs, and training unpack them.
        quantized.support_avx512bf16_for_cpu = False
        setattr(parent, name, quantized.train(layer.training))
    model.is_loaded_in_4bit = True  # PEFT asks for it


def num_weights(parameter: Any) -> int:
    """Return how many weights a parameter holds, quantized or not."""
    state = getattr(parameter, "quant_state", None)
    return int(state.shape.numel() if state else parameter.numel())
