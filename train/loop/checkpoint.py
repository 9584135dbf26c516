"""Checkpoints that appear whole or not at all, in safetensors only."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from judging.errors import CustosError

KEEP = 2


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """Trainable parameters by name."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


@contextmanager
def whole_folder(final: Path) -> Iterator[Path]:
    """A folder to write into that appears as ``final`` when the block ends without an error."""
    partial = final.parent / f".{final.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    yield partial
    shutil.rmtree(final, ignore_errors=True)
    partial.rename(final)


def best_folder(folder: Path, step: int) -> Path:
    """Where a run keeps the adapter that was best when so many steps were done."""
    return folder / f"best-{step:06d}"


def save_checkpoint(
    folder: Path,
    step: int,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: Mapping[str, Any],
    identity: Mapping[str, Any],
) -> None:
    """Write ``checkpoint-<step>`` under a temporary name, then rename it; keep the newest two.

    Args:
        folder: Run folder.
        step: Optimizer steps done.
        model: Unwrapped model; only trainable parameters are saved.
        optimizer: AdamW over exactly those parameters.
        state: JSON-able progress (best score, history, ...).
        identity: Of the run (:func:`~train.setup.run_identity.run_identity`).
    """
    parameters = trainable(model)
    saved = {"step": step, **state, "identity": identity}
    with whole_folder(folder / f"checkpoint-{step:06d}") as partial:
        save_file(
            {name: p.detach().contiguous() for name, p in parameters.items()},
            partial / "adapter.safetensors",
        )
        save_file(_optimizer_tensors(parameters, optimizer), partial / "optimizer.safetensors")
        (partial / "state.json").write_text(json.dumps(saved), encoding="utf-8")
    for old in sorted(folder.glob("checkpoint-*"))[:-KEEP]:
        shutil.rmtree(old)


def load_checkpoint(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    identity: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Restore the newest checkpoint into model and optimizer.

    There is no random state to restore: every step seeds its own.

    Returns:
        Its ``state``, or ``None`` when the run folder has no checkpoint.

    Raises:
        CustosError: If the folder holds a run of another identity (what differs is named), or
            parameters of another shape.
    """
    checkpoints = sorted(folder.glob("checkpoint-*"))
    if not checkpoints:
        return None
    newest = checkpoints[-1]
    state: dict[str, Any] = json.loads((newest / "state.json").read_text(encoding="utf-8"))
    if (held := state.pop("identity", None)) != identity:
        raise CustosError(
            f"{folder}: holds another run ({_difference(held, identity)}); choose another "
            "run.output"
        )
    parameters = trainable(model)
    weights = load_file(newest / "adapter.safetensors")
    shapes = {name: tensor.shape for name, tensor in weights.items()}
    if shapes != {name: parameter.shape for name, parameter in parameters.items()}:
        raise CustosError(
            f"{newest}: holds other parameters than this recipe trains; choose another run.output"
        )
    moments = load_file(newest / "optimizer.safetensors")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])
            if f"{name}.step" in moments:
                optimizer.state[parameter] = {
                    key: moments[f"{name}.{key}"].to("cpu" if key == "step" else parameter.device)
                    for key in ("step", "exp_avg", "exp_avg_sq")
                }
    return state


def _difference(held: Mapping[str, Any] | None, wanted: Mapping[str, Any]) -> str:
    if held is None:
        return "its checkpoints do not say of which recipe and data"
    keys = [key for key in {**held, **wanted} if held.get(key) != wanted.get(key)]
    return f"of other {', '.join(keys)}"


def _optimizer_tensors(
    parameters: dict[str, nn.Parameter], optimizer: torch.optim.Optimizer
) -> dict[str, Tensor]:
    return {
        f"{name}.{key}": value.detach().clone().contiguous()
        for name, parameter in parameters.items()
        for key, value in optimizer.state.get(parameter, {}).items()
    }
