"""A checkpoint's files: checked before any weights are loaded, and its weights, read one by one."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judging.errors import CustosError, FieldError, Missing
from judging.files.opening import refuse_lfs_pointer
from judging.fingerprint import digest, file_sha256
from judging.types import END_TOKEN, START_TOKEN

if TYPE_CHECKING:
    import torch
    from torch import Tensor

MODEL_CLASSES = {
    "qwen2_vl": "Qwen2VLForConditionalGeneration",
    "qwen2_5_vl": "Qwen2_5_VLForConditionalGeneration",
    "qwen3_vl": "Qwen3VLForConditionalGeneration",
    "qwen3_vl_moe": "Qwen3VLMoeForConditionalGeneration",
    "qwen3_5": "Qwen3_5ForConditionalGeneration",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
"""Classes of transformers, by model type."""
TEXT_FAMILIES = ("qwen2", "qwen3")
"""Model types that read text alone."""
VISION = "Qwen2-VL, Qwen2.5-VL, Qwen3-VL (also mixtures of experts) or Qwen3.5 (dense)"
SUPPORTED = f"{VISION}, or for text Qwen2, Qwen2.5 or Qwen3 (dense)"
CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
SINGLE_FILE = "model.safetensors"
PICKLED = ("*.bin", "*.pt", "*.pth")
TEMPLATE_JSON = "chat_template.json"
WANTED = {
    "tokenizer_config.json": (("tokenizer_config.json",),),
    "tokenizer.json (or vocab.json and merges.txt)": (
        ("tokenizer.json",),
        ("vocab.json", "merges.txt"),
    ),
    "preprocessor_config.json": (("preprocessor_config.json",), ("processor_config.json",)),
}
"""Other files of a checkpoint, by their name in an error; one of several sets is enough. Text
families need no processor."""
OBJECTS = (
    *("tokenizer_config.json", "tokenizer.json", "preprocessor_config.json"),
    *("processor_config.json", "generation_config.json", TEMPLATE_JSON),
)
"""Other files that must hold a JSON object if they are there."""


def check_config(name: str, config: dict[str, Any]) -> None:
    """Raise ``CustosError`` if custos cannot load the backbone that a ``config.json`` describes.

    It may be of another family, need code of its own, or be quantized.
    """
    family = config.get("model_type")
    if not isinstance(family, str) or family not in MODEL_CLASSES:
        kind = f"model type '{family}'" if family else "a config.json without model_type"
        raise CustosError(
            f"backbone '{name}': {kind} is not supported; use a {SUPPORTED} checkpoint, or "
            f"'embedded'"
        )
    if family in TEXT_FAMILIES and config.get("vision_config") is not None:
        raise CustosError(
            f"backbone '{name}': its config.json describes a vision tower (vision_config), which "
            f"no {family} model has; take it out, or use a {VISION} checkpoint"
        )
    if "auto_map" in config or config.get("trust_remote_code"):
        raise CustosError(
            f"backbone '{name}': its config.json asks to run code of its own (auto_map), which "
            f"custos never does; use a {SUPPORTED} checkpoint without it"
        )
    if quantization := config.get("quantization_config"):
        method = (
            quantization.get("quant_method") if isinstance(quantization, dict) else quantization
        )
        raise CustosError(
            f"backbone '{name}': its weights are quantized ({method}); use the checkpoint in "
            f"bfloat16 that it was made from"
        )


def check_vocabulary(name: str, tokenizer: Any, rows: int) -> None:
    """Raise ``CustosError`` if a text can become a token that an embedding has no row for.

    Added tokens that no prompt holds may be beyond it. Padding that is, or is missing, becomes
    another token: it is never read.
    """
    turns = [tokenizer.convert_tokens_to_ids(token) for token in (START_TOKEN, END_TOKEN)]
    if (most := max(tokenizer.vocab_size, *(token + 1 for token in turns))) > rows:
        raise CustosError(
            f"backbone '{name}': its tokenizer knows {most:,} tokens and its weights {rows:,}; "
            f"copy tokenizer and weights of one checkpoint into the folder"
        )
    if tokenizer.pad_token_id is None or tokenizer.pad_token_id >= rows:
        tokenizer.pad_token = END_TOKEN


def check_numbers(name: str, text: Any) -> None:
    """Raise ``CustosError`` if a text model's configuration would make every logit senseless."""
    for key, number, is_sound in (
        ("rms_norm_eps", eps := text.rms_norm_eps, 0 <= eps < 1),
        ("rope_theta", base := text.rope_parameters["rope_theta"], 0 < base < math.inf),
    ):
        if not is_sound:
            raise CustosError(
                f"backbone '{name}': {key} is {number}, which no model has; download it again"
            )
    if text.rope_parameters.get("rope_type") == "longrope":
        raise CustosError(
            f"backbone '{name}': its positions change with the length of a prompt (longrope), "
            f"which custos does not compute; use a checkpoint without it"
        )


def check_full_attention(name: str, text: Any) -> None:
    """Raise ``CustosError`` if a layer of a text model sees the latest tokens alone, or others."""
    if not getattr(text, "is_causal", True):
        raise CustosError(
            f"backbone '{name}': its tokens see those behind them (is_causal), as in models that "
            f"embed texts; use a checkpoint that writes"
        )
    kinds = set(getattr(text, "layer_types", None) or ())
    computed = {"full_attention", "sliding_attention"}
    if text.model_type not in TEXT_FAMILIES:
        computed.add("linear_attention")
    if others := sorted(kinds - computed):
        raise CustosError(
            f"backbone '{name}': layers of it are of the kind {others[0]} (layer_types), which "
            f"custos does not compute; use a checkpoint without it"
        )
    window = getattr(text, "sliding_window", None) or 0
    if "sliding_attention" in kinds and window < text.max_position_embeddings:
        raise CustosError(
            f"backbone '{name}': layers of it see the last {window:,} tokens alone "
            f"(sliding_window), which custos does not compute; use a checkpoint without it"
        )


def no_pictures(name: str) -> FieldError:
    """Return the error for pictures that a text family is to read."""
    return FieldError(
        "images",
        f"{name} reads text alone; leave pictures out, or use a judge on a {VISION} checkpoint",
    )


def missing_backbone(name: str, reason: str) -> Missing:
    """Return the error for a backbone that is neither here nor on the hub."""
    return Missing(
        f"backbone '{name}' cannot be loaded ({reason.strip().splitlines()[0]}); give a folder or "
        "a reachable hub id, or a name of 'custos backbones'"
    )


def check_checkpoint(name: str, folder: Path, *, weights: bool) -> None:
    """Check that a folder has every file that a backbone is loaded from, and that it can be read.

    Raises ``Missing`` if files are missing, ``CustosError`` if one is broken or refused by
    :func:`check_config`. Weights are checked if asked for.
    """
    if not (folder / CONFIG).is_file():
        raise missing_backbone(name, _why_no_config(folder))
    config = read_object(folder / CONFIG)
    check_config(name, config)
    is_text = config["model_type"] in TEXT_FAMILIES
    absent = [
        name
        for name, sets in WANTED.items()
        if not (is_text and name.startswith("preprocessor"))
        and not any(all((folder / file).is_file() for file in files) for files in sets)
    ]
    if absent:
        raise Missing(
            f"backbone '{folder}': no {', no '.join(absent)}; copy what is missing from the "
            f"published checkpoint into the folder"
        )
    for file in OBJECTS:
        if (folder / file).is_file():
            content = read_object(folder / file)
            if file == TEMPLATE_JSON and not isinstance(content.get("chat_template"), str):
                raise CustosError(
                    f"{folder / file}: no text under the key 'chat_template'; download it again"
                )
    if weights:
        check_weight_files(folder)


def _why_no_config(folder: Path) -> str:
    """Say what is wrong with a folder without a configuration."""
    if (folder / CONFIG).is_symlink():
        return f"its {CONFIG} is a link to nothing; copy folders of the hub's cache with cp -rL"
    if (folder / "adapter_config.json").is_file():
        return "it holds an adapter alone; merge it into its model"
    if files := sorted(folder.glob("*.gguf")):
        return f"the folder has no {CONFIG}, but '{files[0]}' is a GGUF file"
    below = sorted(folder.glob(f"snapshots/*/{CONFIG}")) or sorted(folder.glob(f"*/{CONFIG}"))
    hint = f", but '{below[-1].parent}' has one" if below else ""
    return f"the folder has no {CONFIG}{hint}"


def read_object(path: Path) -> dict[str, Any]:
    """Read a file that holds a JSON object; raise ``CustosError`` if it holds none."""
    try:
        refuse_lfs_pointer(path)
        content = json.loads(path.read_text(encoding="utf-8"))
    except PermissionError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error) if path.stat().st_size else "it is empty"
        raise CustosError(f"{path}: cannot be read as JSON ({reason}); download it again") from None
    if not isinstance(content, dict):
        raise CustosError(f"{path}: not a JSON object in braces; download it again")
    return content


@contextmanager
def reading(folder: Path, *files: str) -> Iterator[None]:
    """Name the files of a folder in every error that a library raises while it reads them."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 (the tokenizer's library raises no narrower one)
        names = ", ".join(file for file in files if (folder / file).is_file())
        reason = " ".join(str(error).split())[:300]
        raise CustosError(
            f"{folder}: {names} cannot be used ({reason}); download from the published checkpoint "
            f"again"
        ) from None


def weight_files(folder: Path) -> list[Path]:
    """Return the files of a checkpoint's weights, in order; the folder was checked before."""
    is_single = (folder / SINGLE_FILE).is_file()  # which transformers prefers to shards, too
    return [folder / shard for shard in ([SINGLE_FILE] if is_single else _shards_of_index(folder))]


def check_weight_files(folder: Path) -> None:
    """Check that every shard is there, whole and in safetensors; no weights are read."""
    if (folder / SINGLE_FILE).is_file():
        shards = {SINGLE_FILE: set[str]()}
    elif (folder / INDEX).is_file():
        shards = _shards_of_index(folder)
    else:
        if pickled := sorted(file.name for kind in PICKLED for file in folder.glob(kind)):
            raise CustosError(
                f"backbone '{folder}': {pickled[0]} is a pickle, which can run code when it is "
                f"read; custos reads safetensors only: save the checkpoint as safetensors"
            )
        raise Missing(f"backbone '{folder}': no weights ({SINGLE_FILE} or {INDEX})")
    if absent := [shard for shard in shards if not (folder / shard).is_file()]:
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        raise Missing(
            f"backbone '{folder}': {absent[0]}{more} of {len(shards)} shards missing; "
            f"download the checkpoint again"
        )
    for shard, tensors in shards.items():
        check_safetensors(folder / shard, tensors)


def _shards_of_index(folder: Path) -> dict[str, set[str]]:
    """List the names of the tensors of each shard."""
    path = folder / INDEX
    try:
        weight_map = json.loads(path.read_text(encoding="utf-8"))["weight_map"]
        shards: dict[str, set[str]] = {shard: set() for shard in sorted(weight_map.values())}
        for tensor, shard in weight_map.items():
            shards[shard].add(tensor)
    except (ValueError, KeyError, AttributeError, TypeError):
        raise CustosError(
            f"{path}: not an index of safetensors; download the checkpoint again"
        ) from None
    return shards


def check_safetensors(path: Path, tensors: Collection[str] = ()) -> None:
    """Raise ``CustosError`` if a file is damaged or lacks tensors; no weights are read."""
    from safetensors import SafetensorError, safe_open

    try:
        refuse_lfs_pointer(path)
        with safe_open(path, "pt") as file:  # compares the header with the size of the file
            present = set(file.keys())
    except PermissionError:
        raise
    except (SafetensorError, OSError) as error:
        raise CustosError(f"{path}: damaged or cut short ({error}); download it again") from None
    if absent := sorted(set(tensors) - present):
        raise CustosError(
            f"{path}: no tensor '{absent[0]}', which {INDEX} places there; download both again"
        )


def folder_sha256(folder: Path) -> str:
    """Return a digest of weights, configuration, tokenizer, chat template and pixel limits."""
    files = sorted(
        file for name in ("*.safetensors", "*.json", "*.jinja") for file in folder.glob(name)
    )
    return digest({file.name: file_sha256(file) for file in files})


_PIECE = 2**20
"""Numbers that are changed at once, so that intermediate results stay small."""
_FORMATS = {"float32": "F32", "bfloat16": "BF16"}
_TEXT_TOWER = "model.language_model."
_OLDER_TEXT_TOWERS = ("model.", "language_model.model.")
"""What checkpoints call the text tower, beside the name that transformers gives it."""


@dataclass(frozen=True)
class LoraChange:
    """Change that a LoRA layer makes to its weight."""

    first: Tensor
    """Shape ``[rank, inputs]``, float32."""
    second: Tensor
    """Shape ``[outputs, rank]``, float32."""
    scaling: float
    magnitude: Tensor | None = None
    """Norm that each row of the changed weight has (DoRA), ``[outputs]``; ``None``: as it is."""

    @property
    def shape(self) -> list[int]:
        """Return the shape of the weight."""
        return [self.second.shape[0], self.first.shape[1]]

    def apply(self, stored: Tensor, rows: slice) -> Tensor:
        """Change some rows of the weight, ``[rows, inputs]`` float32, in place, as PEFT does."""
        stored.add_((self.second[rows] @ self.first) * self.scaling)
        if self.magnitude is not None:
            stored.mul_((self.magnitude[rows] / stored.norm(dim=1))[:, None])
        return stored


def stored_weights(
    folder: Path,
    dtype: torch.dtype,
    changes: Mapping[str, LoraChange] | None = None,
    replaced: Mapping[str, Tensor] | None = None,
) -> dict[str, Any]:
    """Return the weights of a checkpoint by their names in its files.

    Weights that do not change are slices of safetensors, which transformers reads and rounds one by
    one. The others are read in small pieces, changed and rounded here: ``changes`` are added to
    them, ``replaced`` are taken instead of them, both by their names in transformers. A weight that
    is missing or of another shape raises ``CustosError``.
    """
    from safetensors import safe_open

    wanted = _FORMATS[str(dtype).removeprefix("torch.")]
    tensors: dict[str, Any] = {}
    left, others = dict(changes or {}), replaced or {}
    for file in weight_files(folder):
        mapped: Any = safe_open(file, "pt", backend="mmap")
        read: Any = safe_open(file, "pt", backend="pread")
        for name in mapped.keys():
            change = next((left.pop(alias) for alias in _aliases(name) if alias in left), None)
            other = next((others[alias] for alias in _aliases(name) if alias in others), None)
            # Pages of a mapped file stay in memory after they were rounded, changed or stacked
            # (experts) elsewhere. Weights that are taken as they are share them among processes.
            as_is = change is None and mapped.get_slice(name).get_dtype() == wanted
            source = mapped if as_is and ".experts." not in name else read
            tensors[name] = source.get_slice(name) if other is None else other
            if change and source.get_slice(name).get_shape() != change.shape:
                raise CustosError(
                    f"{folder / CONFIG}: the weights do not have the shapes that it says; download "
                    f"both again"
                )
            if change:
                tensors[name] = _changed(tensors[name], change, dtype)
    if left:
        raise CustosError(f"backbone '{folder}': no weight '{min(left)}', which an adapter changes")
    return tensors


@contextmanager
def without_report_of_missing_weights() -> Iterator[None]:
    """Hide the table of weights that transformers prints where custos raises an error of a line.

    What is left of the table are heads that no judge uses.
    """
    marks = ("LOAD REPORT", "absent from the checkpoint")

    def is_other(record: logging.LogRecord) -> bool:
        return not any(mark in record.getMessage() for mark in marks)

    logger = logging.getLogger("transformers.modeling_utils")
    logger.addFilter(is_other)
    try:
        yield
    finally:
        logger.removeFilter(is_other)


def _changed(stored: Any, change: LoraChange, dtype: torch.dtype) -> Tensor:
    """Return a stored weight with its change, added in float32 and rounded once."""
    import torch

    rows, columns = change.shape
    result = torch.empty(rows, columns, dtype=dtype)
    step = max(1, _PIECE // columns)
    for start in range(0, rows, step):
        piece = slice(start, min(start + step, rows))
        result[piece] = change.apply(stored[piece].to(torch.float32, copy=True), piece)
    return result


def _aliases(name: str) -> list[str]:
    """Return the names that transformers may give to a stored weight."""
    towers = [(_TEXT_TOWER, older) for older in _OLDER_TEXT_TOWERS] + [("model.visual.", "visual.")]
    return [
        name,
        *(tower + name.removeprefix(older) for tower, older in towers if name.startswith(older)),
    ]
