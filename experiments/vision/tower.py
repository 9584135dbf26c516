"""A Qwen2.5-VL vision tower that runs over pictures of one size, for training on a CPU.

The library attends window by window, which costs hundreds of small calls a step. Here all windows
are one batch. The patch convolution is one matrix product, because its stride is its kernel size.
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
class Windows:
    """Windows of patches that attend to each other, as one batch padded to the longest."""

    length: int
    """Slots of each window: the patches of the longest one."""
    padding: tuple[Tensor, Tensor, Tensor] | None
    """Patch in each slot ``[windows * length]``, whether the slot holds a patch
    ``[windows, 1, 1, length]``, and the slot of each patch ``[patches]``; ``None`` if all windows
    are equally long."""

    @classmethod
    def of_lengths(cls, lengths: Tensor) -> Windows:
        """Return windows of consecutive patches, given the length of each, ``[windows]``."""
        longest = int(lengths.max())
        if bool((lengths == longest).all()):
            return cls(longest, None)
        filled = torch.arange(longest) < lengths[:, None]
        patches = filled.flatten().cumsum(0) - 1
        return cls(
            longest, (patches.clamp(min=0), filled[:, None, None], filled.flatten().nonzero()[:, 0])
        )


Block = Callable[[Any, Tensor, Windows, Tensor, Tensor], tuple[Tensor, Tensor]]
"""From a block, its input, windows, cosines and sines to its output and attention weights."""


class EqualPictures:
    """A vision tower that runs over pictures of the same size.

    Args:
        tower: ``Qwen2_5_VisionTransformerPretrainedModel``; its parameters are used as they are.
        compiled: Compile the blocks. That needs a C++ compiler and slows down the first step.
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
            Visual tokens, ``[pictures, tokens, hidden]``, as the tower's own ``pooler_output``; the
            input of the last block, the patches of a token side by side: ``[pictures, tokens,
            merge^2 * width]``; and the attention weights of the first head of that block,
            ``[pictures, tokens, tokens]``, whose rows sum to 1.

        Raises:
            ValueError: If the pictures differ in size.
        """
        merge = self.tower.spatial_merge_size
        if not bool((grid_thw == grid_thw[0]).all()):
            raise ValueError("the pictures differ in size")
        order, ends = get_vision_window_index(
            grid_thw,
            spatial_merge_size=merge,
            window_size=self.tower.window_size,
            patch_size=self.tower.patch_size,
        )
        hidden, last_input, attention = self._run_blocks(pixel_values, grid_thw, order, ends)
        by_key = attention.unflatten(2, (-1, merge**2)).sum(3)
        weights = by_key.unflatten(1, (-1, merge**2)).mean(2)
        in_order, pictures = order.argsort(), (len(grid_thw), -1)
        tokens = self.tower.merger(hidden)[in_order].unflatten(0, pictures)
        patches = last_input.unflatten(0, (-1, merge**2)).flatten(1)[in_order]
        in_order = in_order[: weights.shape[1]]  # the same in every picture
        return tokens, patches.unflatten(0, pictures), weights[:, in_order][:, :, in_order]

    def _run_blocks(
        self, pixel_values: Tensor, grid_thw: Tensor, order: Tensor, ends: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return output, input and attention weights of the last block, patches window by window.

        Args:
            pixel_values: Patches, as above.
            grid_thw: ``[pictures, 3]``.
            order: Visual tokens, window by window.
            ends: Patches before the end of each window, 0 first.
        """
        tower, merge = self.tower, self.tower.spatial_merge_size
        whole, parts = Windows.of_lengths(grid_thw.prod(-1)), Windows.of_lengths(ends.diff())

        def in_window_order(patches: Tensor) -> Tensor:
            ordered: Tensor = patches.unflatten(0, (-1, merge**2))[order].flatten(0, 1)
            return ordered

        weight = tower.patch_embed.proj.weight.flatten(1)
        hidden = in_window_order(functional.linear(pixel_values.to(weight.dtype), weight))
        rotary = tower.rotary_pos_emb(hidden, get_vision_position_ids(grid_thw, merge))
        cos, sin = map(in_window_order, rotary)
        for number, block in enumerate(tower.blocks):
            last_input = hidden
            windows = whole if number in tower.fullatt_block_indexes else parts
            hidden, attention = self.block(block, hidden, windows, cos, sin)
        return hidden, last_input, attention


def _block(
    block: Any, hidden: Tensor, windows: Windows, cos: Tensor, sin: Tensor
) -> tuple[Tensor, Tensor]:
    attended, weights = _attend(block.attn, block.norm1(hidden), windows, cos, sin)
    hidden = hidden + attended
    return hidden + block.mlp(block.norm2(hidden)), weights


def _attend(
    attention: Any, hidden: Tensor, windows: Windows, cos: Tensor, sin: Tensor
) -> tuple[Tensor, Tensor]:
    """Return attended patches, and the first head's weights ``[windows, length, length]``.

    The weights are float32.
    """
    heads = attention.num_heads
    query, key, value = attention.qkv(hidden).unflatten(-1, (3, heads, -1)).unbind(1)
    query, key = apply_rotary_pos_emb_vision(query, key, cos, sin)

    def by_window(patches: Tensor) -> Tensor:
        slots = patches[windows.padding[0]] if windows.padding else patches
        rows: Tensor = slots.unflatten(0, (-1, windows.length)).transpose(1, 2)
        return rows

    query, key, value = by_window(query), by_window(key), by_window(value)
    scores = (query @ key.transpose(-1, -2)).float() * attention.scaling
    if windows.padding:
        scores = scores.masked_fill(~windows.padding[1], -torch.inf)
    weights = scores.softmax(-1)
    mixed = (weights.to(value.dtype) @ value).transpose(1, 2).flatten(0, 1).flatten(-2)
    return attention.proj(mixed[windows.padding[2]] if windows.padding else mixed), weights[:, 0]
