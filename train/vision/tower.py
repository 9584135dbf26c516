"""A Qwen2.5-VL vision tower run over pictures of one size, for training on a CPU.

The library attends window by window, which costs hundreds of small calls a step. Here all windows
are one batch; the patch convolution, whose stride is its kernel, is one matrix product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import apply_rotary_pos_emb_vision
from transformers.vision_utils import get_vision_position_ids, get_vision_window_index


@dataclass(frozen=True)
class Runs:
    """Runs of patches that see each other, as one batch padded to the longest."""

    length: int
    padding: tuple[Tensor, Tensor, Tensor] | None
    """Patch at each place ``[runs * length]``, whether the place counts ``[runs, 1, 1, length]``,
    and the place of each patch ``[patches]``; ``None`` where all runs are equally long."""

    @classmethod
    def of(cls, lengths: Tensor) -> Runs:
        """Runs one after the other, of lengths ``[runs]``."""
        longest = int(lengths.max())
        if bool((lengths == longest).all()):
            return cls(longest, None)
        counts = torch.arange(longest) < lengths[:, None]
        places = counts.flatten().cumsum(0) - 1
        return cls(
            longest, (places.clamp(min=0), counts[:, None, None], counts.flatten().nonzero()[:, 0])
        )


Block = Callable[[Any, Tensor, Runs, Tensor, Tensor], tuple[Tensor, Tensor]]


class EqualPictures:
    """Visual tokens of pictures that all have the same size.

    Args:
        tower: ``Qwen2_5_VisionTransformerPretrainedModel``; its parameters are used as they are.
        compiled: Compile the blocks (needs a C++ compiler; takes a minute, halves the step).
    """

    def __init__(self, tower: Any, *, compiled: bool) -> None:
        self.tower = tower
        self.block: Block = torch.compile(_block, dynamic=False) if compiled else _block

    def __call__(self, pixel_values: Tensor, grid_thw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Run the tower.

        Args:
            pixel_values: Patches, ``[pictures * patches, channels * time * height * width]``.
            grid_thw: ``[pictures, 3]``, every row the same.

        Returns:
            ``[pictures, tokens, hidden]``, as the tower's own ``pooler_output``; what comes into
            the last block, the patches of a token side by side: ``[pictures, tokens, merge^2 *
            width]``; and where the first head of that block looks: ``[pictures, tokens, tokens]``,
            rows sum to 1.
        """
        tower, merge = self.tower, self.tower.spatial_merge_size
        if not bool((grid_thw == grid_thw[0]).all()):
            raise ValueError("the pictures differ in size")
        windows, ends = get_vision_window_index(
            grid_thw,
            spatial_merge_size=merge,
            window_size=tower.window_size,
            patch_size=tower.patch_size,
        )
        whole, window = Runs.of(grid_thw.prod(-1)), Runs.of(ends.diff())

        def by_window(tensor: Tensor) -> Tensor:
            ordered: Tensor = tensor.unflatten(0, (-1, merge**2))[windows].flatten(0, 1)
            return ordered

        weight = tower.patch_embed.proj.weight.flatten(1)
        hidden = by_window(functional.linear(pixel_values.to(weight.dtype), weight))
        cos, sin = map(
            by_window, tower.rotary_pos_emb(hidden, get_vision_position_ids(grid_thw, merge))
        )
        for number, block in enumerate(tower.blocks):
            before_last = hidden
            runs = whole if number in tower.fullatt_block_indexes else window
            hidden, looks = self.block(block, hidden, runs, cos, sin)
        in_order, pictures = windows.argsort(), (len(grid_thw), -1)
        merged = tower.merger(hidden)[in_order].unflatten(0, pictures)
        middle = before_last.unflatten(0, (-1, merge**2)).flatten(1)[in_order]
        by_token = looks.unflatten(2, (-1, merge**2)).sum(3).unflatten(1, (-1, merge**2)).mean(2)
        in_order = in_order[: by_token.shape[1]]  # the same in every picture
        return merged, middle.unflatten(0, pictures), by_token[:, in_order][:, :, in_order]


def _block(
    block: Any, hidden: Tensor, runs: Runs, cos: Tensor, sin: Tensor
) -> tuple[Tensor, Tensor]:
    attended, looks = _attend(block.attn, block.norm1(hidden), runs, cos, sin)
    hidden = hidden + attended
    return hidden + block.mlp(block.norm2(hidden)), looks


def _attend(
    attention: Any, hidden: Tensor, runs: Runs, cos: Tensor, sin: Tensor
) -> tuple[Tensor, Tensor]:
    """Attended patches, and the first head's weights ``[runs, length, length]`` in float32."""
    heads = attention.num_heads
    query, key, value = attention.qkv(hidden).unflatten(-1, (3, heads, -1)).unbind(1)
    query, key = apply_rotary_pos_emb_vision(query, key, cos, sin)

    def by_run(patches: Tensor) -> Tensor:
        placed = patches[runs.padding[0]] if runs.padding else patches
        rows: Tensor = placed.unflatten(0, (-1, runs.length)).transpose(1, 2)
        return rows

    query, key, value = by_run(query), by_run(key), by_run(value)
    scores = (query @ key.transpose(-1, -2)).float() * attention.scaling
    if runs.padding:
        scores = scores.masked_fill(~runs.padding[1], -torch.inf)
    weights = scores.softmax(-1)
    mixed = (weights.to(value.dtype) @ value).transpose(1, 2).flatten(0, 1).flatten(-2)
    return attention.proj(mixed[runs.padding[2]] if runs.padding else mixed), weights[:, 0]
