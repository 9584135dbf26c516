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

    A CPU without instructions for it is much slower in bfloat16, and so is one of Intel that has
    those of AVX-512 and no AMX (docs/serving.md).
    Such a CPU holds and multiplies rounded weights in float32, so nothing else is rounded. The kind
    of CPU decides, not a timing: verdicts must not depend on how busy the machine is.
    """
    import torch

    if device.type != "cpu":
        return True
    capabilities = torch.cpu.get_capabilities()
    is_intel = "Intel" in capabilities.get("cpu_name", "")
    names = _FAST_BFLOAT16 if is_intel else (*_FAST_BFLOAT16, "avx512_bf16")
    return any(capabilities.get(name) for name in names)
