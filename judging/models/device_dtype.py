"""What a device computes in, whatever the weights are rounded to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_BFLOAT16_INSTRUCTIONS = ("avx512_bf16", "amx_bf16", "bf16")  # x86, x86, ARM


def computed_in(model: Any) -> str:
    """Name of the dtype that a model computes in."""
    return str(model.dtype).removeprefix("torch.")


def computes_bfloat16(device: torch.device) -> bool:
    """Whether a device multiplies bfloat16 matrices faster than float32 ones.

    A CPU without instructions for it is slower by far (``python -m experiments.cost.dtype_speed``).
    There, weights rounded to bfloat16 are held and multiplied in float32: the same weights, nothing
    else rounded.
    """
    import torch

    if device.type != "cpu":
        return True
    known = torch.cpu.get_capabilities()
    return any(known.get(name) for name in _BFLOAT16_INSTRUCTIONS)
