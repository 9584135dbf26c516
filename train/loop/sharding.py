"""Sharding of a model over the processes of a run: each holds a part of every text layer (FSDP2).

A layer is put together when it is run and taken apart afterwards, so every process must run as many
passes as the others. The frozen vision tower stays whole on each of them: then it does not matter
which of them has pictures in a pass.

PyTorch's ``fully_shard`` is called here and not through accelerate, which trains plain copies on a
CPU whatever it is asked. So the tests, which run on a CPU, test what a GPU runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from transformers.modeling_layers import GradientCheckpointingLayer

_TOWER = ".visual"


class ShardingAccelerator(Accelerator):  # type: ignore[misc]  # accelerate has no types
    """An accelerator of several processes that shards a model instead of copying it to each."""

    def prepare_model(self, model: nn.Module, *_: Any, **__: Any) -> nn.Module:
        """Shard a model; the optimizer must be made of its parameters afterwards."""
        # For evaluation accelerate adds its autocast and nothing that copies gradients.
        super().prepare_model(model, device_placement=False, evaluation_mode=True)
        shard(model, self.device)
        return model


def is_sharded(accelerator: Accelerator) -> bool:
    """Return whether the processes of an accelerator hold parts of a model, not copies."""
    return isinstance(accelerator, ShardingAccelerator)


def first_device(accelerator: Accelerator) -> torch.device:
    """Return the device that a model is loaded to: one that is sharded need not fit on a GPU."""
    return torch.device("cpu") if is_sharded(accelerator) else accelerator.device


def shard(model: nn.Module, device: torch.device) -> None:
    """Shard the text layers of a model one by one, and what is left of it as a last part.

    Args:
        model: Adapted tree model; it stays the same object.
        device: Device that the parts move to.
    """
    mesh = init_device_mesh(device.type, (torch.distributed.get_world_size(),))
    for name, module in model.named_modules():
        if name.endswith(_TOWER):
            module.to(device)
    for layer in list(text_layers(model)):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh, ignored_params=set(tower_parameters(model)))


def text_layers(model: nn.Module) -> Iterator[nn.Module]:
    """Yield the layers of a model that are sharded one by one."""
    for name, module in model.named_modules():
        if isinstance(module, GradientCheckpointingLayer) and f"{_TOWER}." not in name:
            yield module


def tower_parameters(model: nn.Module) -> Iterator[nn.Parameter]:
    """Yield the parameters of a model that every process holds whole."""
    for name, parameter in model.named_parameters():
        if f"{_TOWER}." in name:
            yield parameter


def whole(tensor: Tensor) -> Tensor:
    """Return a tensor put together from all processes, if it is sharded; all must ask for it."""
    return (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).detach()


def like(tensor: Tensor, parameter: Tensor) -> Tensor:
    """Return a whole tensor where a parameter is; of a sharded one this process's part of it."""
    moved = tensor.to(parameter.device)
    if not isinstance(parameter, DTensor):
        return moved
    mesh, placements = parameter.device_mesh, parameter.placements
    return distribute_tensor(moved, mesh, placements, src_data_rank=None)  # each has all of it


def free_parts(model: nn.Module) -> None:
    """Free the memory of a sharded model's parts, which its hooks would keep."""
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.reshard()
    for parameter in model.parameters():
        if isinstance(parameter, DTensor):
            parameter.to_local().untyped_storage().resize_(0)
