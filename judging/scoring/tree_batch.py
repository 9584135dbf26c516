"""One forward pass over many prompts, each with its label tree, for training and judging alike.

A row is ``[trunk | item tokens | tree nodes | item tokens | tree nodes | ... | padding]``. It holds
one or more prompts that share their first item tokens, the trunk; a prompt sees no other token of
another. All rows of a batch may share one instruction prefix, which is computed once and expanded
over the batch, with gradients in training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import DynamicCache

from judging.scoring.label_tree import LabelTree
from judging.scoring.packing import trunk_length
from judging.scoring.prompts import EncodedPrompt

COLUMN_STEP = 8


@dataclass(frozen=True)
class TreeBatch:
    """One forward pass: ``N`` prompts in ``B`` rows of ``S`` columns after ``P`` prefix tokens."""

    prefix_ids: Tensor
    """Shared instruction tokens, ``[P]`` int64; empty when every row holds its own."""
    input_ids: Tensor
    """``[B, S]`` int64, right padded."""
    position_ids: Tensor
    """``[3, B, S]`` int64, continuing after the prefix."""
    visible: Tensor
    """``[B, S, P + S]`` bool: which keys a query sees (prefix, earlier prompt, own ancestors)."""
    logit_columns: Tensor
    """``[B, R]`` int64: columns whose logits are needed; padded with 0."""
    slots: Tensor
    """``[N, K]`` int64: where each prompt's slots (prompt end, then nodes) lie in the flattened
    ``logit_columns``; padded with 0."""
    vision: dict[str, Tensor]
    """``pixel_values`` and ``image_grid_thw`` of all rows in order, or empty."""

    def to(self, device: torch.device) -> TreeBatch:
        """Copy the batch to a device, without waiting for the copy."""
        return TreeBatch(
            self.prefix_ids.to(device, non_blocking=True),
            self.input_ids.to(device, non_blocking=True),
            self.position_ids.to(device, non_blocking=True),
            self.visible.to(device, non_blocking=True),
            self.logit_columns.to(device, non_blocking=True),
            self.slots.to(device, non_blocking=True),
            {name: value.to(device, non_blocking=True) for name, value in self.vision.items()},
        )


def make_tree_batch(
    prompts: Sequence[EncodedPrompt],
    trees: Sequence[LabelTree],
    pad_id: int,
    *,
    rows: Sequence[Sequence[int]] | None = None,
    share_prefix: bool = True,
    column_step: int = COLUMN_STEP,
) -> TreeBatch:
    """Lay prompts and their trees out as rows of one batch.

    Args:
        prompts: Encoded prompts; with ``share_prefix`` all must have the same instruction.
        trees: One label tree per prompt.
        pad_id: Token of padding columns.
        rows: Indices of the prompts of each row, which must have the same pictures; default one
            prompt a row, in the order given.
        share_prefix: Take the instruction out of the rows; otherwise each row starts with its own.
        column_step: The number of columns is a multiple of it.

    Raises:
        ValueError: If the instructions differ under ``share_prefix``.
    """
    prefix = prompts[0].prefix_ids if share_prefix else ()
    if share_prefix and any(prompt.prefix_ids != prefix for prompt in prompts):
        raise ValueError("rows that share a prefix must have the same instruction")
    rows = rows or [[index] for index in range(len(prompts))]
    layouts = [_lay_out([(prompts[i], trees[i]) for i in row], share_prefix) for row in rows]
    # Few distinct widths, as CPU kernels are made per shape.
    columns = -(-max(len(layout.tokens) for layout in layouts) // column_step) * column_step
    input_ids = torch.full((len(rows), columns), pad_id)
    position_ids = torch.zeros(3, len(rows), columns, dtype=torch.int64)
    visible = torch.ones(columns, columns, dtype=torch.bool).tril().repeat(len(rows), 1, 1)
    for b, layout in enumerate(layouts):
        width = len(layout.tokens)
        input_ids[b, :width] = torch.tensor(layout.tokens)
        position_ids[:, b, :width] = layout.positions
        visible[b, :width, :width] = layout.visible
    sees_prefix = torch.ones(len(rows), columns, len(prefix), dtype=torch.bool)
    logit_columns, slots = _index_slots(layouts, rows, max(tree.num_slots for tree in trees))
    return TreeBatch(
        torch.tensor(prefix, dtype=torch.int64),
        input_ids,
        position_ids,
        torch.cat([sees_prefix, visible], dim=2),
        logit_columns,
        slots,
        _concatenate_pictures([prompts[row[0]] for row in rows]),
    )


@dataclass(frozen=True)
class _RowLayout:
    tokens: list[int]
    positions: Tensor
    visible: Tensor
    slots: list[list[int]]
    """Columns of each prompt's slots."""


def _lay_out(members: Sequence[tuple[EncodedPrompt, LabelTree]], share_prefix: bool) -> _RowLayout:
    items = [p.suffix_ids if share_prefix else (*p.prefix_ids, *p.suffix_ids) for p, _ in members]
    trunk = trunk_length(items)
    width = trunk + sum(
        len(item) - trunk + len(tree.node_tokens)
        for item, (_, tree) in zip(items, members, strict=True)
    )
    tokens = list(items[0][:trunk])
    positions = [members[0][0].positions[:, -len(items[0]) :][:, :trunk]]
    visible = torch.ones(width, width, dtype=torch.bool).tril()
    slots = []
    for item, (prompt, tree) in zip(items, members, strict=True):
        item_positions = prompt.positions[:, -len(item) :]
        start = len(tokens)
        end = start + len(item) - trunk
        nodes = len(tree.node_tokens)
        node_positions = item_positions.max() + torch.tensor(tree.depths())
        tokens += [*item[trunk:], *tree.node_tokens]
        positions += [item_positions[:, trunk:], node_positions.expand(3, nodes)]
        visible[start:, trunk:start] = False
        visible[end : end + nodes, end : end + nodes] = False
        for node in range(nodes):
            visible[end + node, [end + a for a in tree.ancestors(node)]] = True
        slots.append([end - 1, *range(end, end + nodes)])
    return _RowLayout(tokens, torch.cat(positions, dim=1), visible, slots)


def _index_slots(
    layouts: Sequence[_RowLayout], rows: Sequence[Sequence[int]], num_slots: int
) -> tuple[Tensor, Tensor]:
    """Return ``logit_columns`` and ``slots`` of a batch."""
    num_prompts = sum(map(len, rows))
    num_columns = max(sum(map(len, layout.slots)) for layout in layouts)
    logit_columns = torch.zeros(len(rows), num_columns, dtype=torch.int64)
    slots = torch.zeros(num_prompts, num_slots, dtype=torch.int64)
    for b, (layout, members) in enumerate(zip(layouts, rows, strict=True)):
        start = 0
        for index, columns in zip(members, layout.slots, strict=True):
            end = start + len(columns)
            logit_columns[b, start:end] = torch.tensor(columns)
            slots[index, : len(columns)] = b * num_columns + torch.arange(start, end)
            start = end
    return logit_columns, slots


def _concatenate_pictures(prompts: Sequence[EncodedPrompt]) -> dict[str, Tensor]:
    """Return the pictures of one prompt per row, in order; empty without pictures."""
    pictures = [prompt.vision for prompt in prompts if prompt.vision]
    if not pictures:
        return {}
    return {name: torch.cat([vision[name] for vision in pictures]) for name in pictures[0]}


@dataclass(frozen=True)
class Prefix:
    """Keys and values of an instruction, one pair ``[1, kv_heads, P, head_dim]`` per layer."""

    layers: tuple[tuple[Tensor, Tensor], ...]

    def cache(self, config: Any, num_rows: int) -> DynamicCache:
        """Make a cache that holds the prefix for every row."""
        cache = DynamicCache(config=config)
        for index, (key, value) in enumerate(self.layers):
            cache.update(
                key.expand(num_rows, -1, -1, -1), value.expand(num_rows, -1, -1, -1), index
            )
        return cache


class TreeModel(nn.Module):
    """A backbone that reads batches of label trees; for DDP or FSDP wrap it, not the backbone."""

    backbone: Any

    def __init__(self, backbone: Any) -> None:
        super().__init__()
        self.backbone = backbone

    @property
    def device(self) -> torch.device:
        """Return the device of the backbone."""
        return next(self.parameters()).device

    @property
    def is_recurrent(self) -> bool:
        """Return whether some layers are recurrent (Qwen3.5); their batches differ."""
        text_config = self.backbone.config.get_text_config()
        return "linear_attention" in (getattr(text_config, "layer_types", None) or ())

    def prefill(self, prefix_ids: Tensor) -> Prefix:
        """Compute keys and values of the instruction.

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

    def forward(self, batch: TreeBatch, prefix: Prefix | None = None) -> Tensor:
        """Compute the next-token logits at every slot.

        Args:
            batch: Rows to run.
            prefix: Their prefilled instruction; computed here, with gradients, when ``None``.

        Returns:
            ``[N, K, vocabulary]`` in the backbone's compute dtype, in the order of the prompts.
            Slots a prompt does not have hold arbitrary values.
        """
        arguments = self._arguments(batch, prefix)
        logits: Tensor = self.backbone(**arguments, logits_to_keep=batch.logit_columns).logits
        return logits.flatten(0, 1)[batch.slots]

    def begin(self, batch: TreeBatch, prefix: Prefix | None) -> tuple[Tensor, DynamicCache]:
        """Return what :meth:`forward` does, and the cache of prefix and rows for :meth:`extend`."""
        arguments = self._arguments(batch, prefix)
        cache = arguments["past_key_values"] or DynamicCache(config=self.backbone.config)
        arguments |= {"past_key_values": cache, "use_cache": True}
        logits: Tensor = self.backbone(**arguments, logits_to_keep=batch.logit_columns).logits
        return logits.flatten(0, 1)[batch.slots], cache

    def resume(self, batch: TreeBatch, cache: DynamicCache, seen: Tensor) -> Tensor:
        """Compute the logits at every slot of rows that continue the tokens in a cache.

        The cache is then as it was before.

        Args:
            batch: What comes after those tokens, a prompt a row.
            cache: From :meth:`begin`, of as many rows, its prefix included.
            seen: Which of its columns belong before each row, ``[B, columns]`` bool.

        Returns:
            ``[N, K, vocabulary]`` as :meth:`forward`.
        """
        in_batch = batch.visible[..., len(batch.prefix_ids) :]
        in_cache = seen[:, None].expand(-1, in_batch.shape[1], -1)
        logits: Tensor = self.backbone(
            input_ids=batch.input_ids,
            position_ids=batch.position_ids,
            attention_mask=self._additive(torch.cat([in_cache, in_batch], dim=2)),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=batch.logit_columns,
        ).logits
        cache.crop(-batch.input_ids.shape[1])
        return logits.flatten(0, 1)[batch.slots]

    def hidden(self, batch: TreeBatch, prefix: Prefix | None = None) -> Tensor:
        """Compute the last hidden states at every slot, before the vocabulary projection.

        Returns:
            ``[N, K, hidden]`` in the backbone's compute dtype.
        """
        # Inside this module's own forward the unwrapped body may be called (FSDP gathers here).
        states: Tensor = self._base.model(**self._arguments(batch, prefix)).last_hidden_state
        selected = torch.take_along_dim(states, batch.logit_columns[..., None], dim=1)
        return selected.flatten(0, 1)[batch.slots]

    def _arguments(self, batch: TreeBatch, prefix: Prefix | None) -> dict[str, Any]:
        """Return the arguments of the backbone."""
        cache = None
        if len(batch.prefix_ids):
            prefix = prefix or self.prefill(batch.prefix_ids)
            cache = prefix.cache(self.backbone.config, batch.input_ids.shape[0])
        return {
            "input_ids": batch.input_ids,
            "position_ids": batch.position_ids,
            "attention_mask": self._additive(batch.visible),
            "past_key_values": cache,
            "use_cache": cache is not None,
            **batch.vision,
        }

    @property
    def output_embedding(self) -> Tensor:
        """Return the weight of the vocabulary projection, ``[vocabulary, hidden]``."""
        weight: Tensor = self._base.lm_head.weight
        return weight

    @property
    def _base(self) -> Any:
        get_base = getattr(self.backbone, "get_base_model", None)
        return get_base() if get_base else self.backbone

    def extend(
        self, input_ids: Tensor, position_ids: Tensor, visible: Tensor, cache: DynamicCache
    ) -> Tensor:
        """Feed one more token per row and return the logits after it.

        Args:
            input_ids: ``[B, 1]`` int64.
            position_ids: ``[3, B, 1]`` int64.
            visible: Which keys the token sees, itself last, ``[B, 1, keys]`` bool.
            cache: From :meth:`begin`; it grows.

        Returns:
            ``[B, 1, vocabulary]``.
        """
        logits: Tensor = self.backbone(
            input_ids=input_ids,
            position_ids=position_ids,
            attention_mask=self._additive(visible),
            past_key_values=cache,
            use_cache=True,
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
    """Compute the log-probability of every label: the sum over its tokens, end token included.

    Args:
        logits: ``[N, K, vocabulary]`` from :class:`TreeModel`, ``K >= tree.num_slots``.
        tree: The label tree every prompt was laid out with.

    Returns:
        ``[N, labels]`` float32.
    """
    used = logits[:, : tree.num_slots].float()
    normaliser = used.logsumexp(-1)
    columns = [
        torch.stack([used[:, slot, token] - normaliser[:, slot] for slot, token in path]).sum(0)
        for path in tree.paths
    ]
    return torch.stack(columns, dim=1)
