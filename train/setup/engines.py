"""The ways to run several processes that training supports; others are refused."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from judging.errors import CustosError
from judging.files.opening import load_yaml
from judging.models.adapters import check_bitsandbytes
from train.setup.recipe import RECIPES, Recipe

SUPPORTED = ("NO", "MULTI_GPU", "MULTI_CPU", "FSDP", "DEEPSPEED")
"""Values of accelerate's ``distributed_type``."""
ADVICE = (
    "training runs in one process, or in several that each hold a copy of the model "
    "('custos train RECIPE --processes N'), share one ('--config-file fsdp2') or divide gradients "
    "and moments ('--config-file zero2')"
)
FSDP = "ACCELERATE_USE_FSDP"
"""Variable by which a launcher asks for a model that processes share."""
ZERO = "ACCELERATE_USE_DEEPSPEED"
"""Variable by which a launcher asks for gradients and moments that processes divide."""
CPU = "ACCELERATE_USE_CPU"
"""Variable by which a launcher asks for the CPU."""
ENGINES = {
    "ACCELERATE_USE_MEGATRON_LM": "Megatron-LM",
    "ACCELERATE_USE_PARALLELISM_CONFIG": "accelerate's parallelism_config",
}
"""Variables that ``accelerate launch`` sets for other engines, with their names."""
ACCUMULATION = "ACCELERATE_GRADIENT_ACCUMULATION_STEPS"
VERSION = "FSDP_VERSION"
BATCH_SIZE = "choose optim.batch_size and optim.token_budget"
SETTINGS = {
    FSDP: {
        VERSION: (["2"], "set fsdp_version: 2"),
        "FSDP_RESHARD_AFTER_FORWARD": (["true", "full_shard"], "leave it out"),
        "FSDP_OFFLOAD_PARAMS": (["false"], "leave it out"),
        "FSDP_ACTIVATION_CHECKPOINTING": (
            ["false"],
            "leave it out and set run.gradient_checkpointing=true",
        ),
    },
    ZERO: {
        "ACCELERATE_DEEPSPEED_ZERO_STAGE": (["2"], "set zero_stage: 2 or use the file fsdp2"),
        "ACCELERATE_DEEPSPEED_CONFIG_FILE": (["none"], "leave it out"),
        "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE": (["none"], "leave it out"),
        "ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE": (["none"], "leave it out"),
        "ACCELERATE_GRADIENT_CLIPPING": (["none"], "leave it out and set optim.max_grad_norm"),
        ACCUMULATION: (["1"], f"leave it out and {BATCH_SIZE}"),
    },
}
"""Variables that ``accelerate launch`` makes of ``fsdp_config`` and of ``deepspeed_config``: the
values that are supported and what to do instead of others. Other variables change nothing here."""
LAUNCH_FILES = RECIPES / "accelerate"
"""Files of ``accelerate config`` that came with custos."""


def check_engine(environment: Mapping[str, str]) -> None:
    """Refuse a launch that training does not support, before anything is read or loaded.

    Raises ``CustosError`` for an engine that is not supported, a TPU, or accumulation of the
    launcher's own, which would divide every gradient once more.
    """
    for variable, engine in ENGINES.items():
        if asks_for(variable, environment):
            raise CustosError(f"{variable}: {engine} is not supported; {ADVICE}")
    for variable in (FSDP, ZERO):
        if asks_for(variable, environment):
            _check_settings(variable, environment)
    if environment.get("PJRT_DEVICE", "").upper() == "TPU":
        raise CustosError(f"PJRT_DEVICE: TPU is not supported; {ADVICE}")
    if environment.get(ACCUMULATION, "1") != "1":
        raise CustosError(
            f"{ACCUMULATION}={environment[ACCUMULATION]}: not supported; unset it and {BATCH_SIZE}"
        )


def asks_for(variable: str, environment: Mapping[str, str]) -> bool:
    """Tell whether a launcher's environment asks for an engine by its variable."""
    return environment.get(variable, "").lower() in ("1", "true", "yes", "on", "y", "t")


def _check_settings(engine: str, settings: Mapping[str, Any], location: str = "") -> None:
    """Check the settings of FSDP or DeepSpeed, named as the variables of a launch."""
    for name, (supported, advice) in SETTINGS[engine].items():
        # Where no version is stated, accelerate takes the first; its other defaults are supported.
        value = settings.get(name, "1" if name == VERSION else supported[0])
        if str(value).lower() not in supported:
            raise CustosError(f"{location}{name}={value}: not supported; {advice}")
    if engine == ZERO and find_spec("deepspeed") is None:
        raise CustosError(f"{location}DeepSpeed is not installed; pip install deepspeed")


def check_installed(recipe: Recipe) -> None:
    """Raise ``CustosError`` if a recipe needs bitsandbytes and it is not installed."""
    if recipe.optim.optimizer == "paged_adamw_8bit":
        check_bitsandbytes("optim.optimizer=paged_adamw_8bit")
    if recipe.run.quantization:
        check_bitsandbytes(f"run.quantization={recipe.run.quantization}")


def check_processes(recipe: Recipe, environment: Mapping[str, str]) -> None:
    """Refuse several processes, with ``CustosError``, for what only one can train.

    That is a merger: rows without pictures give no gradients of it, for which the other processes
    would wait. Neither can processes share a model or divide moments if weights or moments are
    quantised.
    """
    if int(environment.get("WORLD_SIZE", "1")) == 1:
        return
    if recipe.adapter.merger:
        raise CustosError(
            "adapter.merger=true: one process trains a merger, because rows without pictures have "
            "no gradient for it; use --processes 1"
        )
    engine = next((name for name in (FSDP, ZERO) if asks_for(name, environment)), None)
    if engine is None:
        return
    shared = "share a model (FSDP)" if engine == FSDP else "divide moments (DeepSpeed)"
    for key, value in (
        ("run.quantization", recipe.run.quantization),
        ("optim.optimizer", recipe.optim.optimizer),
    ):
        if value not in (None, "adamw"):
            raise CustosError(
                f"{key}={value}: processes that {shared} do not quantise; leave it out"
            )


def launch_file(name: Path) -> Path:
    """Find a file of ``accelerate config``, whose engine training must support."""
    path = name if name.is_file() else LAUNCH_FILES / f"{name}.yaml"
    if not path.is_file():
        shipped = ", ".join(sorted(file.stem for file in LAUNCH_FILES.glob("*.yaml")))
        raise CustosError(f"{name}: no such file of 'accelerate config' (shipped: {shipped})")
    try:
        values = load_yaml(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        values = None
    if not isinstance(values, dict):
        raise CustosError(f"{path}: not a file of 'accelerate config'")
    kind = values.get("distributed_type") or "NO"
    check_distributed_type(kind, f"{path}: ")
    if kind not in ("FSDP", "DEEPSPEED"):
        return path
    section = f"{kind.lower()}_config"
    settings = values.get(section) or {}
    if not isinstance(settings, dict):
        raise CustosError(f"{path}: {section}: expected names with values (got {settings!r})")
    engine, prefixes = FSDP, [""]
    if kind == "DEEPSPEED":
        engine, prefixes = ZERO, ["ACCELERATE_", "ACCELERATE_DEEPSPEED_"]
    variables = {f"{p}{str(name).upper()}": settings[name] for name in settings for p in prefixes}
    _check_settings(engine, variables, f"{path}: ")
    return path


def check_distributed_type(kind: Any, location: str = "") -> None:
    """Refuse a ``distributed_type`` of accelerate that training does not support."""
    name = "NO" if kind is False else str(kind)  # YAML 1.1 reads NO as false
    if name not in SUPPORTED:
        raise CustosError(f"{location}distributed_type {name} is not supported; {ADVICE}")
