"""The ways to run several processes that training supports; others are refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from judging.errors import CustosError
from judging.models.quantization import check_bitsandbytes
from train.setup.recipe import Recipe

SUPPORTED = ("NO", "MULTI_GPU", "MULTI_CPU")
"""Values of accelerate's ``distributed_type``."""
ADVICE = (
    "training runs in one process, or in several that each hold a copy of the model "
    "(distributed_type NO, MULTI_GPU or MULTI_CPU): use 'custos train RECIPE --processes N'"
)
ENGINES = {
    "ACCELERATE_USE_FSDP": "FSDP",
    "ACCELERATE_USE_DEEPSPEED": "DeepSpeed",
    "ACCELERATE_USE_MEGATRON_LM": "Megatron-LM",
    "ACCELERATE_USE_PARALLELISM_CONFIG": "accelerate's parallelism_config",
}
"""Variables that ``accelerate launch`` sets for an engine, with its name."""
ACCUMULATION = "ACCELERATE_GRADIENT_ACCUMULATION_STEPS"


def check_engine(environment: Mapping[str, str]) -> None:
    """Refuse a launch that training would not fit, before anything is read or loaded.

    Args:
        environment: Environment variables of this process.

    Raises:
        CustosError: If they ask for a sharding engine, a TPU, or accumulation of the launcher's
            own, which would divide every gradient once more.
    """
    for variable, engine in ENGINES.items():
        if environment.get(variable, "").lower() in ("1", "true", "yes", "on", "y", "t"):
            raise CustosError(f"{variable}: {engine} is not supported; {ADVICE}")
    if environment.get("PJRT_DEVICE", "").upper() == "TPU":
        raise CustosError(f"PJRT_DEVICE: TPU is not supported; {ADVICE}")
    if environment.get(ACCUMULATION, "1") != "1":
        raise CustosError(
            f"{ACCUMULATION}={environment[ACCUMULATION]}: not supported; unset it and choose "
            "optim.batch_size and optim.token_budget"
        )


def check_installed(recipe: Recipe) -> None:
    """Check that bitsandbytes is installed if a recipe needs it.

    Raises:
        CustosError: If it is not.
    """
    if recipe.optim.optimizer == "paged_adamw_8bit":
        check_bitsandbytes("optim.optimizer=paged_adamw_8bit")
    if recipe.run.quantization:
        check_bitsandbytes(f"run.quantization={recipe.run.quantization}")


def check_number_of_processes(recipe: Recipe, environment: Mapping[str, str]) -> None:
    """Refuse several processes for an adapter that not every row gives a gradient.

    Args:
        recipe: Validated recipe.
        environment: Environment variables of this process.

    Raises:
        CustosError: If a merger is to be trained in several processes, which wait for the gradients
            of each other: rows without pictures give none.
    """
    if recipe.adapter.merger and int(environment.get("WORLD_SIZE", "1")) > 1:
        raise CustosError(
            "adapter.merger=true: one process trains a merger, because rows without pictures have "
            "no gradient for it; use --processes 1"
        )


def check_config_file(path: Path) -> None:
    """Refuse a file of ``accelerate config`` whose engine training does not support.

    Raises:
        CustosError: If the file is missing, not YAML, or names another engine.
    """
    if not path.is_file():
        raise CustosError(f"{path}: no such file of 'accelerate config'")
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        values = None
    if not isinstance(values, dict):
        raise CustosError(f"{path}: not a file of 'accelerate config'")
    check_distributed_type(values.get("distributed_type") or "NO", f"{path}: ")


def check_distributed_type(kind: Any, location: str = "") -> None:
    """Refuse a ``distributed_type`` of accelerate that training does not support.

    Raises:
        CustosError: If it is not supported.
    """
    name = "NO" if kind is False else str(kind)  # YAML 1.1 reads NO as false
    if name not in SUPPORTED:
        raise CustosError(f"{location}distributed_type {name} is not supported; {ADVICE}")
