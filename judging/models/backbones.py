"""Backbones: Qwen checkpoints, by name, hub id, folder or GGUF file."""

from __future__ import annotations

import copy
import os
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from judging.errors import CustosError, FieldError, nearest_name
from judging.files.pictures import PictureSize, PixelLimits
from judging.models.adapters import Quantization, check_quantization, quantize, weight_changes
from judging.models.checkpoints import (
    CONFIG,
    MODEL_CLASSES,
    check_checkpoint,
    check_full_attention,
    check_numbers,
    check_vocabulary,
    folder_sha256,
    missing_backbone,
    no_pictures,
    reading,
    stored_weights,
    without_report_of_missing_weights,
)
from judging.models.devices import computes_bfloat16, move_model, use_cores_of_quota, use_device
from judging.models.fetched import (
    EMBEDDED,
    EMBEDDED_2,
    cache_folder,
    embedded_folder,
    is_made,
    snapshot_folder,
    vision_weights,
)
from judging.models.gguf_files import (
    GGUF,
    NAMED,
    converted_name,
    folder_of_gguf,
    is_gguf,
    named_folder,
)

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Dtype = Literal["float32", "bfloat16"]

RANDOM_WEIGHTS = "custos_random_weights"
"""Key in ``config.json`` of checkpoints whose weights were drawn, not trained."""
BICUBIC = 3
"""PIL's number for the filter that Qwen's processors scale pictures with."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_HUB_ID = re.compile(r"[^/\s.~][^/\s]*/[^/\s]+")
_LOADING = threading.Lock()
"""Transformers and PEFT patch the whole process while they load: two loads would mix patches."""


@dataclass(frozen=True)
class Backbone:
    """A loaded model with its processor.

    A pickled backbone has no weights: processes that only encode prompts need none.
    """

    name: str
    """Name of a published model, ``embedded@N``, hub id, folder or file, as the user gave it."""
    version: str
    """Commit of a hub checkpoint, ``NAME@N``, or the hash of a folder's weights or of a file."""
    model: Any
    """Of a class in :data:`judging.models.checkpoints.MODEL_CLASSES`."""
    processor: Any
    changed_pixels: PixelLimits | None = None
    """Limits on pictures, if they are not the checkpoint's own, which ``version`` covers."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "model": self._qwen.config}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, model=empty_model(state["model"]).eval())

    @property
    def tokenizer(self) -> Any:
        """Return the processor's tokenizer."""
        return self.processor.tokenizer

    @property
    def context(self) -> int:
        """Return the most tokens that a prompt and its answer may have together."""
        return int(self.model.config.get_text_config().max_position_embeddings)

    @property
    def has_random_weights(self) -> bool:
        """Tell whether the weights were drawn, so that the model knows nothing."""
        return bool(getattr(self.model.config, RANDOM_WEIGHTS, False))

    def with_model(self, model: Any) -> Backbone:
        """Return the same backbone with its model wrapped in an adapter."""
        return replace(self, model=model)

    @property
    def reads_pictures(self) -> bool:
        """Tell whether the model sees pictures, not text alone."""
        return self.processor.image_processor is not None

    @property
    def pixels(self) -> PixelLimits:
        """Return between which areas pictures are scaled before the model sees them, if it does."""
        if not self.reads_pictures:
            return PixelLimits(0, 0)
        size = self.processor.image_processor.size
        return PixelLimits(int(size["shortest_edge"]), int(size["longest_edge"]))

    def with_pixels(self, min_pixels: int | None = None, max_pixels: int | None = None) -> Backbone:
        """Return the same backbone with other limits on pictures, if it reads any.

        Limits that are not given are the checkpoint's own, the upper one at most ``MOST_PIXELS``. A
        lower limit above the upper one raises ``FieldError``.
        """
        if not self.reads_pictures:
            return self
        limits = self.pixels.changed(min_pixels, max_pixels)
        if limits == self.pixels:
            return self
        processor = copy.copy(self.processor)
        processor.image_processor = copy.copy(processor.image_processor)
        processor.image_processor.size = {
            "shortest_edge": limits.min_pixels,
            "longest_edge": limits.max_pixels,
        }
        return replace(self, processor=processor, changed_pixels=limits)

    def num_picture_tokens(self, size: PictureSize) -> int:
        """Count the tokens that the model reads for a picture, which it must be able to read."""
        if not self.reads_pictures:
            raise no_pictures(self.name)
        images = self.processor.image_processor
        try:
            patches: int = images.get_number_of_image_patches(size.height, size.width)
        except ValueError:
            raise FieldError(
                "images",
                f"a picture has {size.width:,} x {size.height:,} pixels; one side may be at most "
                "200 times as long as the other",
            ) from None
        merged: int = patches // images.merge_size**2
        return merged

    def scaled_size(self, size: PictureSize) -> PictureSize | None:
        """Return the size that a picture above the limit is scaled down to for the model.

        ``None`` for other pictures, and for those so narrow that scaling the result would change it
        again.
        """
        from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

        self.num_picture_tokens(size)
        images = self.processor.image_processor
        if size.pixels <= self.pixels.max_pixels or images.resample != BICUBIC:
            return None
        limits = (images.patch_size * images.merge_size, *self.pixels)
        height, width = smart_resize(size.height, size.width, *limits)
        try:
            is_final = smart_resize(height, width, *limits) == (height, width)
        except ValueError:  # rounding has made it too narrow
            is_final = False
        return PictureSize(width, height) if is_final else None

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
    adapter: Path | None = None,
    quantization: Quantization | None = None,
    held_on: torch.device | None = None,
) -> Backbone:
    """Load a backbone for judging or training. Threads may call it at the same time.

    Args:
        name: ``embedded`` (``embedded@1``), ``embedded@2``, a name in :data:`NAMED`, a folder, a
            GGUF file, or a hub id.
        dtype: Format that the weights are rounded to (:func:`on_device`).
        device: Device for the model; default CUDA if there is one, else the CPU.
        weights: Load the weights. Without them the model is an empty shell (on PyTorch's ``meta``
            device) that knows its configuration and positions, for prompts that a server answers.
        version: :attr:`Backbone.version` to load; default the newest. A commit of a hub checkpoint
            is loaded even if the hub has newer ones.
        adapter: Run folder whose adapter is merged into the weights: added to each weight in
            float32, before the sum is rounded once. The backbone must be of ``version``.
        quantization: Format of the linear layers of its text tower, to train an adapter on.
        held_on: Device that holds the weights at first; default ``device``. A model that will be
            sharded over several devices need not fit on one.

    Raises:
        CustosError: If it cannot be found or is not of a supported family, or does not fit the
            adapter or the quantization, or PyTorch cannot use the GPUs that are there.
    """
    name = EMBEDDED if name == "embedded" else name
    folder, its_version = _found(name, version, weights=weights)
    from transformers import AutoConfig  # only now, because it takes seconds
    from transformers.utils.logging import disable_progress_bar

    from judging.models.processors import load_processor

    disable_progress_bar()
    if weights:
        device = use_device(device)  # reading them takes long
    with reading(folder, CONFIG):
        config = AutoConfig.from_pretrained(str(folder))
        config._attn_implementation = None  # a kernel of its authors', perhaps not installed here
        shell = empty_model(config)
    check_full_attention(name, config.get_text_config())
    check_numbers(name, config.get_text_config())
    if quantization:
        check_quantization(name, config)
    processor = load_processor(folder, config.model_type)
    check_vocabulary(name, processor.tokenizer, config.get_text_config().vocab_size)
    loaded_version = its_version or folder_sha256(folder)
    if adapter and version:
        check_version(adapter, name, version, loaded_version)
    try:
        replaced = vision_weights() if name == EMBEDDED_2 and weights else None
        model = _load_model(folder, config, dtype, adapter, replaced) if weights else shell
    except (OSError, ValueError) as error:
        raise missing_backbone(name, str(error)) from None
    model = on_device(model.eval(), device, quantization, held_on) if weights else model.eval()
    return Backbone(name, loaded_version, model, processor)


def check_version(adapter: Path, name: str, trained_on: str, version: str) -> None:
    """Raise ``CustosError`` if a backbone is not the version that an adapter was trained on."""
    if version != trained_on:
        raise CustosError(
            f"{adapter}: trained on {name} version {trained_on}, but version {version} is here"
        )


def _found(name: str, version: str | None, *, weights: bool) -> tuple[Path, str | None]:
    """Find a checkpoint's folder, fetched if need be, and its version; ``None`` for a user's."""
    its_version: str | None = None
    if name in (EMBEDDED, EMBEDDED_2):
        folder, its_version = embedded_folder(), name
    elif name in NAMED:
        folder, its_version = named_folder(name), NAMED[name].file.version
    elif is_gguf(name):
        folder, its_version = folder_of_gguf(Path(name))
    elif name.lower().endswith(GGUF) and version and is_made(kept := converted_name(version)):
        folder, its_version = cache_folder() / kept, version  # the file itself may be gone
    elif Path(name).is_dir():
        folder = Path(name)
    elif os.path.isfile(name) or name.lower().endswith(GGUF):
        raise missing_backbone(
            name,
            "no GGUF file, nor the folder of a checkpoint"
            if os.path.isfile(name)
            else "there is no such file",
        )
    elif not _HUB_ID.fullmatch(name):
        nearest = nearest_name(name.lower(), (EMBEDDED, EMBEDDED_2, *NAMED))
        raise missing_backbone(
            name, f"there is no such folder, and models on the hub are named OWNER/NAME{nearest}"
        )
    else:
        revision = version if version and _COMMIT.fullmatch(version) else "main"
        folder = snapshot_folder(name, revision, weights=weights)
        return folder, folder.name  # the commit
    try:
        check_checkpoint(name, folder, weights=weights)
    except CustosError as error:
        if its_version is None:
            raise
        raise CustosError(  # a copy of the cache may be cut short
            f"backbone '{name}': what was made of it is damaged ({str(error).partition('; ')[0]}); "
            f"delete {folder}, and it is made again"
        ) from None
    return folder, its_version


def _load_model(
    folder: Path,
    config: Any,
    dtype: Dtype,
    adapter: Path | None,
    replaced: Mapping[str, Tensor] | None,
) -> Any:
    """Load the weights in a format, with the adapter of a run folder merged into them."""
    import torch
    import transformers

    use_cores_of_quota()
    model_class = getattr(transformers, MODEL_CLASSES[config.model_type])
    try:
        with _LOADING:
            changes = weight_changes(empty_model(config), adapter) if adapter else None
            weights = stored_weights(folder, getattr(torch, dtype), changes, replaced)
            with without_report_of_missing_weights():
                model, report = model_class.from_pretrained(
                    None,
                    config=config,
                    state_dict=weights,
                    dtype=getattr(torch, dtype),
                    output_loading_info=True,
                )
    except RuntimeError as error:
        if "ignore_mismatched_sizes" not in str(error):
            raise
        raise CustosError(
            f"{folder / CONFIG}: the weights do not have the shapes that it says; download both "
            f"again"
        ) from None
    if absent := sorted(report["missing_keys"]):  # the library would fill them with random numbers
        others = sorted(report["unexpected_keys"])
        remedy = (
            f"the files hold others, such as '{others[0]}': save the model itself, not quantized "
            f"and without an adapter or a wrapper around it"
            if others
            else "download the checkpoint again"
        )
        raise CustosError(
            f"backbone '{folder}': {len(absent)} weights are missing, such as '{absent[0]}'; "
            f"{remedy}"
        )
    parts = {name for parent in (model, model.model) for name, _ in parent.named_children()}
    # Other heads, such as one that rates, leave the logits as they are.
    if spare := sorted(name for name in report["unexpected_keys"] if name.split(".")[0] in parts):
        raise CustosError(
            f"backbone '{folder}': {len(spare)} weights have no place in the model that {CONFIG} "
            f"describes, such as '{spare[0]}'; download both again, not quantized"
        )
    model.name_or_path = model.config.name_or_path = str(folder)
    if adapter and dtype == "bfloat16":  # also the few that transformers keeps in float32
        for parameter in model.parameters():
            parameter.data = parameter.data.bfloat16()
    return model


def empty_model(config: Any) -> Any:
    """Return a model of a configuration without weights, on PyTorch's ``meta`` device."""
    import torch
    import transformers

    from judging.models.attention import register_attention

    register_attention()
    config = copy.deepcopy(config)  # perhaps of a loaded model, which keeps its attention
    config._attn_implementation = None  # because the library refuses the name of a GPU's
    with torch.device("meta"):
        return getattr(transformers, MODEL_CLASSES[config.model_type])(config)


def on_device(
    model: Any,
    device: str | torch.device | None = None,
    quantization: Quantization | None = None,
    held_on: torch.device | None = None,
) -> Any:
    """Move a model to a device (default CUDA if there is one) and choose its attention.

    Weights in bfloat16 become float32 if the device does not compute in bfloat16. A quantized model
    is quantized layer by layer on the way. With ``held_on`` the weights stay on that device.
    """
    import torch

    from judging.models.attention import choose_attention

    target = use_device(device)
    if model.dtype == torch.bfloat16 and not computes_bfloat16(target):
        model = model.float()
    model.set_attn_implementation(choose_attention(model.config, target, model.dtype))
    if quantization:
        quantize(model)
    return move_model(model, held_on or target)
