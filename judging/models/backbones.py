"""Backbones: any Qwen2.5-VL or Qwen3-VL checkpoint, by hub id, folder, or ``embedded``."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from judging.errors import CustosError, Missing
from judging.fingerprint import digest, file_sha256
from judging.models.embedded import EMBEDDED, EMBEDDED_2, embedded_folder, load_vision_weights

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Dtype = Literal["float32", "bfloat16"]

_COMMIT = re.compile(r"[0-9a-f]{40}")
_LOADING = threading.Lock()
"""Transformers makes models under process-wide patches: loads at the same time would mix theirs."""


@dataclass(frozen=True)
class Backbone:
    """A loaded model with its processor."""

    name: str
    """As given: hub id, folder or ``embedded@N``."""
    version: str
    """Commit of a hub checkpoint, ``embedded@N``, or the hash of a folder's weights."""
    model: Any
    """``Qwen2_5_VLForConditionalGeneration`` or ``Qwen3VLForConditionalGeneration``."""
    processor: Any

    @property
    def tokenizer(self) -> Any:
        """The processor's tokenizer."""
        return self.processor.tokenizer

    @property
    def context(self) -> int:
        """Most tokens of a prompt with its answer."""
        return int(self.model.config.text_config.max_position_embeddings)

    def with_model(self, model: Any) -> Backbone:
        """The same backbone with its model wrapped (an adapter)."""
        return replace(self, model=model)

    @property
    def _qwen(self) -> Any:
        get_base = getattr(self.model, "get_base_model", None)
        return get_base() if get_base else self.model

    def positions(self, token_ids: Sequence[int], image_grid_thw: Tensor | None) -> Tensor:
        """Rotary positions of a whole prompt, ``[3, T]`` int64.

        Plain counting for text; with images the model's own rule, which needs to be told which
        tokens are image tokens (left out, Qwen2.5-VL silently counts).
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
        dtype: What the weights are rounded to (:func:`on_device`).
        device: Where to put it; default CUDA if there is one, else CPU.
        weights: Load them; without, the model is an empty shell (on PyTorch's ``meta`` device) that
            knows its configuration and positions, for prompts that a server answers.
        version: :attr:`Backbone.version` that is wanted; of a hub checkpoint that commit is loaded,
            whatever the hub has come to since. Default: the newest.

    Raises:
        CustosError: If it cannot be found or is not of a supported family.
    """
    import torch
    from transformers import AttentionInterface, AttentionMaskInterface, AutoConfig
    from transformers import Qwen2_5_VLForConditionalGeneration as Qwen2_5_VL
    from transformers import Qwen3VLForConditionalGeneration as Qwen3_VL
    from transformers.masking_utils import eager_mask
    from transformers.utils.logging import disable_progress_bar

    from judging.models.attention import GROUPED, grouped_attention
    from judging.models.processors import load_processor

    classes = {"qwen2_5_vl": Qwen2_5_VL, "qwen3_vl": Qwen3_VL}
    name = EMBEDDED if name == "embedded" else name
    is_embedded = name in (EMBEDDED, EMBEDDED_2)
    source = str(embedded_folder()) if is_embedded else name
    revision = version if version and _COMMIT.fullmatch(version) else "main"
    AttentionInterface.register(GROUPED, grouped_attention)
    AttentionMaskInterface.register(GROUPED, eager_mask)
    disable_progress_bar()
    try:
        config = AutoConfig.from_pretrained(source, revision=revision)
        if config.model_type not in classes:
            raise CustosError(
                f"backbone '{name}': model type '{config.model_type}' is not supported; "
                f"use a Qwen2.5-VL or Qwen3-VL checkpoint, or 'embedded'"
            )
        if weights:
            with _LOADING:
                model = classes[config.model_type].from_pretrained(
                    source,
                    config=config,
                    revision=revision,
                    dtype=getattr(torch, dtype),
                    use_safetensors=True,
                )
        else:
            with torch.device("meta"):
                model = classes[config.model_type](config)
        processor = load_processor(source, config.model_type, revision)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise Missing(
            f"backbone '{name}' cannot be loaded ({reason}); "
            f"give a folder or a reachable hub id, or use 'embedded'"
        ) from None
    if name == EMBEDDED_2 and weights:
        load_vision_weights(model)
    if is_embedded:
        loaded = name
    elif Path(name).is_dir():
        loaded = _folder_sha256(Path(name))
    else:
        loaded = getattr(config, "_commit_hash", None) or "unknown"
    model = on_device(model.eval(), device) if weights else model.eval()
    return Backbone(name, loaded, model, processor)


def on_device(model: Any, device: str | torch.device | None = None) -> Any:
    """Move a model to a device (default CUDA if there is one); give it the attention for it.

    Weights in bfloat16 become float32 where the device does not compute in bfloat16.
    """
    import torch

    from judging.models.attention import GROUPED
    from judging.models.device_dtype import computes_bfloat16

    where = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    if model.dtype == torch.bfloat16 and not computes_bfloat16(where):
        model = model.float()
    attention = GROUPED if where.type == "cpu" else "sdpa"
    model.set_attn_implementation({"text_config": attention, "vision_config": "sdpa"})
    return model.to(where)


def _folder_sha256(folder: Path) -> str:
    """Digest of weights, configuration, tokenizer, chat template and pixel limits."""
    files = sorted(
        file for kind in ("*.safetensors", "*.json", "*.jinja") for file in folder.glob(kind)
    )
    return digest({file.name: file_sha256(file) for file in files})
