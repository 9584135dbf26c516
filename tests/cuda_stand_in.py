"""GPUs that ``torch.cuda`` reports and nothing runs on."""

import functools
from collections.abc import Callable
from typing import Any

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


class CountedCopies:
    """Copies of tensors to the host that wait for a GPU, as they would be made there.

    Attributes:
        sizes: Numbers in each copy, in order.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        for name in ("tolist", "item", "cpu", "numpy", "__bool__", "__int__", "__float__"):
            monkeypatch.setattr(torch.Tensor, name, self._counted(getattr(torch.Tensor, name)))

    def _counted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def copy(tensor: torch.Tensor, *arguments: Any, **options: Any) -> Any:
            self.sizes.append(tensor.numel())
            return method(tensor, *arguments, **options)

        return copy
