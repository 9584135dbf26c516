"""The optimizer of a run: made, its state copied and restored, its learning rate."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.optimizer import AcceleratedOptimizer
from torch import Tensor, nn

from judging.errors import CustosError
from train.loop.sharding import ZeroAccelerator, ZeroOptimizer, like, whole
from train.setup.recipe import OptimSection

STEP = "step"
"""Key of the number of steps in an optimizer's state."""


def prepare(
    accelerator: Accelerator, model: nn.Module, optim: OptimSection
) -> tuple[Any, AcceleratedOptimizer]:
    """Prepare a model and the optimizer of its trainable parameters for the run's processes."""

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
    """Raise ``CustosError`` if a figure of a step is not finite, before the weights take it."""
    if not all(map(math.isfinite, figures.values())):
        texts = (f"{name.replace('_', ' ')} {value}" for name, value in figures.items())
        raise CustosError(
            f"step {step + 1}: not finite: {', '.join(texts)}; lower optim.lr={optim.lr}"
        )


def state_tensors(optimizer: Any, parameter: nn.Parameter) -> dict[str, Tensor]:
    """Copy the optimizer's state of a parameter, which is empty before the first step.

    If the parameter or the state is divided, all processes must call this.
    """
    if isinstance(optimizer, ZeroOptimizer):
        return optimizer.state_tensors(parameter)
    state = optimizer.state.get(parameter, {})
    return {key: whole(torch.as_tensor(value)).clone().contiguous() for key, value in state.items()}


def set_state(optimizer: Any, parameter: nn.Parameter, tensors: Mapping[str, Tensor]) -> None:
    """Restore the optimizer's state of a parameter, as :func:`state_tensors` returned it."""
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
