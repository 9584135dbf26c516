"""Backbones: Qwen-VL checkpoints, by hub id, folder, or ``embedded``."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from judging.errors import CustosError, Missing
from judging.fingerprint import digest, file_sha256
from judging.models.checkpoints import MODEL_CLASSES, check_config, check_weight_files
from judging.models.embedded import EMBEDDED, EMBEDDED_2, embedded_folder, load_vision_weights

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Dtype = Literal["float32", "bfloat16"]

_COMMIT = re.compile(r"[0-9a-f]{40}")
_HUB_ID = re.compile(r"[^/\s.~][^/\s]*/[^/\s]+")
_LOADING = threading.Lock()
"""Transformers patches the whole process while it loads a model: two loads would mix patches."""


@dataclass(frozen=True)
class Backbone:
    """A loaded model with its processor."""

    name: str
    """Hub id, folder or ``embedded@N``, as the user gave it."""
    version: str
    """Commit of a hub checkpoint, ``embedded@N``, or the hash of a folder's weights."""
    model: Any
    """Of a class in :data:`judging.models.checkpoints.MODEL_CLASSES`."""
    processor: Any

    @property
    def tokenizer(self) -> Any:
        """Return the processor's tokenizer."""
        return self.processor.tokenizer

    @property
    def context(self) -> int:
        """Return the most tokens that a prompt and its answer may have together."""
        return int(self.model.config.text_config.max_position_embeddings)

    def with_model(self, model: Any) -> Backbone:
        """Return the same backbone with its model wrapped in an adapter."""
        return replace(self, model=model)

    @property
    def _qwen(self) -> Any:
        get_base = getattr(self.model, "get_base_model", None)
        return get_base() if get_base else self.model

    def positions(self, token_ids: Sequence[int], image_grid_thw: Tensor | None) -> Tensor:
        """Compute the rotary positions of a whole prompt, ``[3, T]`` int64.

        Text is counted; prompts with images follow the model's own rule. It must get the image
        tokens: without them Qwen2.5-VL counts, and reports nothing.
        """
        import torch

        length = len(token_ids)
        if image_grid_thw is None:
            return torch.arange(length).expand(3, length)
        ids = torch.tensor(token_ids)[None]
        is_image = (ids == self.model.config.image_token_id).int()
        positions: Tensor = self._qwen.model.get_rope_index(
            input_ids=ids,
            mm_token_type_ids=is_image,
            image_grid_thw=image_grid_thw,
            attention_mask=torch.ones_like(ids),
        )[0]
        return positions[:, 0].cpu()


def load_backbone(
    name: str,
    *,
    dtype: Dtype = "bfloat16",
    device: str | torch.device | None = None,
    weights: bool = True,
    version: str | None = None,
) -> Backbone:
    """Load a backbone for judging or training. Threads may call it at the same time.

    Args:
        name: ``embedded`` (``embedded@1``), ``embedded@2``, a folder, or a hub id.
        dtype: Format that the weights are rounded to (:func:`on_device`).
        device: Device for the model; default CUDA if there is one, else the CPU.
        weights: Load the weights. Without them the model is an empty shell (on PyTorch's ``meta``
            device) that knows its configuration and positions, for prompts that a server answers.
        version: :attr:`Backbone.version` to load; default the newest. A commit of a hub checkpoint
            is loaded even if the hub has newer ones.

    Raises:
        CustosError: If it cannot be found or is not of a supported family.
    """
    name = EMBEDDED if name == "embedded" else name
    is_embedded = name in (EMBEDDED, EMBEDDED_2)
    source = str(embedded_folder()) if is_embedded else name
    revision = version if version and _COMMIT.fullmatch(version) else "main"
    if not Path(source).is_dir():
        _ask_hub(name, revision)  # Before the imports, which take seconds.
    elif not (Path(source) / "config.json").is_file():
        raise _missing(name, "the folder has no config.json")
    from transformers import AutoConfig, PretrainedConfig
    from transformers.utils.logging import disable_progress_bar

    from judging.models.processors import load_processor

    disable_progress_bar()
    try:
        check_config(name, PretrainedConfig.get_config_dict(source, revision=revision)[0])
        config = AutoConfig.from_pretrained(source, revision=revision)
        processor = load_processor(source, config.model_type, revision)
        if weights and Path(source).is_dir():
            check_weight_files(Path(source))
        model = _load_model(source, config, revision, dtype if weights else None)
    except (OSError, ValueError) as error:
        raise _missing(name, str(error)) from None
    if name == EMBEDDED_2 and weights:
        load_vision_weights(model)
    if is_embedded:
        loaded_version = name
    elif Path(name).is_dir():
        loaded_version = _folder_sha256(Path(name))
    else:
        loaded_version = getattr(config, "_commit_hash", None) or "unknown"
    model = on_device(model.eval(), device) if weights else model.eval()
    return Backbone(name, loaded_version, model, processor)


def _ask_hub(name: str, revision: str) -> None:
    """Ask the hub once whether it has a model that is not in the hub's cache here.

    The hub's own client would try for half a minute to reach it.

    Raises:
        Missing: If the hub has no such model or cannot be reached, or the name is not of the form
            ``OWNER/NAME``.
    """
    if not _HUB_ID.fullmatch(name):
        raise _missing(name, "there is no such folder, and models on the hub are named OWNER/NAME")
    from huggingface_hub import get_hf_file_metadata, hf_hub_url, try_to_load_from_cache

    try:
        if not isinstance(try_to_load_from_cache(name, "config.json", revision=revision), str):
            get_hf_file_metadata(hf_hub_url(name, "config.json", revision=revision))
    except Exception as error:  # noqa: BLE001 (the client raises errors of its HTTP library too)
        raise _missing(name, f"the hub says: {error}") from None


def _missing(name: str, reason: str) -> Missing:
    return Missing(
        f"backbone '{name}' cannot be loaded ({reason.strip().splitlines()[0]}); give a folder or "
        "a reachable hub id, or use 'embedded'"
    )


def _load_model(source: str, config: Any, revision: str, dtype: Dtype | None) -> Any:
    """Load the weights in a format, or none of them if that is ``None``."""
    import torch
    import transformers

    if dtype is None:
        return empty_model(config)
    _register_attention()
    model_class = getattr(transformers, MODEL_CLASSES[config.model_type])
    with _LOADING:
        model, report = model_class.from_pretrained(
            source,
            config=config,
            revision=revision,
            dtype=getattr(torch, dtype),
            use_safetensors=True,
            output_loading_info=True,
        )
    if absent := sorted(report["missing_keys"]):  # the library would fill them with random numbers
        raise CustosError(
            f"backbone '{source}': {len(absent)} weights are missing, such as '{absent[0]}'; "
            f"download the checkpoint again"
        )
    return model


def empty_model(config: Any) -> Any:
    """Return a model of a configuration without weights, on PyTorch's ``meta`` device."""
    import torch
    import transformers

    _register_attention()
    with torch.device("meta"):
        return getattr(transformers, MODEL_CLASSES[config.model_type])(config)


def _register_attention() -> None:
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    from judging.models.attention import GROUPED, grouped_attention

    AttentionInterface.register(GROUPED, grouped_attention)
    AttentionMaskInterface.register(GROUPED, eager_mask)


def on_device(model: Any, device: str | torch.device | None = None) -> Any:
    """Move a model to a device (default CUDA if there is one) and choose its attention.

    Weights in bfloat16 become float32 if the device does not compute in bfloat16.
    """
    import torch

    from judging.models.attention import GROUPED
    from judging.models.device_dtype import computes_bfloat16

    target = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    if model.dtype == torch.bfloat16 and not computes_bfloat16(target):
        model = model.float()
    attention = GROUPED if target.type == "cpu" else "sdpa"
    model.set_attn_implementation({"text_config": attention, "vision_config": "sdpa"})
    return model.to(target)


def _folder_sha256(folder: Path) -> str:
    """Return a digest of weights, configuration, tokenizer, chat template and pixel limits."""
    files = sorted(
        file for name in ("*.safetensors", "*.json", "*.jinja") for file in folder.glob(name)
    )
    return digest({file.name: file_sha256(file) for file in files})
