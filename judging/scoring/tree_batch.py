"""One forward pass over many prompts, each with its label tree, for training and judging alike.

A row is ``[trunk | item tokens | tree nodes | item tokens | tree nodes | ... | padding]``: one or
more prompts that share their first item tokens, the trunk; no prompt sees another's own tokens. All
rows of a batch may share one instruction prefix, computed once and expanded over the batch, with
gradients when training.
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
    kept: Tensor
    """``[B, R]`` int64: columns whose logits are needed; padded with 0."""
    slots: Tensor
    """``[N, K]`` int64: where each prompt's slots (prompt end, then nodes) lie in the flattened
    ``kept``; padded with 0."""
    vision: dict[str, Tensor]
    """``pixel_values`` and ``image_grid_thw`` of all rows in order, or empty."""

    def to(self, device: torch.device) -> TreeBatch:
        """The batch on a device, without waiting for the copy."""
        return TreeBatch(
            self.prefix_ids.to(device, non_blocking=True),
            self.input_ids.to(device, non_blocking=True),
            self.position_ids.to(device, non_blocking=True),
            self.visible.to(device, non_blocking=True),
            self.kept.to(device, non_blocking=True),
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
) -> TreeBatch:
    """Lay prompts and their trees out as rows.

    Args:
        prompts: Encoded prompts; with ``share_prefix`` all must have the same instruction.
        trees: One label tree per prompt.
        pad_id: Token of padding columns.
        rows: Indices of the prompts of each row, which must show the same pictures; default one
            prompt a row, in the order given.
        share_prefix: Take the instruction out of the rows; else each row starts with its own.

    Raises:
        ValueError: If the instructions differ under ``share_prefix``.
    """
    prefix = prompts[0].prefix_ids if share_prefix else ()
    if share_prefix and any(prompt.prefix_ids != prefix for prompt in prompts):
        raise ValueError("rows that share a prefix must have the same instruction")
    rows = rows or [[index] for index in range(len(prompts))]
    laid = [_lay_out([(prompts[i], trees[i]) for i in row], share_prefix) for row in rows]
    # Few distinct widths: CPU kernels are made, and kept, per shape.
    columns = -(-max(len(row.tokens) for row in laid) // COLUMN_STEP) * COLUMN_STEP
    num_kept = max(sum(map(len, row.slots)) for row in laid)

    input_ids = torch.full((len(rows), columns), pad_id)
    position_ids = torch.zeros(3, len(rows), columns, dtype=torch.int64)
    visible = torch.ones(columns, columns, dtype=torch.bool).tril().repeat(len(rows), 1, 1)
    kept = torch.zeros(len(rows), num_kept, dtype=torch.int64)
    slots = torch.zeros(len(prompts), max(t.num_slots for t in trees), dtype=torch.int64)
    for b, (row, members) in enumerate(zip(laid, rows, strict=True)):
        width = len(row.tokens)
        input_ids[b, :width] = torch.tensor(row.tokens)
        position_ids[:, b, :width] = row.positions
        visible[b, :width, :width] = row.visible
        start = 0
        for index, own in zip(members, row.slots, strict=True):
            end = start + len(own)
            kept[b, start:end] = torch.tensor(own)
            slots[index, : len(own)] = b * num_kept + torch.arange(start, end)
            start = end
    before = torch.ones(len(rows), columns, len(prefix), dtype=torch.bool)
    pictures = [prompts[row[0]].vision for row in rows if prompts[row[0]].vision]
    vision = (
        {name: torch.cat([shown[name] for shown in pictures]) for name in pictures[0]}
        if pictures
        else {}
    )
    return TreeBatch(
        torch.tensor(prefix, dtype=torch.int64),
        input_ids,
        position_ids,
        torch.cat([before, visible], dim=2),
        kept,
        slots,
        vision,
    )


@dataclass(frozen=True)
class _Row:
    tokens: list[int]
    positions: Tensor
    visible: Tensor
    slots: list[list[int]]
    """Columns of each prompt's slots."""


def _lay_out(members: Sequence[tuple[EncodedPrompt, LabelTree]], share_prefix: bool) -> _Row:
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
        start, own = len(tokens), prompt.positions[:, -len(item) :]
        end = start + len(item) - trunk
        nodes = len(tree.node_tokens)
        tokens += [*item[trunk:], *tree.node_tokens]
        positions += [own[:, trunk:], (own.max() + torch.tensor(tree.depths())).expand(3, nodes)]
        visible[start:, trunk:start] = False
        visible[end : end + nodes, end : end + nodes] = False
        for node in range(nodes):
            visible[end + node, [end + a for a in tree.ancestors(node)]] = True
        slots.append([end - 1, *range(end, end + nodes)])
    return _Row(tokens, torch.cat(positions, dim=1), visible, slots)


@dataclass(frozen=True)
class Prefix:
    """Keys and values of an instruction, one pair ``[1, kv_heads, P, head_dim]`` per layer."""

    layers: tuple[tuple[Tensor, Tensor], ...]

    def cache(self, config: Any, num_rows: int) -> DynamicCache:
        """A fresh cache holding the prefix for every row."""
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
        """Where the backbone is."""
        return next(self.parameters()).device

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

    def forward(self, batch: TreeBatch, prefix: Prefix | None = None) -> Tensor:
        """Next-token logits at every slot.

        Args:
            batch: Rows to run.
            prefix: Their prefilled instruction; computed here, with gradients, when ``None``.

        Returns:
            ``[N, K, vocabulary]`` in the backbone's compute dtype, in the order of the prompts.
            Slots a prompt does not have hold arbitrary values.
        """
        given = self._given(batch, prefix)
        logits: Tensor = self.backbone(**given, logits_to_keep=batch.kept).logits
        return logits.flatten(0, 1)[batch.slots]

    def begin(self, batch: TreeBatch, prefix: Prefix | None) -> tuple[Tensor, DynamicCache]:
        """:meth:`forward`, and the cache of prefix and rows for :meth:`extend` to go on from."""
        given = self._given(batch, prefix)
        cache = given["past_key_values"] or DynamicCache(config=self.backbone.config)
        given |= {"past_key_values": cache, "use_cache": True}
        logits: Tensor = self.backbone(**given, logits_to_keep=batch.kept).logits
        return logits.flatten(0, 1)[batch.slots], cache

    def resume(self, batch: TreeBatch, cache: DynamicCache, seen: Tensor) -> Tensor:
        """:meth:`forward` after tokens a cache holds, which is left as it was.

        Args:
            batch: What comes after them, a prompt a row.
            cache: From :meth:`begin`, of as many rows, its prefix included.
            seen: Which of its columns belong before each row, ``[B, columns]`` bool.
        """
        own = batch.visible[..., len(batch.prefix_ids) :]
        before = seen[:, None].expand(-1, own.shape[1], -1)
        logits: Tensor = self.backbone(
            input_ids=batch.input_ids,
            position_ids=batch.position_ids,
            attention_mask=self._additive(torch.cat([before, own], dim=2)),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=batch.kept,
        ).logits
        cache.crop(-batch.input_ids.shape[1])
        return logits.flatten(0, 1)[batch.slots]

    def hidden(self, batch: TreeBatch, prefix: Prefix | None = None) -> Tensor:
        """Last hidden states at every slot, before the vocabulary projection.

        Returns:
            ``[N, K, hidden]`` in the backbone's compute dtype.
        """
        # Inside this module's own forward the unwrapped body may be called (FSDP gathers here).
        states: Tensor = self._base.model(**self._given(batch, prefix)).last_hidden_state
        kept = torch.take_along_dim(states, batch.kept[..., None], dim=1)
        return kept.flatten(0, 1)[batch.slots]

    def _given(self, batch: TreeBatch, prefix: Prefix | None) -> dict[str, Any]:
        """What the backbone is called with."""
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
        """Weight of the vocabulary projection, ``[vocabulary, hidden]``."""
        weight: Tensor = self._base.lm_head.weight
        return weight

    @property
    def _base(self) -> Any:
        get_base = getattr(self.backbone, "get_base_model", None)
        return get_base() if get_base else self.backbone

    def extend(
        self, input_ids: Tensor, position_ids: Tensor, visible: Tensor, cache: DynamicCache
    ) -> Tensor:
        """One more token per row.

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
    """Log-probability of every label: the sum over its tokens, end token included.

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
