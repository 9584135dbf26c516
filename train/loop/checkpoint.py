"""Checkpoints that appear whole or not at all, in safetensors only."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from judging.errors import CustosError, FieldError
from judging.files.atomic import whole_folder
from judging.models.adapters import save_adapter
from train.loop.optimizer import set_state, state_tensors

KEEP = 2
"""Newest checkpoints that stay."""


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the trainable parameters by name."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def best_folder(folder: Path, step: int) -> Path:
    """Return where a run keeps the adapter of a step that was the best so far."""
    return folder / f"best-{step:06d}"


def save_best(folder: Path, step: int, adapted: Any) -> None:
    """Write the adapter of a step, which is the best so far.

    Args:
        folder: Run folder.
        step: Optimizer steps done.
        adapted: ``PeftModel``.
    """
    with whole_folder(best_folder(folder, step)) as partial:
        save_adapter(adapted, partial)


def keep_best(folder: Path, step: int) -> None:
    """Delete the best adapters of other steps: no checkpoint to resume from knows of them."""
    for old in set(folder.glob("best-*")) - {best_folder(folder, step)}:
        shutil.rmtree(old)


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
        optimizer: Optimizer over exactly those parameters.
        state: JSON-able progress (best score, history, ...).
        identity: What the run depends on (:func:`~train.setup.run_identity.run_identity`).
    """
    parameters = trainable(model)
    progress = {"step": step, **state, "identity": identity}
    with whole_folder(folder / f"checkpoint-{step:06d}") as partial:
        save_file(
            {name: p.detach().contiguous() for name, p in parameters.items()},
            partial / "adapter.safetensors",
        )
        save_file(_optimizer_tensors(parameters, optimizer), partial / "optimizer.safetensors")
        (partial / "state.json").write_text(json.dumps(progress), encoding="utf-8")
    for old in sorted(folder.glob("checkpoint-*"))[:-KEEP]:
        shutil.rmtree(old)


def newest_checkpoint(folder: Path) -> Path | None:
    """Return the folder of a run's newest checkpoint; ``None`` if the run has none."""
    return max(folder.glob("checkpoint-*"), default=None)


def check_run_folder(folder: Path, identity: Mapping[str, Any]) -> None:
    """Refuse a run folder that cannot be this run's, before anything is loaded.

    Args:
        folder: Run folder.
        identity: What the run depends on, the backbone's version left out.

    Raises:
        CustosError: If it is not a folder or holds another run.
    """
    if folder.exists() and not folder.is_dir():
        raise FieldError("run.output", f"{folder} is a file; choose a folder")
    newest = newest_checkpoint(folder)
    if newest is None:
        return
    saved = _read_state(newest).get("identity")
    known = saved and {key: saved[key] for key in saved if key != "backbone_version"}
    _check_identity(folder, known, identity)


def _read_state(checkpoint: Path) -> dict[str, Any]:
    state: dict[str, Any] = json.loads((checkpoint / "state.json").read_text(encoding="utf-8"))
    return state


def load_checkpoint(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    identity: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Restore the newest checkpoint into model and optimizer.

    There is no random state to restore: every step sets its own seed.

    Args:
        folder: Run folder.
        model: Unwrapped model; its trainable parameters are set.
        optimizer: Optimizer over exactly those parameters.
        identity: What the run depends on.

    Returns:
        The checkpoint's ``state``, or ``None`` when the run folder has no checkpoint.

    Raises:
        CustosError: If the folder holds a run of another identity (what differs is named), or
            parameters of another shape.
    """
    newest = newest_checkpoint(folder)
    if newest is None:
        return None
    state = _read_state(newest)
    _check_identity(folder, state.pop("identity", None), identity)
    _restore(newest, trainable(model), optimizer)
    return state


def _restore(
    newest: Path, parameters: Mapping[str, nn.Parameter], optimizer: torch.optim.Optimizer
) -> None:
    weights = load_file(newest / "adapter.safetensors")
    shapes = {name: tensor.shape for name, tensor in weights.items()}
    if shapes != {name: parameter.shape for name, parameter in parameters.items()}:
        raise CustosError(
            f"{newest}: holds other parameters than this recipe trains; choose another run.output"
        )
    by_parameter: dict[str, dict[str, Tensor]] = {}
    for key, tensor in load_file(newest / "optimizer.safetensors").items():
        name, _, kept = key.rpartition(".")
        by_parameter.setdefault(name, {})[kept] = tensor
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])
            if state := by_parameter.get(name):
                set_state(optimizer, parameter, state)


def _check_identity(
    folder: Path, saved: Mapping[str, Any] | None, identity: Mapping[str, Any]
) -> None:
    if saved == identity:
        return
    if saved is None:
        difference = "its checkpoints do not say of which recipe and data"
    else:
        keys = [key for key in {**saved, **identity} if saved.get(key) != identity.get(key)]
        difference = f"of other {', '.join(keys)}"
    raise CustosError(f"{folder}: holds another run ({difference}); choose another run.output")


def _optimizer_tensors(
    parameters: dict[str, nn.Parameter], optimizer: torch.optim.Optimizer
) -> dict[str, Tensor]:
    return {
        f"{name}.{key}": tensor
        for name, parameter in parameters.items()
        for key, tensor in state_tensors(optimizer, parameter).items()
    }
