"""The device of a model: its GPU, its cores, and the number format that it computes in."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judging.errors import CustosError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

ALLOCATOR = "PYTORCH_ALLOC_CONF"
"""Environment variable with the settings of PyTorch's memory, read when it first allocates."""


def use_device(asked: str | torch.device | None = None) -> torch.device:
    """Return the device asked for, by default a GPU if there is one, ready for the first tensor.

    On a GPU, memory grows in segments, because batches of other sizes would leave holes in it, and
    cuDNN computes no attention: it plans anew for every shape, and shapes here hardly repeat.
    float32 is computed in full. Raises ``CustosError`` as :func:`has_gpu`, unless the CPU is asked
    for.
    """
    import torch

    if asked is None and not has_gpu():
        return torch.device("cpu")
    device = torch.device(asked or "cuda")
    if device.type == "cuda" and has_gpu():
        if not {ALLOCATOR, "PYTORCH_CUDA_ALLOC_CONF"} & os.environ.keys():
            os.environ[ALLOCATOR] = "expandable_segments:True"
        torch.backends.cuda.enable_cudnn_sdp(False)
        # A judge in float32 would read its pictures, which are convolved, with 10 bits of 23.
        torch.backends.cudnn.allow_tf32 = False
    return device


def has_gpu() -> bool:
    """Tell whether there is a GPU; raise ``CustosError`` if PyTorch cannot use the one there is."""
    import torch

    if torch.cuda.is_available():
        return True
    if count := torch.cuda.device_count():
        raise CustosError(
            f"this machine has {count} GPU{'s' * (count > 1)}, but PyTorch for CUDA "
            f"{torch.version.cuda} cannot use {'them' if count > 1 else 'it'}: "
            "update the driver, install a build for an older CUDA (pip install "
            f"torch=={torch.__version__.partition('+')[0]} --index-url "
            "https://download.pytorch.org/whl/cu126), or set CUDA_VISIBLE_DEVICES= for the CPU"
        )
    return False


def device_name(device: torch.device) -> str:
    """Return a device for people: ``cpu``, or ``cuda`` with the model of the GPU."""
    import torch

    return f"cuda, {torch.cuda.get_device_name(device)}" if device.type == "cuda" else device.type


def move_model(model: Any, device: torch.device) -> Any:
    """Move a model to a device; raise ``CustosError`` if its weights do not fit there."""
    import torch

    try:
        return model.to(device)
    except torch.OutOfMemoryError:
        size = sum(parameter.nbytes for parameter in model.parameters()) / 2**30
        raise CustosError(
            f"the weights take {size:.1f} GiB, for which {device_name(device)} has too little free "
            "memory: end other programs on it, choose a smaller backbone or a larger GPU, or set "
            "CUDA_VISIBLE_DEVICES= for the CPU"
        ) from None


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor to a device; this thread does not wait for the work before it on a GPU."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        tensor = tensor.pin_memory()  # from other memory the copy would wait
    return tensor.to(device, non_blocking=True)


CGROUP = Path("/sys/fs/cgroup")
"""Where a container sees the files of its own control group."""


def num_cores(cgroup: Path = CGROUP) -> int:
    """Count the cores that this process may use: those it may run on, or fewer under a quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(cores or 1, _quota(cgroup) or cores or 1)


def _quota(cgroup: Path) -> int | None:
    """Return the cores that a control group may use at once, rounded up; ``None`` without limit."""
    texts = [
        _text(cgroup / "cpu.max"),
        f"{_text(cgroup / 'cpu/cpu.cfs_quota_us')} {_text(cgroup / 'cpu/cpu.cfs_period_us')}",
    ]
    for text in texts:
        match text.split():
            case [quota, period] if quota.isdecimal() and period.isdecimal():  # not max, not -1
                return max(1, math.ceil(int(quota) / int(period)))
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


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
    """Tell whether a device multiplies bfloat16 matrices faster than float32 ones.

    A CPU without instructions for it is much slower in bfloat16, and so is one of Intel that has
    those of AVX-512 and no AMX (docs/serving.md). It holds and multiplies rounded weights in
    float32, so nothing else is rounded. The kind of CPU decides, not a timing: verdicts must not
    depend on how busy the machine is.
    """
    import torch

    if device.type != "cpu":
        return True
    capabilities = torch.cpu.get_capabilities()
    is_intel = "Intel" in capabilities.get("cpu_name", "")
    names = _FAST_BFLOAT16 if is_intel else (*_FAST_BFLOAT16, "avx512_bf16")
    return any(capabilities.get(name) for name in names)
