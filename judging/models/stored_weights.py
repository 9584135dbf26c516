"""The weights of a checkpoint as its files hold them, read one tensor at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judging.errors import CustosError
from judging.models.checkpoints import weight_files

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Change = Callable[[], "Tensor"]
"""Function that returns what is added to a weight, in float32."""

_CHANGING = threading.Lock()
"""Transformers reads in several threads; a change takes several times the memory of its weight."""
_FORMATS = {"float32": "F32", "bfloat16": "BF16"}
_TEXT_TOWER = "model.language_model."
_OLDER_TEXT_TOWERS = ("model.", "language_model.model.")
"""What checkpoints call the text tower, beside the name that transformers gives it."""


class StoredTensor:
    """A tensor of a checkpoint that is read, and changed, only when a model takes it.

    It stands in for a slice of safetensors: transformers reads it with ``[...]``, rounds it and
    drops what it has read. So loading holds few tensors in the checkpoint's format at a time, and
    the others already in the model's (``tests/judging/models/test_load_memory.py``).

    Args:
        source: Open safetensors file.
        name: Name of the tensor in it.
        change: What to add to the weight.
    """

    def __init__(self, source: Any, name: str, change: Change | None = None) -> None:
        self._source, self._name, self._change = source, name, change

    def __getitem__(self, index: Any) -> Tensor:
        """Return the tensor, in float32 if it is changed, else as it is stored."""
        tensor: Tensor = self._source.get_tensor(self._name)
        if self._change:
            with _CHANGING:
                # In float32, because a sum with rounded weights would be rounded twice.
                tensor = tensor.float()
                tensor += self._change()
        return tensor[index]


def stored_weights(
    folder: Path, dtype: torch.dtype, changes: Mapping[str, Change] | None = None
) -> dict[str, StoredTensor]:
    """Return the tensors of a checkpoint by their names in its files. Nothing is read yet.

    Args:
        folder: Folder of the checkpoint.
        dtype: Format that the model will hold them in.
        changes: What to add to weights, by their names in transformers.

    Raises:
        CustosError: If the checkpoint lacks a weight that is to be changed.
    """
    from safetensors import safe_open

    wanted = _FORMATS[str(dtype).removeprefix("torch.")]
    tensors: dict[str, StoredTensor] = {}
    left = dict(changes or {})
    for file in weight_files(folder):
        mapped: Any = safe_open(file, "pt", backend="mmap")
        read: Any = safe_open(file, "pt", backend="pread")
        for name in mapped.keys():
            change = next((left.pop(alias) for alias in _aliases(name) if alias in left), None)
            # Pages of a mapped file stay in memory after they were rounded, changed or stacked
            # (experts) elsewhere. Weights that are taken as they are share them among processes.
            as_is = change is None and mapped.get_slice(name).get_dtype() == wanted
            source = mapped if as_is and ".experts." not in name else read
            tensors[name] = StoredTensor(source, name, change)
    if left:
        raise CustosError(f"backbone '{folder}': no weight '{min(left)}', which an adapter changes")
    return tensors


def _aliases(name: str) -> list[str]:
    """Return the names that transformers may give to a stored weight."""
    return [
        name,
        *(
            _TEXT_TOWER + name.removeprefix(older)
            for older in _OLDER_TEXT_TOWERS
            if name.startswith(older)
        ),
    ]
