"""Checkpoints with random weights in the shape of a published one, for where none can be had.

The files are laid out as on the hub: bfloat16 shards with an index, configuration, tokenizer, chat
template, limits on pictures. A judge trained on them knows nothing; its card says so.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from huggingface_hub import split_torch_state_dict_into_shards
from safetensors.torch import save_file
from torch import Tensor
from transformers.core_model_loading import revert_weight_conversion

from judging.errors import CustosError
from judging.files.records import write_json
from judging.fingerprint import digest, file_sha256
from judging.models.backbones import RANDOM_WEIGHTS, empty_model
from judging.models.checkpoints import INDEX, TEXT_FAMILIES
from judging.models.embedded import CHAT_TEMPLATE, embedded_folder
from judging.models.fetched import cache_folder
from train.launch.run_plan import backbone_config
from train.plan.row_sizes import PUBLISHED_LIMITS

TOKENIZER_VARIABLE = "CUSTOS_REAL_TOKENIZER"
"""Environment variable with a folder of tokenizer files; 'make real-tokenizer' makes one."""
REAL_TOKENIZER = Path(__file__).parents[2] / ".real-tokenizer"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
SHARD = "1GB"
"""Size of a shard, which is all that is held in memory."""
DEVIATION = 0.02
"""Standard deviation of matrices; norms are 1 and biases 0."""
GIB = 2**30
_TOKENS = {"image": "image_pad", "video": "video_pad"} | {
    name: name for name in ("vision_start", "vision_end")
}


def random_checkpoint(name: str) -> Path:
    """Make a folder with random weights in the shape of a backbone, once; return it.

    Raises ``CustosError`` if the shape is unknown, or the disk has too little space.
    """
    config = backbone_config(name)
    # The backbone's own tokenizer, else the published one of Qwen3, else the embedded one.
    candidates = (Path(name), Path(os.environ.get(TOKENIZER_VARIABLE, REAL_TOKENIZER)))
    whole = (f for f in candidates if all((f / file).is_file() for file in TOKENIZER_FILES))
    tokenizer = next(whole, None) or embedded_folder()
    made_of = {
        "config": config.to_json_string(),
        "tokenizer": {file: file_sha256(tokenizer / file) for file in TOKENIZER_FILES},
    }
    folder = cache_folder() / "random-weights" / f"{Path(name).name}-{digest(made_of)[:12]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):  # of several processes one writes, and the others wait
        if not folder.is_dir():
            partial = folder.with_name(f"{folder.name}.partial")
            shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed
            try:
                partial.mkdir()
                _write(partial, config, tokenizer)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True)
                raise
            partial.rename(folder)
    return folder


def _write(folder: Path, config: Any, tokenizer: Path) -> None:
    ids = _write_tokenizer(folder, tokenizer)
    if ids["most"] >= config.get_text_config().vocab_size:
        raise CustosError(
            f"{tokenizer}: {ids['most'] + 1:,} tokens are more than the "
            f"{config.get_text_config().vocab_size:,} of the backbone; name a folder with its own "
            f"tokenizer in {TOKENIZER_VARIABLE}"
        )
    is_text = config.model_type in TEXT_FAMILIES
    if not is_text:
        config.update({f"{key}_token_id": ids[key] for key in _TOKENS})
    config.get_text_config().update({key: ids[key] for key in ("eos_token_id", "pad_token_id")})
    model = empty_model(config)
    config.update({RANDOM_WEIGHTS: True, "architectures": [type(model).__name__]})
    config.save_pretrained(folder)
    if not is_text:
        vision = config.vision_config
        limits = PUBLISHED_LIMITS.get(vision.patch_size, PUBLISHED_LIMITS[16])
        images = {
            "image_processor_type": "Qwen2VLImageProcessor",
            "size": {"shortest_edge": limits.min_pixels, "longest_edge": limits.max_pixels},
            "patch_size": vision.patch_size,
            "temporal_patch_size": vision.temporal_patch_size,
            "merge_size": vision.spatial_merge_size,
        }
        if config.model_type.startswith("qwen3"):
            images |= {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
        write_json(folder / "preprocessor_config.json", images)
    _write_weights(folder, model)


def _write_tokenizer(folder: Path, tokenizer: Path) -> dict[str, int]:
    """Copy a tokenizer and return the ids of its special tokens, and the highest id."""
    from transformers import AutoTokenizer

    for file in TOKENIZER_FILES:
        shutil.copyfile(tokenizer / file, folder / file)
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE, encoding="utf-8")
    loaded = AutoTokenizer.from_pretrained(str(folder))
    ids = {key: loaded.convert_tokens_to_ids(f"<|{token}|>") for key, token in _TOKENS.items()}
    special = {key: getattr(loaded, key) for key in ("eos_token_id", "pad_token_id")}
    return {**ids, **special, "most": max(loaded.get_vocab().values())}


def _write_weights(folder: Path, model: Any) -> None:
    """Draw and write one shard after the other; raise ``CustosError`` if the disk is too full."""
    # Tensors without data under the names and in the shapes that checkpoints store.
    tied = set(getattr(model, "all_tied_weights_keys", None) or {})
    untied = {name: tensor for name, tensor in model.state_dict().items() if name not in tied}
    stored = revert_weight_conversion(model, untied)
    shapes = {name: tensor.to(torch.bfloat16) for name, tensor in stored.items()}
    shards = split_torch_state_dict_into_shards(
        shapes, filename_pattern="model{suffix}.safetensors", max_shard_size=SHARD
    )
    size = sum(tensor.nbytes for tensor in shapes.values())
    free = shutil.disk_usage(folder).free
    if size > free:
        raise CustosError(
            f"{folder.parent}: random weights take {size / GIB:.1f} GiB, and {free / GIB:.1f} GiB "
            "are free; name another folder in CUSTOS_CACHE"
        )
    device = "cuda" if torch.cuda.is_available() else "cpu"  # a CPU takes a minute for 4B weights
    for number, (file, names) in enumerate(sorted(shards.filename_to_tensors.items())):
        generator = torch.Generator(device).manual_seed(number)
        drawn = {name: _draw(name, shapes[name], generator) for name in names}
        save_file(drawn, folder / file, metadata={"format": "pt"})
    if shards.is_sharded:
        index = {"metadata": shards.metadata, "weight_map": shards.tensor_to_filename}
        (folder / INDEX).write_text(json.dumps(index), encoding="utf-8")


def _draw(name: str, shape: Tensor, generator: torch.Generator) -> Tensor:
    if name.endswith("bias"):
        return torch.zeros(shape.shape, dtype=shape.dtype)
    if shape.ndim == 1:
        return torch.ones(shape.shape, dtype=shape.dtype)
    drawn = torch.empty(shape.shape, dtype=shape.dtype, device=generator.device)
    return drawn.normal_(0, DEVIATION, generator=generator).cpu()
