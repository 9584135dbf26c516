"""Pictures for vision towers, and what their attention must be, by a mask over all patches."""

from typing import Any

import torch
from torch import Tensor

GRIDS = torch.tensor([[1, 6, 10], [1, 4, 4], [1, 8, 12], [1, 4, 4]])
"""Frames, rows and columns of patches: several pictures, two of them of one size."""


class Pieces:
    """Attention within pieces, called as PyTorch's ``varlen_attn``, in the inputs' format.

    Attributes:
        lengths: Patches of each piece, by call.
    """

    def __init__(self) -> None:
        self.lengths: list[list[int]] = []

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        cu_seq_q: Tensor,
        cu_seq_k: Tensor,
        max_q: int,
        max_k: int,
        *,
        scale: float,
    ) -> Tensor:
        """Attend; all of ``[patches, heads, head_dim]``."""
        lengths = cu_seq_q.diff().tolist()
        assert cu_seq_q.dtype == torch.int32
        assert torch.equal(cu_seq_q, cu_seq_k)
        assert max_q == max_k == max(lengths)
        assert sum(lengths) == len(query) == len(key) == len(value)
        self.lengths.append(lengths)
        piece = torch.arange(len(lengths), device=query.device).repeat_interleave(cu_seq_q.diff())
        scores = torch.einsum("qhd,khd->hqk", query, key) * scale
        weights = scores.masked_fill(piece[:, None] != piece, -torch.inf).softmax(-1)
        return torch.einsum("hqk,khd->qhd", weights, value)


def read_pictures(model: Any) -> tuple[Tensor, dict[str, Tensor]]:
    """Return what the tower of a model makes of random pictures, and the gradients of its weights.

    Args:
        model: Backbone; gradients are those of a fixed weighted sum.
    """
    tower, vision = model.model.visual, model.config.vision_config
    generator = torch.Generator().manual_seed(5)
    patches = int(GRIDS.prod(-1).sum())
    numbers = 3 * vision.temporal_patch_size * vision.patch_size**2
    pixels = torch.randn(patches, numbers, generator=generator)
    tower.zero_grad()
    out = tower(pixels.to(tower.device, tower.dtype), grid_thw=GRIDS.to(tower.device)).pooler_output
    weights = torch.randn(out.shape, generator=generator).to(out)
    (out * weights).sum().backward()
    gradients = {
        name: parameter.grad.clone()
        for name, parameter in tower.named_parameters()
        if parameter.grad is not None
    }
    return out.detach(), gradients
