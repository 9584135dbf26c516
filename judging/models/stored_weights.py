"""The weights of a checkpoint as its files hold them, read one tensor at a time."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judging.errors import CustosError
from judging.models.checkpoints import CONFIG, weight_files

if TYPE_CHECKING:
    import torch
    from torch import Tensor

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
        """Change some rows of the weight, in place, as PEFT changes all of them.

        Args:
            stored: The rows in float32, ``[rows, inputs]``.
            rows: Which rows these are.
        """
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
    one. The others are read in small pieces, changed and rounded here.

    Args:
        folder: Folder of the checkpoint.
        dtype: Format that the model will hold them in.
        changes: What to add to weights, by their names in transformers.
        replaced: Weights to take instead of those in the files, by their names in transformers.

    Raises:
        CustosError: If the checkpoint lacks a weight that is to be changed, or it has not the shape
            that ``config.json`` says.
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
    """Hide the table of weights that transformers prints where custos raises an error of a line."""
    marks = ("MISSING", "MISMATCH", "absent from the checkpoint")

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
