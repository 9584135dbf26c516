"""LoRA adapters on a backbone's text tower and vision merger, and backbones in four bits for them.

NF4 with double quantisation (Dettmers et al. 2023) of the linear layers of the text tower, by
bitsandbytes (QLoRA). A judge is never loaded so: its adapter is merged into the checkpoint.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from judging.errors import CustosError
from judging.fingerprint import file_sha256
from judging.models.checkpoints import LoraChange, check_safetensors, read_object

if TYPE_CHECKING:
    from torch import Tensor

# "all-linear" would adapt the whole vision tower too; its layers are called blocks.
_TARGETS = r".*\blayers\.\d+\..*\.({})"
_MERGER = r".*visual\.(merger|deepstack_merger_list\.\d+)\.(mlp\.[02]|linear_fc[12])"
Module = Literal["q", "k", "v", "o", "gate", "up", "down"]
ALL_MODULES: tuple[Module, ...] = ("q", "k", "v", "o", "gate", "up", "down")
ADAPTER_FILE = "adapter_model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
_SCALE = ("r", "lora_alpha", "rank_pattern", "alpha_pattern", "use_rslora")
"""Keys of an adapter's configuration by which its change of the weights is multiplied."""
MAGNITUDE = "lora_magnitude_vector"
"""Part of the names of DoRA's weights: the norms of rows."""
_WRAPPING = threading.Lock()


def add_adapter(
    model: Any,
    *,
    r: int,
    alpha: int,
    dropout: float = 0.0,
    modules: tuple[Module, ...] = ALL_MODULES,
    rslora: bool = False,
    dora: bool = False,
    merger: bool = False,
    seed: int = 0,
) -> Any:
    """Put a fresh trainable LoRA adapter on a backbone and freeze the rest.

    Args:
        model: Model of a backbone.
        r: Rank.
        alpha: Scale numerator: the update is multiplied by ``alpha / r``.
        dropout: Dropout on the adapter's input.
        modules: Projections of the text tower to adapt. In a mixture of experts ``gate``, ``up``
            and ``down`` belong to experts, which stay as they are, like the router. In recurrent
            layers (Qwen3.5) ``q``, ``k`` or ``v`` means their joint input projection, and ``o``
            their output projection.
        rslora: Multiply the update by ``alpha / sqrt(r)`` instead.
        dora: Train the norm of each row of the changed weights too.
        merger: Adapt the layers that make tokens of what the vision tower sees, too.
        seed: Seed of its initial weights.

    Returns:
        The ``PeftModel``; adapter weights are float32 whatever the backbone's dtype.

    Raises:
        CustosError: If the backbone has none of the modules, or no vision merger.
    """
    import torch
    from peft import LoraConfig, get_peft_model

    if merger and not hasattr(model.model, "visual"):
        raise CustosError("adapter.merger: the backbone reads text alone; leave the key out")
    targets = _TARGETS.format("|".join(_layer_names(modules)))
    config = LoraConfig(
        r=r,
        lora_alpha=alpha,
        lora_dropout=dropout,
        use_rslora=rslora,
        use_dora=dora,
        target_modules=f"{targets}|{_MERGER}" if merger else targets,
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(), _without_deprecation_notice():
        torch.manual_seed(seed)
        try:
            return _mixed_precision(get_peft_model(model, config))
        except ValueError as error:
            if "not found in the base model" not in str(error):
                raise
            raise CustosError(
                f"adapter.modules: {', '.join(modules)}: the backbone has none of them outside of "
                "experts; use q, k, v, o"
            ) from None


def _layer_names(modules: tuple[Module, ...]) -> list[str]:
    """List the names of the layers that modules stand for, in layers of every kind."""
    names = [f"{module}_proj" for module in modules]
    if set(modules) & {"q", "k", "v"}:
        names.append("in_proj_qkv")
    if "o" in modules:
        names.append("out_proj")
    return names


def save_adapter(adapted: Any, folder: Path, weights: Mapping[str, Tensor] | None = None) -> None:
    """Write the active adapter of a ``PeftModel`` to a folder, and no weights of the backbone.

    ``weights`` are its trained parameters by name, default those that the model holds.
    """
    # By default PEFT asks the hub whether the vocabulary has grown, which adapters here never do.
    adapted.save_pretrained(
        str(folder),
        state_dict=weights,
        save_embedding_layers=False,
        selected_adapters=[adapted.active_adapter],
    )


def load_adapter(model: Any, folder: Path, *, trainable: bool = False) -> Any:
    """Put a saved adapter on a backbone, to go on training or only to use it.

    Raises ``CustosError`` if the folder has no safetensors adapter or it does not fit.
    """
    from peft import PeftModel

    _check_adapter(folder)
    is_shell = model.device.type == "meta"  # the adapter's own weights are on the CPU then
    try:
        with _without_deprecation_notice():
            adapted = PeftModel.from_pretrained(
                model,
                str(folder),
                is_trainable=trainable,
                low_cpu_mem_usage=is_shell,
                # By default every process would read it onto the first GPU.
                torch_device="cpu" if is_shell else str(model.device),
            )
    except (RuntimeError, ValueError, TypeError, KeyError) as error:
        reason = " ".join(str(error).split())[:300]
        raise CustosError(f"{folder}: adapter does not fit the backbone: {reason}") from None
    _check_names(adapted, folder)
    return _mixed_precision(adapted)


def adapter_identity(folder: Path) -> dict[str, Any]:
    """Return all that decides what a saved adapter does: the hash of its weights, their scale."""
    config = read_object(folder / ADAPTER_CONFIG)
    return {
        "adapter_sha256": file_sha256(folder / ADAPTER_FILE),
        "adapter_scale": {key: config[key] for key in _SCALE if config.get(key)},
    }


def _check_names(adapted: Any, folder: Path) -> None:
    """Raise ``CustosError`` if a saved adapter lacks weights of the model's, or has others.

    PEFT would leave those that it lacks as they were drawn, and leave out the others.
    """
    from safetensors import safe_open

    with safe_open(folder / ADAPTER_FILE, "pt") as file:
        saved = {_name_in_model(name, adapted): name for name in file.keys()}
    wanted = [name for name in adapted.state_dict() if ".lora_" in name]
    absent = [name for name in wanted if name not in saved]
    others = [saved[name] for name in saved.keys() - set(wanted)]
    if absent or others:
        reason = (
            f"no weight '{absent[0]}'"
            if absent
            else f"it also holds '{min(others)}', which is no LoRA weight of it"
        )
        raise CustosError(f"{folder}: adapter does not fit the backbone: {reason}")


def _name_in_model(name: str, adapted: Any) -> str:
    """Return the name that a weight of a saved adapter has in the model."""
    return f"{name.removesuffix('.weight')}.{adapted.active_adapter}.weight"


def _check_adapter(folder: Path) -> None:
    """Check that an adapter's files are there, whole, of LoRA and finite, before they are read."""
    from safetensors import safe_open

    if not (folder / ADAPTER_FILE).is_file():
        raise CustosError(f"{folder}: no {ADAPTER_FILE}; other weight formats are not read")
    check_safetensors(folder / ADAPTER_FILE)
    path = folder / ADAPTER_CONFIG
    if not path.is_file():
        raise CustosError(f"{folder}: no {ADAPTER_CONFIG}; download it again")
    config = read_object(path)
    if (kind := config.get("peft_type")) != "LORA":
        raise CustosError(f"{path}: an adapter of the kind {kind!r}; only LoRA is read")
    of_layers = config.get("alpha_pattern")
    alphas = {
        "lora_alpha": config.get("lora_alpha", 1),
        **(of_layers if isinstance(of_layers, dict) else {}),
    }
    for name, alpha in alphas.items():
        if not (isinstance(alpha, int | float) and 0 < alpha < math.inf):
            raise CustosError(f"{path}: {name} is {alpha!r}, no scale; download it again")
    with safe_open(folder / ADAPTER_FILE, "pt") as weights:
        for name in weights.keys():
            if not weights.get_tensor(name).isfinite().all():
                raise CustosError(
                    f"{folder / ADAPTER_FILE}: '{name}' holds NaN or infinite values; get the file "
                    "again, or train the judge again with a lower optim.lr"
                )


def weight_changes(shell: Any, folder: Path) -> dict[str, LoraChange]:
    """Read what an adapter adds to weights, by their names; the model is a shell without any."""
    from peft.tuners.lora import LoraLayer
    from safetensors.torch import load_file

    adapted = load_adapter(shell, folder)
    config = adapted.peft_config[adapted.active_adapter]
    if config.lora_bias or config.fan_in_fan_out:
        raise CustosError(f"{folder}: not a plain LoRA adapter (adapter_config.json); train one")
    # PEFT puts the adapter where the backbone is, on ``meta``: its weights are put back here.
    weights = {
        _name_in_model(name, adapted): weight.float()
        for name, weight in load_file(folder / ADAPTER_FILE).items()
    }
    adapted.load_state_dict(weights, strict=False, assign=True)
    key = adapted.active_adapter
    return {
        f"{name}.weight": LoraChange(
            layer.lora_A[key].weight.detach(),
            layer.lora_B[key].weight.detach(),
            layer.scaling[key],
            layer.lora_magnitude_vector[key].weight.detach() if config.use_dora else None,
        )
        for name, layer in adapted.get_base_model().named_modules()
        if isinstance(layer, LoraLayer)
    }


@contextmanager
def _without_deprecation_notice() -> Iterator[None]:
    """Hide a notice of transformers on an attribute that PEFT 0.21 reads of every model."""
    # The lock is for threads that load judges: each would put the other's filters back.
    with _WRAPPING, warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "`is_gradient_checkpointing` is deprecated", category=FutureWarning
        )
        yield


def _mixed_precision(model: Any) -> Any:
    """Keep the adapter's weights in float32 without casting its input to float32."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    for module in model.modules():
        if isinstance(module, BaseTunerLayer):
            module.cast_input_dtype_enabled = False
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()
    return model


Quantization = Literal["nf4"]
BITS = 4 + 8 / 64 + 32 / (64 * 256)
"""Bits of a weight: its own, and its share of the scales of 64 weights and of 256 scales."""


def check_bitsandbytes(key: str) -> None:
    """Raise ``CustosError`` if bitsandbytes, for which a recipe's key asks, is not installed."""
    if find_spec("bitsandbytes") is None:
        raise CustosError(f"{key}: bitsandbytes is not installed; pip install bitsandbytes")


def check_quantization(name: str, config: Any) -> None:
    """Raise ``CustosError`` if a backbone cannot be quantized, before its weights are loaded."""
    check_bitsandbytes("run.quantization=nf4")
    if "moe" in config.model_type:
        raise CustosError(
            f"run.quantization=nf4: the experts of backbone '{name}' would stay as they are, which "
            f"saves little; choose a dense backbone or leave the key out"
        )


def quantized_layers(model: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield the layers that are quantized: the parent, the name in it, and the layer."""
    from torch import nn

    text = getattr(model.model, "language_model", model.model)
    for parent in list(text.layers.modules()):
        for name, layer in list(parent.named_children()):
            if type(layer) is nn.Linear:
                yield parent, name, layer


def quantize(model: Any) -> None:
    """Replace the linear layers of the text tower, which become NF4 when they reach a device."""
    from bitsandbytes.nn import Linear4bit

    for parent, name, layer in quantized_layers(model):
        quantized = Linear4bit(
            layer.in_features,
            layer.out_features,
            bias=layer.bias is not None,
            compute_dtype=layer.weight.dtype,
            quant_type="nf4",
            device="meta",
        )
        quantized.weight = type(quantized.weight)(
            layer.weight.data,
            requires_grad=False,
            compress_statistics=True,
            quant_type="nf4",
            module=quantized,
        )
        quantized.bias = layer.bias
        # Otherwise validation would pack the weights anew for some CPUs, and training unpack them.
        quantized.support_avx512bf16_for_cpu = False
        setattr(parent, name, quantized.train(layer.training))
    model.is_loaded_in_4bit = True  # PEFT asks for it


def num_weights(parameter: Any) -> int:
    """Count the weights that a parameter holds, quantized or not."""
    state = getattr(parameter, "quant_state", None)
    return int(state.shape.numel() if state else parameter.numel())
