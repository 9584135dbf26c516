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

from train.loop.checkpoint import load_checkpoint, newest_checkpoint, trainable
from train.loop.optimizer import set_state, state_tensors


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
        CustosError: On the first process, as :func:`~train.loop.checkpoint.load_checkpoint`.
    """
    state: dict[str, Any] | None = None
    if accelerator.is_main_process:
        state = load_checkpoint(folder, model, optimizer, identity)
    if accelerator.num_processes == 1:
        return state
    [state] = broadcast_object_list([state])
    if state is not None:
        _broadcast(model, optimizer, accelerator.device)
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


def _broadcast(model: nn.Module, optimizer: torch.optim.Optimizer, device: torch.device) -> None:
    """Give every process the first one's trainable parameters and state of the optimizer."""
    parameters = list(trainable(model).values())
    states = [state_tensors(optimizer, parameter) for parameter in parameters]
    shapes = [{key: (t.shape, t.dtype) for key, t in state.items()} for state in states]
    [shapes] = broadcast_object_list([shapes])
    for parameter, state, kept in zip(parameters, states, shapes, strict=True):
        broadcast(parameter.data)
        if not kept:
            continue
        tensors = {
            key: broadcast(state.get(key, torch.zeros(shape, dtype=dtype)).to(device))
            for key, (shape, dtype) in kept.items()
        }
        set_state(optimizer, parameter, tensors)
