"""Resuming a run on all processes, from the run folder of the first."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast, broadcast_object_list, gather_object
from torch import nn

from train.loop.checkpoint import Checkpoint, newest_checkpoint, read_checkpoint


def resume(
    accelerator: Accelerator,
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    identity: Mapping[str, Any],
    note: Callable[[str], None],
) -> dict[str, Any] | None:
    """Restore the first process's newest checkpoint into model and optimizer of every process.

    Machines need not share a disk: weights, moments and state come from the first process.

    Args:
        accelerator: Accelerator of the run.
        folder: Run folder.
        model: Unwrapped model.
        optimizer: Optimizer over its trainable parameters.
        identity: What the run depends on.
        note: Shows a line to the user.

    Returns:
        The checkpoint's state, the same on every process; ``None`` if the first process has none.

    Raises:
        CustosError: On the first process, as :func:`~train.loop.checkpoint.read_checkpoint`.
    """
    saved: Checkpoint | None = None
    if accelerator.is_main_process:
        saved = read_checkpoint(folder, model, identity)
    if accelerator.num_processes > 1:
        saved = _broadcast(saved, accelerator.device)
    if saved:
        saved.restore(model, optimizer)
    state = saved.state if saved else None
    if accelerator.num_processes == 1:
        return state
    checkpoint = newest_checkpoint(folder)
    name = checkpoint.name if checkpoint else "no checkpoint"
    names = gather_object([(accelerator.process_index, socket.gethostname(), name)])
    expected = names[0][2]
    for rank, host, other in names:
        if other != expected:
            note(
                f"process {rank} on {host} has {other} in its {folder}, the first process has "
                f"{expected}: every process goes on from the first one's"
            )
    return state


def _broadcast(saved: Checkpoint | None, device: torch.device) -> Checkpoint | None:
    """Return the first process's checkpoint on every process."""
    shapes = saved and {
        name: {key: (tensor.shape, tensor.dtype) for key, tensor in kept.items()}
        for name, kept in saved.tensors.items()
    }
    [state, shapes] = broadcast_object_list([saved and saved.state, shapes])
    if state is None or shapes is None:
        return None
    empty = {
        name: {key: torch.zeros(shape, dtype=dtype) for key, (shape, dtype) in kept.items()}
        for name, kept in shapes.items()
    }
    tensors = {
        name: {key: broadcast(tensor.to(device)).cpu() for key, tensor in kept.items()}
        for name, kept in (saved.tensors if saved else empty).items()
    }
    return Checkpoint(state, tensors)
