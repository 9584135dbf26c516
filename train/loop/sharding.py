"""The accelerator of a run, a model divided among processes (FSDP2, ZeRO), and the optimizer."""

from __future__ import annotations

import ctypes
import logging
import math
import os
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.optimizer import AcceleratedOptimizer
from accelerate.utils import InitProcessGroupKwargs, ProjectConfiguration
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from transformers.modeling_layers import GradientCheckpointingLayer

from judging.errors import CustosError
from judging.models.attention import missing_kernels_line
from judging.models.devices import computes_bfloat16, device_name, num_cores, use_device
from train.setup.engines import CPU, FSDP, ZERO, asks_for, check_distributed_type
from train.setup.recipe import OptimSection, RunSection
from train.tracking.trackers import check_trackers

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


def first_device(accelerator: Accelerator) -> torch.device:
    """Choose the device to load a model to: one that will be sharded need not fit on a GPU."""
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


LONGEST_WAIT = timedelta(hours=2)
"""How long GPUs wait for each other before a run fails."""
_THREADS = "OMP_NUM_THREADS"
_THREADS_OPTION = "--num-cpu"  # how --num-cpu-threads-per-process begins, which may be cut short


def make_accelerator(run: RunSection) -> Accelerator:
    """Make the accelerator of a run, with its precision; on the CPU if there is no CUDA device.

    On the CPU, one process takes all cores unless the user asked for another number of threads.
    Several processes shard the model if they were launched with FSDP, and divide gradients and
    moments if they were launched with DeepSpeed.
    """
    check_trackers(run.trackers)
    on_cpu = asks_for(CPU, os.environ) or use_device().type == "cpu"
    if on_cpu and launcher_set_threads():
        torch.set_num_threads(num_cores())
    if on_cpu:
        bound_caches()
    autocast = uses_autocast(run, torch.device("cpu" if on_cpu else "cuda"))
    kind = Accelerator
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        if asks_for(FSDP, os.environ):
            kind = ShardingAccelerator
        elif asks_for(ZERO, os.environ):
            kind = ZeroAccelerator
    # Accelerate and transformers read them too, and on a GPU would divide the model in their ways.
    for variable in (FSDP, ZERO):
        os.environ.pop(variable, None)
    accelerator = kind(
        mixed_precision="bf16" if autocast else "no",
        cpu=on_cpu,
        log_with=list(run.trackers) or None,
        # The others wait while one process writes, calibrates or grades; NCCL waits 10 minutes.
        kwargs_handlers=[] if on_cpu else [InitProcessGroupKwargs(timeout=LONGEST_WAIT)],
        project_config=ProjectConfiguration(logging_dir=str(run.output / "tensorboard")),
    )
    check_distributed_type(accelerator.distributed_type.value)
    return accelerator


def uses_autocast(run: RunSection, device: torch.device) -> bool:
    """Tell whether a run asks for ``bf16`` and the device computes in bfloat16."""
    return run.precision == "bf16" and computes_bfloat16(device)


def launcher_set_threads() -> bool:
    """Tell whether ``accelerate launch``, not the user, set one CPU thread for this process.

    The launcher sets ``OMP_NUM_THREADS=1`` if the user asked for nothing, as its own environment
    and command line show. Where these cannot be read (no ``/proc``), the answer is False.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 or os.environ.get(_THREADS) != "1":
        return False
    launcher = Path("/proc") / str(os.getppid())
    try:
        arguments = (launcher / "cmdline").read_bytes().decode(errors="replace").split("\0")
        environment = (launcher / "environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return False
    return (
        any("accelerate" in Path(argument).name for argument in arguments[:3])
        and not any(a.replace("_", "-").startswith(_THREADS_OPTION) for a in arguments)
        and not any(variable.startswith(f"{_THREADS}=") for variable in environment)
    )


def processes_here(accelerator: Accelerator) -> int:
    """Count the training processes on this machine, as the launcher says."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", accelerator.num_processes))


def device_lines(accelerator: Accelerator, backbone: Any) -> Iterator[str]:
    """Yield lines on the GPU that trains, and what to install for it; none on a CPU."""
    if accelerator.device.type == "cpu":
        return
    processes = accelerator.num_processes
    among = f", one of {processes}" if processes > 1 else ""
    yield f"device: {device_name(accelerator.device)}{among}"
    if line := missing_kernels_line(backbone, accelerator.device):
        yield line


def thread_hint(accelerator: Accelerator) -> str | None:
    """Advise to use more threads if training runs on one CPU thread and other cores are free."""
    if accelerator.device.type != "cpu" or torch.get_num_threads() > 1:
        return None
    if num_cores() <= processes_here(accelerator):
        return None
    return "training on one CPU thread; set OMP_NUM_THREADS to the number of cores to use them all"


CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
"""Environment variables for the sizes of oneDNN's cache of kernels, and of PyTorch's above it."""
KERNELS = "128"
"""Kernels that a cache keeps. A micro-batch needs fewer, as its layers are alike."""
SHARE = 0.02
"""Largest share of the time that giving memory back may take."""


class FreeMemory:
    """Memory of freed tensors, given back to the system where the C library is glibc.

    Rows differ in length, so the tensors of one batch leave gaps that those of the next do not fit
    into. glibc keeps the gaps, and the process grows with every step.
    """

    def __init__(self) -> None:
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        self._due = 0.0

    def give_back(self) -> None:
        """Give memory back, but not so often that it takes more than ``SHARE`` of the time."""
        started = time.perf_counter()
        if self._trim is None or started < self._due:
            return
        self._trim(0)
        ended = time.perf_counter()
        self._due = ended + (ended - started) / SHARE


def bound_caches() -> None:
    """Keep fewer kernels for products in bfloat16, unless the user chose how many.

    Every shape of a batch gets kernels of its own, about half a megabyte each. As rows differ in
    length, most of the thousand that a cache holds by default would never be used again. Call this
    before the first product.
    """
    for variable in CACHES:
        os.environ.setdefault(variable, KERNELS)
