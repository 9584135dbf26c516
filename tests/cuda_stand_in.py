"""GPUs that ``torch.cuda`` reports and nothing runs on."""

from __future__ import annotations

import pytest
import torch


def with_gpus(monkeypatch: pytest.MonkeyPatch, count: int, *, usable: bool = True) -> None:
    """Have PyTorch report GPUs.

    Args:
        monkeypatch: The test's.
        count: GPUs that the driver lists.
        usable: Whether PyTorch can use them; a driver that is too old lists them all the same.
    """
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        monkeypatch.setenv(name, "")  # so that what is set meanwhile is taken back
        monkeypatch.delenv(name)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: usable and count > 0)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device=None: "NVIDIA Stand-in")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (9, 0))
