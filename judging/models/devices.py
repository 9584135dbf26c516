"""The device of a model: whether PyTorch can use the GPUs of a machine, and how it uses them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judging.errors import CustosError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

DRIVER = Path("/proc/driver/nvidia/version")
ALLOCATOR = "PYTORCH_ALLOC_CONF"
"""Environment variable with the settings of PyTorch's memory, read when it first allocates."""


def use_device(asked: str | torch.device | None = None) -> torch.device:
    """Return the device asked for, by default a GPU if there is one, ready for the first tensor.

    On a GPU, memory grows in segments, because batches of other sizes would leave holes in it, and
    cuDNN computes no attention: it plans anew for every shape, and shapes here hardly repeat.
    float32 is computed in full.

    Raises:
        CustosError: As :func:`has_gpu`, unless the CPU is asked for.
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
    """Return whether there is a GPU.

    Raises:
        CustosError: If there is one and PyTorch cannot use it, as with a driver that is too old.
    """
    import torch

    if torch.cuda.is_available():
        return True
    if count := torch.cuda.device_count():
        raise CustosError(
            f"this machine has {count} GPU{'s' * (count > 1)}, but PyTorch for CUDA "
            f"{torch.version.cuda} cannot use {'them' if count > 1 else 'it'} with {_driver()}: "
            "update the driver, install a build for an older CUDA (pip install "
            f"torch=={torch.__version__.partition('+')[0]} --index-url "
            "https://download.pytorch.org/whl/cu126), or set CUDA_VISIBLE_DEVICES= for the CPU"
        )
    return False


def _driver() -> str:
    """Return the NVIDIA driver with its version, if the kernel tells it."""
    try:
        words = DRIVER.read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        words = []
    version = next((word for word in words if word[:1].isdigit() and "." in word), "")
    return f"NVIDIA driver {version}" if version else "its NVIDIA driver"


def device_name(device: torch.device) -> str:
    """Return a device for people: ``cpu``, or ``cuda`` with the model of the GPU."""
    import torch

    return f"cuda, {torch.cuda.get_device_name(device)}" if device.type == "cuda" else device.type


def move_model(model: Any, device: torch.device) -> Any:
    """Move a model to a device.

    Raises:
        CustosError: If its weights do not fit into the memory there.
    """
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
