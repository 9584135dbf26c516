"""A model, or its gradients and moments, divided among the processes of a run (FSDP2, ZeRO)."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.optimizer import AcceleratedOptimizer
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from transformers.modeling_layers import GradientCheckpointingLayer

_TOWER = ".visual"


class ShardingAccelerator(Accelerator):  # type: ignore[misc]  # accelerate has no types
    """An accelerator of several processes that shards a model instead of copying it to each.

    A layer is put together when it is run and taken apart afterwards, so every process must run as
    many passes as the others. The frozen vision tower stays whole on every process, because in a
    pass only some may have pictures. ``fully_shard`` is called here and not through accelerate,
    which trains plain copies on a CPU. So the tests, on a CPU, test what a GPU runs.
    """

    def prepare_model(self, model: nn.Module, *_: Any, **__: Any) -> nn.Module:
        """Shard a model; the optimizer must be made of its parameters afterwards."""
        # In evaluation mode accelerate adds autocast and nothing that exchanges gradients.
        super().prepare_model(model, device_placement=False, evaluation_mode=True)
        shard(model, self.device)
        return model


def is_sharded(accelerator: Accelerator) -> bool:
    """Tell whether the processes of an accelerator hold parts of a model, not copies."""
    return isinstance(accelerator, ShardingAccelerator)


def shard(model: nn.Module, device: torch.device) -> None:
    """Shard the text layers of a model one by one onto a device, and the rest as a last part."""
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
    """Put a tensor together from all processes, if it is sharded; all must call this."""
    return (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).detach()


def like(tensor: Tensor, parameter: Tensor) -> Tensor:
    """Lay out a whole tensor like a parameter: on its device, and sharded if the parameter is."""
    moved = tensor.to(parameter.device)
    if not isinstance(parameter, DTensor):
        return moved
    mesh, placements = parameter.device_mesh, parameter.placements
    return distribute_tensor(moved, mesh, placements, src_data_rank=None)  # every process has all


def free_weights(model: nn.Module) -> None:
    """Replace all parameters of a model, or of its parts, by empty ones."""
    for module in model.modules():
        if isinstance(module, FSDPModule):  # its hooks would keep the parts
            module.reshard()
    for parameter in model.parameters():
        if isinstance(parameter, DTensor):
            parameter.to_local().untyped_storage().resize_(0)
    for module in model.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            # Weights of 4 bits cannot be moved with to().
            empty = torch.empty(parameter.shape, dtype=parameter.dtype, device="meta")
            setattr(module, name, nn.Parameter(empty, requires_grad=False))


_BUCKET = 2**24
"""Most gradients that are added up at once, in a buffer of as many numbers."""


class ZeroOptimizer:
    """The optimizer of a DeepSpeed engine, which steps on this process's part of the weights.

    There is one group of parameters, in float32.
    """

    def __init__(self, engine: Any) -> None:
        self._divided = engine.optimizer

    @property
    def state(self) -> Mapping[Tensor, dict[str, Tensor]]:
        """Return the optimizer's state, whose only key is this process's part of the weights."""
        state: Mapping[Tensor, dict[str, Tensor]] = self._divided.state
        return state

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """List the groups, whose ``lr`` may be set; their only parameter is a flat part."""
        groups: list[dict[str, Any]] = self._divided.param_groups
        return groups

    def step(self, closure: None = None) -> None:
        """Clip the gradient, step, and give every process the new weights of the others."""
        self._divided.step(closure)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        self._divided.zero_grad(set_to_none)

    def state_tensors(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """Put together the state of a parameter; all processes must call this."""
        from deepspeed.utils import safe_get_full_optimizer_state

        part, state = self._state()
        return {
            key: safe_get_full_optimizer_state(parameter, key)
            if value.shape == part.shape
            else value.clone()
            for key, value in state.items()
        }

    def set_state(self, parameter: nn.Parameter, tensors: Mapping[str, Tensor]) -> None:
        """Restore what :meth:`state_tensors` returned, and take the parameter as it is now."""
        from deepspeed.utils import safe_set_full_fp32_param, safe_set_full_optimizer_state

        part, state = self._state()
        moments = {key for key, tensor in tensors.items() if tensor.shape == parameter.shape}
        if not state:
            for key, tensor in tensors.items():
                state[key] = torch.zeros_like(part) if key in moments else tensor.cpu()
            self._divided._lazy_init_hp_params_optimizer_state()  # as its own first step does
        safe_set_full_fp32_param(parameter, parameter.detach())
        for key in moments:
            safe_set_full_optimizer_state(parameter, tensors[key].to(part.device), key)

    def _state(self) -> tuple[Tensor, dict[str, Tensor]]:
        """Find this process's part of the weights, ``[numbers]``, and its state."""
        [part] = self.param_groups[0]["params"]
        return part, self.state[part]


class ZeroAccelerator(Accelerator):  # type: ignore[misc]  # accelerate has no types
    """An accelerator of several processes that divide gradients and moments (ZeRO, stage 2).

    Each holds the whole model, and its part of the gradients and moments. Gradients are added up in
    every backward pass, so each must make as many as the others. DeepSpeed is called here and not
    through accelerate, which steps within the backward pass, before the loop sees the norm of the
    gradient, and which trains plain copies on a CPU.
    """

    _engine: Any = None

    def prepare_together(
        self, model: nn.Module, optimizer: torch.optim.Optimizer
    ) -> tuple[nn.Module, AcceleratedOptimizer]:
        """Prepare a model and the torch optimizer of its trainable parameters, in float32."""
        import deepspeed

        deepspeed.utils.logger.setLevel(logging.ERROR)
        # DeepSpeed warns of its own calls in every step.
        warnings.filterwarnings("ignore", ".*all_gather_into_tensor. is deprecated", FutureWarning)
        # In evaluation mode accelerate adds autocast and nothing that exchanges gradients.
        model = self.prepare_model(model, evaluation_mode=True)
        learnt = sum(p.numel() for group in optimizer.param_groups for p in group["params"])
        config = {
            "train_micro_batch_size_per_gpu": 1,  # has no effect: batches are our own
            "zero_optimization": {"stage": 2, "reduce_bucket_size": min(_BUCKET, learnt)},
            "zero_allow_untested_optimizer": True,
        }
        self._engine = deepspeed.initialize(model=model, optimizer=optimizer, config=config)[0]
        divided = ZeroOptimizer(self._engine)
        return self._engine, AcceleratedOptimizer(divided, device_placement=False)

    @contextmanager
    def no_sync(self, model: Any) -> Iterator[None]:
        """Add the gradients of the block to those of the step; more of the step will follow."""
        model.set_gradient_accumulation_boundary(False)
        try:
            yield
        finally:
            model.set_gradient_accumulation_boundary(True)

    def backward(self, loss: Tensor, **_: Any) -> None:
        """Compute gradients and average them over all processes."""
        self._engine.backward(loss)

    def clip_grad_norm_(self, parameters: Any, max_norm: float, norm_type: float = 2) -> Tensor:
        """Compute the norm of the gradient of all trained parameters; the step will clip it."""
        divided = self._engine.optimizer
        divided.clip_grad = max_norm
        norm: Tensor = divided.scaled_global_norm(norm_type)
        return torch.where(norm < 0, torch.inf, norm)  # -1 stands for a norm that is not finite

    def free_memory(self, *objects: Any) -> Any:
        """Free the engine and what accelerate holds."""
        if self._engine is not None:
            self._engine.destroy()
            self._engine = None
        return super().free_memory(*objects)


def divides_gradients(accelerator: Accelerator) -> bool:
    """Tell whether every process adds up its gradients with the others in each pass."""
    return isinstance(accelerator, ZeroAccelerator)
