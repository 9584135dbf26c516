"""The accelerator of a run: its device and precision, its processes, a CPU's threads and memory."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs, ProjectConfiguration

from judging.models.attention import missing_kernels_line
from judging.models.devices import computes_bfloat16, device_name, num_cores, use_device
from train.loop.sharding import ShardingAccelerator, ZeroAccelerator, is_sharded
from train.setup.engines import CPU, FSDP, ZERO, asks_for, check_distributed_type
from train.setup.recipe import RunSection
from train.tracking.trackers import check_trackers

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


def first_device(accelerator: Accelerator) -> torch.device:
    """Choose the device to load a model to: one that will be sharded need not fit on a GPU."""
    return torch.device("cpu") if is_sharded(accelerator) else accelerator.device


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
