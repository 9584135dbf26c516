"""The number format that a device computes in, whatever the weights are rounded to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from judging.models.cpu_cores import num_cores

if TYPE_CHECKING:
    import torch

_FAST_BFLOAT16 = ("amx_bf16", "bf16")  # x86, ARM


def computed_in(model: Any) -> str:
    """Return the name of the dtype that a model computes in."""
    return str(model.dtype).removeprefix("torch.")


def use_cores_of_quota() -> None:
    """Have torch use no more threads than a container's quota has cores, unless the user says so.

    Threads above the quota take turns: each waits for the others, and all are stopped together.
    """
    import torch

    if "OMP_NUM_THREADS" not in os.environ and torch.get_num_threads() > num_cores():
        torch.set_num_threads(num_cores())


def computes_bfloat16(device: torch.device) -> bool:
    """Return whether a device multiplies bfloat16 matrices faster than float32 ones.

    A CPU without instructions for it is much slower in bfloat16 (``python -m experiments
    dtype_speed``). It holds and multiplies rounded weights in float32, so nothing else is rounded.
    So does an Intel CPU with AVX-512's instructions and without AMX: it multiplies bfloat16 at half
    the speed of float32, as measured. The CPU's kind decides, and no timing, so that verdicts do
    not depend on how busy the machine was.
    """
    import torch

    if device.type != "cpu":
        return True
    capabilities = torch.cpu.get_capabilities()
    if any(capabilities.get(name) for name in _FAST_BFLOAT16):
        return True
    is_intel = "Intel" in capabilities.get("cpu_name", "")
    return bool(capabilities.get("avx512_bf16")) and not is_intel
