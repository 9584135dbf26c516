"""Judges of one backbone keep in memory once what their adapters leave alone."""

from __future__ import annotations

from collections.abc import Iterable

from judging import Judge


def share_weights(judges: Iterable[Judge]) -> int:
    """Let judges use one tensor where their weights are equal; verdicts stay as they are.

    An adapter is merged into the matrices it was trained on, because a matrix beside a matrix
    makes scoring slower; embeddings, norms and the vision tower stay the backbone's.

    Returns:
        Bytes given back.
    """
    import torch

    kept: dict[tuple[str, str, str], torch.nn.Parameter] = {}
    num_bytes = 0
    for judge in judges:
        model = getattr(getattr(judge, "engine", None), "model", None)
        if not isinstance(model, torch.nn.Module):
            continue
        for name, parameter in model.named_parameters():
            key = (judge.backbone.name, judge.backbone.version, name)
            first = kept.setdefault(key, parameter)
            if first.data_ptr() != parameter.data_ptr() and _equal(first, parameter):
                parameter.data = first.data
                num_bytes += parameter.nbytes
    return num_bytes


def _equal(one: object, other: object) -> bool:
    import torch

    assert isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
    same = one.dtype == other.dtype and one.device == other.device and one.shape == other.shape
    return same and torch.equal(one, other)
