"""The files of a checkpoint with an adapter merged into its weights, named as its publisher's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from judging.errors import CustosError
from judging.files.pictures import PixelLimits
from judging.files.records import write_json
from judging.judge.card import CARD_FILE
from judging.models.adapters import weight_changes
from judging.models.backbones import Backbone, empty_model
from judging.models.checkpoints import CONFIG, INDEX, read_object, weight_files
from judging.models.embedded import EMBEDDED_2, vision_weights
from judging.models.stored_weights import stored_weights

_PUBLISHED = ("*.json", "*.jinja", "*.txt", "LICENSE*", "NOTICE*")
_IMAGE_FILES = ("preprocessor_config.json", "processor_config.json")


def write_checkpoint(backbone: Backbone, adapter: Path, dtype: str, folder: Path) -> None:
    """Write a backbone's checkpoint with the adapter of a run folder merged into its weights.

    Weights keep the names and the files that the backbone was published with. Its other files are
    copied as they are, but for the format of the weights in ``config.json`` and the limits on
    pictures of its preprocessor.

    Args:
        backbone: Backbone with the judge's limits on pictures; its weights are read from its files.
        adapter: Run folder.
        dtype: Format of the weights, ``bfloat16`` or ``float32``.
        folder: Empty folder to write to.

    Raises:
        CustosError: If the adapter does not fit the backbone, or weights cannot be written.
    """
    source = Path(backbone.model.config.name_or_path)
    _write_weights(backbone, source, adapter, dtype, folder)
    for file in sorted(file for pattern in _PUBLISHED for file in source.glob(pattern)):
        if file.is_file() and file.name not in (INDEX, CARD_FILE):
            shutil.copyfile(file, folder / file.name)
    config = read_object(source / CONFIG)
    for part in (config, config.get("text_config"), config.get("vision_config")):
        for key in ("dtype", "torch_dtype"):
            if isinstance(part, dict) and key in part:
                part[key] = dtype
    write_json(folder / CONFIG, config)
    for name in _IMAGE_FILES:
        if (folder / name).is_file():
            content = read_object(folder / name)
            write_json(folder / name, _with_pixels(content, backbone.pixels))


def _write_weights(
    backbone: Backbone, source: Path, adapter: Path, dtype: str, folder: Path
) -> None:
    """Write the weights file by file; the adapter is added as in :meth:`Judge.load`."""
    import torch
    from safetensors import SafetensorError, safe_open
    from safetensors.torch import save_file

    target = getattr(torch, dtype)
    changes = weight_changes(empty_model(backbone.model.config), adapter)
    replaced = vision_weights() if backbone.name == EMBEDDED_2 else None
    weights = stored_weights(source, target, changes, replaced)
    weight_map: dict[str, str] = {}
    total_size = 0
    for file in weight_files(source):
        with safe_open(file, "pt") as stored:
            names = list(stored.keys())
        tensors = {}
        for name in names:
            tensor = weights.pop(name)[:]  # so that a merged weight is freed once it is written
            tensors[name] = tensor.to(target) if tensor.is_floating_point() else tensor
        weight_map |= dict.fromkeys(names, file.name)
        total_size += sum(tensor.nbytes for tensor in tensors.values())
        try:
            save_file(tensors, folder / file.name, metadata={"format": "pt"})
        except SafetensorError as error:
            raise CustosError(
                f"{folder.parent}: weights cannot be written there: {error}"
            ) from None
    if (source / INDEX).is_file():
        index = {"metadata": {"total_size": total_size}, "weight_map": weight_map}
        write_json(folder / INDEX, index)


def _with_pixels(content: dict[str, Any], limits: PixelLimits) -> dict[str, Any]:
    """Return the configuration of an image processor with other limits on pictures."""
    changed: dict[str, Any] = json.loads(json.dumps(content))
    images: dict[str, Any] = changed.get("image_processor", changed)
    about_pictures = {"size", "min_pixels", "image_mean", "patch_size"}
    if images is changed and not about_pictures & changed.keys():
        return content  # a processor's file that leaves pictures to another file
    images["size"] = {"shortest_edge": limits.min_pixels, "longest_edge": limits.max_pixels}
    for key, value in limits._asdict().items():
        if key in images:
            images[key] = value
    return changed
