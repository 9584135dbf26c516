"""Calls in which the host would wait for a GPU, found without one.

Tensors on PyTorch's device ``meta`` stand in for those on a GPU: they have shapes and no data, so
forward and backward pass run, and what would have to read a value is seen.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

META = torch.device("meta")
aten = torch.ops.aten
INDEXED = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default}
INDEXED |= {aten._index_put_impl_.default, aten._unsafe_index_put.default}
COPIES = {aten._to_copy.default, aten.copy_.default}
READS = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
"""Tags of operators whose result depends on values: ``item``, ``nonzero``, ``unique``."""


class HostWait(AssertionError):
    """A call in which the host would wait for the GPU."""


@contextmanager
def no_host_waits() -> Iterator[None]:
    """Raise :class:`HostWait` where the host would wait for :data:`META` while the block runs."""
    with _Calls(), _Operators():  # type: ignore[no-untyped-call]  # torch's is untyped
        yield


@contextmanager
def no_gpu_waits() -> Iterator[None]:
    """Make any wait of the host for a GPU an error while the block runs, where there is a GPU."""
    if torch.cuda.is_available():
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        if torch.cuda.is_available():
            torch.cuda.set_sync_debug_mode("default")


class _Operators(TorchDispatchMode):
    """Looks at every operator, those of the backward pass included."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        given = kwargs or {}
        tensors = [value for value in _flat((args, given)) if isinstance(value, Tensor)]
        devices = {tensor.device for tensor in tensors} | _device_in(given)
        if META in devices and _waits(func, tensors, args, given, len(devices) > 1):
            raise HostWait(f"{func} waits for the device")
        return func(*args, **given)


class _Calls(TorchFunctionMode):
    """Looks at calls that copy Python's numbers to the device where no operator shows it."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        makes = (torch.tensor, torch.as_tensor, torch.asarray, Tensor.new_tensor)
        indexes = (Tensor.__getitem__, Tensor.__setitem__)
        result = func(*args, **(kwargs or {}))
        if func in makes and result.device == META and not _is_on_meta(args[-1]):
            raise HostWait(f"{func.__name__} copies numbers to the device")
        if func in indexes and args[0].device == META and _has_list(args[1]):
            raise HostWait("a list as an index is copied to the device")
        return result


def _waits(func: Any, tensors: list[Tensor], args: Any, given: Any, is_mixed: bool) -> bool:
    """Return whether an operator with a tensor on the device waits for it."""
    if func in COPIES:
        return is_mixed and not given.get("non_blocking", bool(args[2:]) and args[2])
    if func in INDEXED:  # by a mask: PyTorch counts it; from the host: it is copied
        masks = (torch.bool, torch.uint8)
        indices = [index for index in args[1] if index is not None]
        return any(i.dtype in masks or i.device != META for i in indices)
    if is_mixed and torch.Tag.pointwise in func.tags and func is not aten.where.self:
        return any(t.device != META and t.ndim > 0 for t in tensors)  # a number is handed over
    return is_mixed or not READS.isdisjoint(func.tags)


def _device_in(given: dict[str, Any]) -> set[torch.device]:
    return {torch.device(given["device"])} if given.get("device") is not None else set()


def _is_on_meta(value: Any) -> bool:
    return isinstance(value, Tensor) and value.device == META


def _has_list(index: Any) -> bool:
    return any(isinstance(part, list) for part in (index if isinstance(index, tuple) else (index,)))


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from _flat(part)
    elif isinstance(value, dict):
        yield from _flat(list(value.values()))
    else:
        yield value
