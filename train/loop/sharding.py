"""Division of a model among processes (FSDP2 or ZeRO, stage 2), the optimizer and its state."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
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

from judging.errors import CustosError
from train.setup.recipe import OptimSection

_TOWER = ".visual"


class ShardingAccelerator(Accelerator):  # type: ignore[misc]  # accelerate has no types
    """An accelerator of several processes that shards a model instead of copying it to each.

    A layer is put together when it is run and taken apart afterwards, so every process must run as
    many passes as the others. The frozen vision tower stays whole on each of them: then it does not
    matter which of them has pictures in a pass. ``fully_shard`` is called here and not through
    accelerate, which trains plain copies on a CPU. So the tests, on a CPU, test what a GPU runs.
    """

    def prepare_model(self, model: nn.Module, *_: Any, **__: Any) -> nn.Module:
        """Shard a model; the optimizer must be made of its parameters afterwards."""
        # For evaluation accelerate adds its autocast and nothing that copies gradients.
        super().prepare_model(model, device_placement=False, evaluation_mode=True)
        shard(model, self.device)
        return model


def is_sharded(accelerator: Accelerator) -> bool:
    """Tell whether the processes of an accelerator hold parts of a model, not copies."""
    return isinstance(accelerator, ShardingAccelerator)


def first_device(accelerator: Accelerator) -> torch.device:
    """Choose the device that a model is loaded to: one that is sharded need not fit on a GPU."""
    return torch.device("cpu") if is_sharded(accelerator) else accelerator.device


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
    """Put a tensor together from all processes, if it is sharded; all must ask for it."""
    return (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).detach()


def like(tensor: Tensor, parameter: Tensor) -> Tensor:
    """Lay out a whole tensor as a parameter is: on its device; of a sharded one, only our part."""
    moved = tensor.to(parameter.device)
    if not isinstance(parameter, DTensor):
        return moved
    mesh, placements = parameter.device_mesh, parameter.placements
    return distribute_tensor(moved, mesh, placements, src_data_rank=None)  # each has all of it


def free_weights(model: nn.Module) -> None:
    """Put empty parameters in the place of all parameters of a model, or of its parts."""
    for module in model.modules():
        if isinstance(module, FSDPModule):  # its hooks would keep the parts
            module.reshard()
    for parameter in model.parameters():
        if isinstance(parameter, DTensor):
            parameter.to_local().untyped_storage().resize_(0)
    for module in model.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            # Not with to(): weights of 4 bits cannot be moved so.
            empty = torch.empty(parameter.shape, dtype=parameter.dtype, device="meta")
            setattr(module, name, nn.Parameter(empty, requires_grad=False))


_STAGE = 2
_BUCKET = 2**24
"""Most gradients that are added up at once; a buffer of so many numbers is made for them."""


class ZeroOptimizer:
    """The optimizer of a DeepSpeed engine, which steps on this process's part of the weights.

    There is one group of parameters, in float32.
    """

    def __init__(self, engine: Any) -> None:
        self._divided = engine.optimizer

    @property
    def state(self) -> Mapping[Tensor, dict[str, Tensor]]:
        """Show what is kept for this process's part of the weights, by that part."""
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
        """Put together what is kept for a parameter; all processes must ask for it."""
        from deepspeed.utils import safe_get_full_optimizer_state

        part, state = self._state()
        return {
            key: safe_get_full_optimizer_state(parameter, key)
            if value.shape == part.shape
            else value.clone()
            for key, value in state.items()
        }

    def set_state(self, parameter: nn.Parameter, tensors: Mapping[str, Tensor]) -> None:
        """Keep what :meth:`state_tensors` returned, and the parameter as it is now."""
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
        """Find this process's part of the weights ``[numbers]``, and what is kept for it."""
        [part] = self.param_groups[0]["params"]
        return part, self.state[part]


class ZeroAccelerator(Accelerator):  # type: ignore[misc]  # accelerate has no types
    """An accelerator of several processes that divide gradients and moments (ZeRO, stage 2).

    Each holds the whole model, and its part of the gradients and moments. Gradients are added up in
    every backward pass, so each must make as many as the others. DeepSpeed is called here and not
    through accelerate, which makes the step inside of the backward pass, before the loop sees the
    norm of the gradient, and which trains plain copies on a CPU.
    """

    _engine: Any = None

    def prepare_together(
        self, model: nn.Module, optimizer: torch.optim.Optimizer
    ) -> tuple[nn.Module, AcceleratedOptimizer]:
        """Prepare a model and the optimizer of torch of its trainable parameters, in float32."""
        import deepspeed

        deepspeed.utils.logger.setLevel(logging.ERROR)
        # It warns of its own calls in every step.
        warnings.filterwarnings("ignore", ".*all_gather_into_tensor. is deprecated", FutureWarning)
        # For evaluation accelerate adds its autocast and nothing that copies gradients.
        model = self.prepare_model(model, evaluation_mode=True)
        learnt = sum(p.numel() for group in optimizer.param_groups for p in group["params"])
        config = {
            "train_micro_batch_size_per_gpu": 1,  # has no effect: batches are our own
            "zero_optimization": {"stage": _STAGE, "reduce_bucket_size": min(_BUCKET, learnt)},
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
        return torch.where(norm < 0, torch.inf, norm)  # its sign that the norm is not finite

    def free_memory(self, *objects: Any) -> Any:
        """Free the engine and what accelerate holds."""
        if self._engine is not None:
            self._engine.destroy()
            self._engine = None
        return super().free_memory(*objects)


def divides_gradients(accelerator: Accelerator) -> bool:
    """Tell whether every process adds up its gradients with the others in each pass."""
    return isinstance(accelerator, ZeroAccelerator)


STEP = "step"


def prepare(
    accelerator: Accelerator, model: nn.Module, optim: OptimSection
) -> tuple[Any, AcceleratedOptimizer]:
    """Prepare a model, and the optimizer of what it learns, for the processes of a run."""

    def optimizer() -> Any:
        return make_optimizer((p for p in model.parameters() if p.requires_grad), optim)

    if isinstance(accelerator, ZeroAccelerator):
        return accelerator.prepare_together(model, optimizer())
    # The model first: if it is sharded, the optimizer must get the sharded parameters.
    return accelerator.prepare(model), accelerator.prepare(optimizer())


def make_optimizer(parameters: Iterable[nn.Parameter], optim: OptimSection) -> Any:
    """Make the optimizer that a recipe names, over the trainable parameters."""
    if optim.optimizer == "adamw":
        return torch.optim.AdamW(parameters, lr=optim.lr, weight_decay=optim.weight_decay)
    from bitsandbytes.optim import PagedAdamW8bit

    # On a CPU there is nothing to page: the moments are in the machine's memory anyway.
    warnings.filterwarnings("ignore", "Paged optimizers are not supported on CPU")
    return PagedAdamW8bit(parameters, lr=optim.lr, weight_decay=optim.weight_decay)


def check_finite(step: int, optim: OptimSection, **figures: float) -> None:
    """Raise ``CustosError`` before the weights take a step of which a figure is not finite."""
    if not all(map(math.isfinite, figures.values())):
        texts = (f"{name.replace('_', ' ')} {value}" for name, value in figures.items())
        raise CustosError(
            f"step {step + 1}: not finite: {', '.join(texts)}; lower optim.lr={optim.lr}"
        )


def state_tensors(optimizer: Any, parameter: nn.Parameter) -> dict[str, Tensor]:
    """Copy what the optimizer keeps for a parameter; nothing before its first step.

    If the parameter or the state is divided, all processes must ask for it.
    """
    if isinstance(optimizer, ZeroOptimizer):
        return optimizer.state_tensors(parameter)
    state = optimizer.state.get(parameter, {})
    return {key: whole(torch.as_tensor(value)).clone().contiguous() for key, value in state.items()}


def set_state(optimizer: Any, parameter: nn.Parameter, tensors: Mapping[str, Tensor]) -> None:
    """Give the optimizer what :func:`state_tensors` returned for a parameter."""
    if isinstance(optimizer, ZeroOptimizer):
        return optimizer.set_state(parameter, tensors)
    state: dict[str, Any] = {}
    for key, tensor in tensors.items():
        if isinstance(optimizer, torch.optim.AdamW):
            state[key] = tensor.cpu() if key == STEP else like(tensor, parameter)
        elif key == STEP:
            state[key] = int(tensor)
        elif tensor.shape == parameter.shape:  # a moment, in memory that can be paged
            state[key] = optimizer.get_state_buffer(parameter, dtype=tensor.dtype).copy_(tensor)
        else:
            state[key] = tensor.to(parameter.device)
    optimizer.state[parameter] = state


def learning_rate(optim: OptimSection, step: int, total_steps: int) -> float:
    """Compute the learning rate of a step, counted from 0: linear warm-up, then the schedule."""
    warmup = max(1, round(optim.warmup_ratio * total_steps))
    if step < warmup:
        return optim.lr * (step + 1) / warmup
    done = (step - warmup) / max(1, total_steps - warmup)
    if optim.schedule == "constant":
        return optim.lr
    if optim.schedule == "linear":
        return optim.lr * (1 - done)
    return optim.lr * 0.5 * (1 + math.cos(math.pi * done))
