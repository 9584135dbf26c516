"""One forward pass over many prompts, each with its label tree, for training and judging alike.

A row is ``[item tokens | tree nodes | padding]``. All rows of a batch may share one instruction
prefix, computed once and expanded over the batch, with gradients when training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import DynamicCache

from judging.encoder import EncodedPrompt
from judging.tree import LabelTree

COLUMN_STEP = 8


@dataclass(frozen=True)
class ForestBatch:
    """Tensors of one forward pass over ``B`` rows of ``S`` columns after ``P`` prefix tokens."""

    prefix_ids: Tensor
    """Shared instruction tokens, ``[P]`` int64; empty when every row holds its own."""
    input_ids: Tensor
    """``[B, S]`` int64, right padded."""
    position_ids: Tensor
    """``[3, B, S]`` int64, continuing after the prefix."""
    visible: Tensor
    """``[B, S, P + S]`` bool: which keys a query sees (prefix, earlier prompt, own ancestors)."""
    slots: Tensor
    """``[B, K]`` int64: column of each slot (prompt end, then nodes); padded with 0."""
    vision: dict[str, Tensor]
    """``pixel_values`` and ``image_grid_thw`` of all rows in order, or empty."""

    def to(self, device: torch.device) -> ForestBatch:
        """The batch on a device, without waiting for the copy."""
        return ForestBatch(
            self.prefix_ids.to(device, non_blocking=True),
            self.input_ids.to(device, non_blocking=True),
            self.position_ids.to(device, non_blocking=True),
            self.visible.to(device, non_blocking=True),
            self.slots.to(device, non_blocking=True),
            {name: value.to(device, non_blocking=True) for name, value in self.vision.items()},
        )


def forest_batch(
    prompts: Sequence[EncodedPrompt],
    trees: Sequence[LabelTree],
    pad_id: int,
    *,
    share_prefix: bool = True,
) -> ForestBatch:
    """Lay prompts and their trees out as rows.

    Args:
        prompts: Encoded prompts; with ``share_prefix`` all must have the same instruction.
        trees: One label tree per prompt.
        pad_id: Token of padding columns.
        share_prefix: Take the instruction out of the rows; else each row starts with its own.

    Raises:
        ValueError: If the instructions differ under ``share_prefix``.
    """
    prefix = prompts[0].prefix_ids if share_prefix else ()
    if share_prefix and any(prompt.prefix_ids != prefix for prompt in prompts):
        raise ValueError("rows that share a prefix must have the same instruction")
    rows = [p.suffix_ids if share_prefix else (*p.prefix_ids, *p.suffix_ids) for p in prompts]
    lengths = [len(row) + len(tree.node_tokens) for row, tree in zip(rows, trees, strict=True)]
    # Few distinct widths: CPU kernels are made, and kept, per shape.
    columns = -(-max(lengths) // COLUMN_STEP) * COLUMN_STEP
    num_rows, past = len(rows), len(prefix)
    num_slots = max(tree.num_slots for tree in trees)

    input_ids = torch.full((num_rows, columns), pad_id)
    position_ids = torch.zeros(3, num_rows, columns, dtype=torch.int64)
    slots = torch.zeros(num_rows, num_slots, dtype=torch.int64)
    visible = torch.ones(columns, columns, dtype=torch.bool).tril().repeat(num_rows, 1, 1)
    for i, (prompt, row, tree) in enumerate(zip(prompts, rows, trees, strict=True)):
        end, nodes = len(row), len(tree.node_tokens)
        input_ids[i, :end] = torch.tensor(row)
        positions = prompt.positions[:, -end:]
        position_ids[:, i, :end] = positions
        slots[i, 0] = end - 1
        if nodes:
            input_ids[i, end : end + nodes] = torch.tensor(tree.node_tokens)
            position_ids[:, i, end : end + nodes] = positions.max() + torch.tensor(tree.depths())
            slots[i, 1 : nodes + 1] = torch.arange(end, end + nodes)
            visible[i, end : end + nodes, end : end + nodes] = False
            for node in range(nodes):
                visible[i, end + node, [end + a for a in tree.ancestors(node)]] = True
    before = torch.ones(num_rows, columns, past, dtype=torch.bool)
    grids = [prompt.vision for prompt in prompts if prompt.vision]
    vision = {name: torch.cat([grid[name] for grid in grids]) for name in grids[0]} if grids else {}
    return ForestBatch(
        torch.tensor(prefix, dtype=torch.int64),
        input_ids,
        position_ids,
        torch.cat([before, visible], dim=2),
        slots,
        vision,
    )


@dataclass(frozen=True)
class Prefix:
    """Keys and values of an instruction, one pair ``[1, kv_heads, P, head_dim]`` per layer."""

    layers: tuple[tuple[Tensor, Tensor], ...]

    def cache(self, config: Any, num_rows: int) -> DynamicCache:
        """A fresh cache holding the prefix for every row, without copying it."""
        cache = DynamicCache(config=config)
        for index, (key, value) in enumerate(self.layers):
            cache.update(
                key.expand(num_rows, -1, -1, -1), value.expand(num_rows, -1, -1, -1), index
            )
        return cache


class ForestModel(nn.Module):
    """A backbone called on forests; wrap this module, not the backbone, for DDP or FSDP."""

    backbone: Any

    def __init__(self, backbone: Any) -> None:
        super().__init__()
        self.backbone = backbone

    def prefill(self, prefix_ids: Tensor) -> Prefix:
        """Run the instruction once.

        Args:
            prefix_ids: ``[P]`` int64, ``P > 0``.
        """
        length = prefix_ids.shape[0]
        cache = DynamicCache(config=self.backbone.config)
        positions = torch.arange(length, device=prefix_ids.device).expand(3, 1, length)
        visible = torch.ones(1, length, length, dtype=torch.bool, device=prefix_ids.device).tril()
        self.backbone(
            input_ids=prefix_ids[None],
            position_ids=positions,
            attention_mask=self._additive(visible),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return Prefix(tuple((layer.keys, layer.values) for layer in cache.layers))

    def forward(self, batch: ForestBatch, prefix: Prefix | None = None) -> Tensor:
        """Next-token logits at every slot.

        Args:
            batch: Rows to run.
            prefix: Their prefilled instruction; computed here, with gradients, when ``None``.

        Returns:
            ``[B, K, vocabulary]`` in the backbone's compute dtype. Slots a row does not have hold
            arbitrary values.
        """
        cache = None
        if len(batch.prefix_ids):
            prefix = prefix or self.prefill(batch.prefix_ids)
            cache = prefix.cache(self.backbone.config, batch.input_ids.shape[0])
        logits: Tensor = self.backbone(
            input_ids=batch.input_ids,
            position_ids=batch.position_ids,
            attention_mask=self._additive(batch.visible),
            past_key_values=cache,
            use_cache=cache is not None,
            logits_to_keep=batch.slots,
            **batch.vision,
        ).logits
        return logits

    def _additive(self, visible: Tensor) -> Tensor:
        device = visible.device.type
        dtype: torch.dtype = self.backbone.dtype
        if torch.is_autocast_enabled(device):
            dtype = torch.get_autocast_dtype(device)
        mask = torch.zeros(visible.shape, dtype=dtype, device=visible.device)
        return mask.masked_fill_(~visible, torch.finfo(dtype).min).unsqueeze(1)


def label_logprobs(logits: Tensor, tree: LabelTree) -> Tensor:
    """Log-probability of every label: the sum over its tokens, end token included.

    Args:
        logits: ``[B, K, vocabulary]`` from :class:`ForestModel`, ``K >= tree.num_slots``.
        tree: The label tree every row was laid out with.

    Returns:
        ``[B, labels]`` float32.
    """
    used = logits[:, : tree.num_slots].float()
    normaliser = used.logsumexp(-1)
    columns = [
        sum(used[:, slot, token] - normaliser[:, slot] for slot, token in path)
        for path in tree.paths
    ]
    return torch.stack(columns, dim=1)  # type: ignore[arg-type]
