"""One forward pass over many prompts, each with its label tree, for training and judging alike.

A row is ``[trunk | item tokens | tree nodes | item tokens | tree nodes | ...]``. It holds one or
more prompts that share their first item tokens, the trunk; a prompt sees no other token of another.
The row's first prompt is read from left to right, and so are tree nodes after it that have no
branches. This part of a row, its head, needs no mask; what comes after it, its tail, needs one. All
rows of a batch may share one instruction prefix, which is computed once and read by every row, with
gradients in training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import DynamicCache
from transformers.modeling_layers import GradientCheckpointingLayer

from judging.models.attention import first_masked_query, is_recurrent
from judging.models.devices import to_device
from judging.scoring.label_tree import LabelTree
from judging.scoring.packing import trunk_length
from judging.scoring.prefix import Prefix
from judging.scoring.prompts import EncodedPrompt

COLUMN_STEP = 8
ALIGNMENT_COST = 16
"""Tails start in one column if that makes the batch wider by at most one part in so many."""


@dataclass(frozen=True)
class TreeBatch:
    """One forward pass: ``N`` prompts in ``B`` rows of ``S`` columns after ``P`` prefix tokens."""

    prefix_ids: Tensor
    """Shared instruction tokens, ``[P]`` int64; empty when every row holds its own."""
    input_ids: Tensor
    """``[B, S]`` int64; padding may follow a row's head and its tail."""
    position_ids: Tensor
    """``[3, B, S]`` int64, continuing after the prefix."""
    subtrees: Tensor
    """``[2, B, S]`` int32: a number for each token of a row, and the last number among the tokens
    that see it. A token sees those for which its own number lies between the two."""
    num_causal: int
    """Columns, from the first, in which every token sees all tokens before it in its row."""
    logit_columns: Tensor
    """``[B, R]`` int64: columns whose logits are needed; padded with 0."""
    slots: Tensor
    """``[N, K]`` int64: where each prompt's slots (prompt end, then nodes) lie in the flattened
    ``logit_columns``; padded with 0."""
    vision: dict[str, Tensor]
    """``pixel_values`` and ``image_grid_thw`` of all rows in order, or empty."""

    def to(self, device: torch.device) -> TreeBatch:
        """Copy the batch to a device, without waiting for the copy."""
        moved: dict[str, Any] = {
            field.name: to_device(value, device)
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), Tensor)
        }
        vision = {name: to_device(value, device) for name, value in self.vision.items()}
        return replace(self, **moved, vision=vision)

    def visible(self, start: int = 0) -> Tensor:
        """Return which tokens of its row each token from column ``start`` on sees.

        Returns:
            ``[B, S - start, S]`` bool, computed where the batch is.
        """
        first, last = self.subtrees
        queries = first[:, start:, None]
        seen: Tensor = (first[:, None] <= queries) & (queries <= last[:, None])
        return seen


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
    layouts = [lay_out_row([(prompts[i], trees[i]) for i in row], share_prefix) for row in rows]
    num_causal, width = columns_of_rows(layouts, column_step)
    input_ids = torch.full((len(rows), width), pad_id)
    position_ids = torch.zeros(3, len(rows), width, dtype=torch.int64)
    # Padding has numbers after those of all tokens and is seen by nothing but itself.
    subtrees = torch.arange(width, 2 * width, dtype=torch.int32).repeat(2, len(rows), 1)
    columns = [layout.columns(num_causal) for layout in layouts]
    for b, (layout, places) in enumerate(zip(layouts, columns, strict=True)):
        input_ids[b, places] = layout.tokens
        position_ids[:, b, places] = layout.positions
        subtrees[0, b, places] = torch.arange(len(places), dtype=torch.int32)
        subtrees[1, b, places] = layout.last
    slots_by_row = [
        [places[slots] for slots in layout.slots]
        for layout, places in zip(layouts, columns, strict=True)
    ]
    logit_columns, slots = _index_slots(slots_by_row, rows, max(tree.num_slots for tree in trees))
    return TreeBatch(
        torch.tensor(prefix, dtype=torch.int64),
        input_ids,
        position_ids,
        subtrees,
        num_causal,
        logit_columns,
        slots,
        _concatenate_pictures([prompts[row[0]] for row in rows]),
    )


def _index_slots(
    slots_by_row: Sequence[Sequence[Tensor]], rows: Sequence[Sequence[int]], num_slots: int
) -> tuple[Tensor, Tensor]:
    """Return ``logit_columns`` and ``slots`` of a batch.

    Args:
        slots_by_row: Columns of the slots of each prompt of each row.
        rows: Indices of the prompts of each row.
        num_slots: Most slots of a prompt.
    """
    num_prompts = sum(map(len, rows))
    num_columns = max(sum(map(len, row)) for row in slots_by_row)
    logit_columns = torch.zeros(len(rows), num_columns, dtype=torch.int64)
    slots = torch.zeros(num_prompts, num_slots, dtype=torch.int64)
    for b, (row, members) in enumerate(zip(slots_by_row, rows, strict=True)):
        start = 0
        for index, columns in zip(members, row, strict=True):
            end = start + len(columns)
            logit_columns[b, start:end] = columns
            slots[index, : len(columns)] = b * num_columns + torch.arange(start, end)
            start = end
    return logit_columns, slots


def _concatenate_pictures(prompts: Sequence[EncodedPrompt]) -> dict[str, Tensor]:
    """Return the pictures of one prompt per row, in order; empty without pictures."""
    pictures = [prompt.vision for prompt in prompts if prompt.vision]
    if not pictures:
        return {}
    return {name: torch.cat([vision[name] for vision in pictures]) for name in pictures[0]}


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
        return is_recurrent(self.backbone)

    def checkpoint_activations(self) -> None:
        """Keep only each layer's input for the backward pass, which computes the rest again.

        Gradients still flow through a shared instruction, as its keys and values can be read again.
        """
        self.backbone.activation_checkpointing_enable()
        # With gradients of inputs, backpropagation would run through the frozen vision tower.
        self.backbone.disable_input_require_grads()
        for module in self.backbone.modules():
            if isinstance(module, GradientCheckpointingLayer):
                module._can_checkpoint_with_cache = True

    def prefill(self, prefix_ids: Tensor) -> Prefix:
        """Compute keys and values of the instruction.

        Args:
            prefix_ids: ``[P]`` int64, ``P > 0``.
        """
        length = prefix_ids.shape[0]
        num_layers = self.backbone.config.get_text_config().num_hidden_layers
        cache = Prefix.recording_cache(num_layers)
        # Nobody reads its logits, so the body runs alone.
        self._base.model(
            input_ids=prefix_ids[None],
            position_ids=self._positions(
                torch.arange(length, device=prefix_ids.device).expand(3, 1, length)
            ),
            past_key_values=cache,
            use_cache=False,
        )
        return Prefix.of_recording(cache)

    def forward(self, batch: TreeBatch, prefix: Prefix | None = None) -> Tensor:
        """Compute the next-token logits at every slot.

        Args:
            batch: Rows to run.
            prefix: Their prefilled instruction; computed here, with gradients, when ``None``.

        Returns:
            ``[N, K, vocabulary]`` in the backbone's compute dtype, in the order of the prompts.
            Slots a prompt does not have hold arbitrary values.
        """
        return self._project(self.hidden(batch, prefix))

    def begin(self, batch: TreeBatch, prefix: Prefix | None) -> tuple[Tensor, DynamicCache]:
        """Return what :meth:`forward` does, and the cache of prefix and rows for :meth:`extend`."""
        prefix, config = self._prefix(batch, prefix), self.backbone.config
        cache = (
            prefix.growing_cache(config, len(batch.input_ids))
            if prefix
            else DynamicCache(config=config)
        )
        arguments = self._arguments(batch, prefix)
        arguments |= {"past_key_values": cache, "use_cache": True}
        return self._project(self._states(batch, arguments)), cache

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
        in_batch = batch.visible()
        in_cache = seen[:, None].expand(-1, in_batch.shape[1], -1)
        arguments = {
            "input_ids": batch.input_ids,
            "position_ids": self._positions(batch.position_ids),
            "attention_mask": self._additive(torch.cat([in_cache, in_batch], dim=2)),
            "past_key_values": cache,
            "use_cache": True,
        }
        logits = self._project(self._states(batch, arguments))
        cache.crop(-batch.input_ids.shape[1])
        return logits

    def hidden(self, batch: TreeBatch, prefix: Prefix | None = None) -> Tensor:
        """Compute the last hidden states at every slot, before the vocabulary projection.

        Returns:
            ``[N, K, hidden]`` in the backbone's compute dtype.
        """
        return self._states(batch, self._arguments(batch, prefix))

    def _states(self, batch: TreeBatch, arguments: dict[str, Any]) -> Tensor:
        """Run the body of the backbone, and return its last hidden states at every slot.

        Args:
            batch: Rows that run.
            arguments: Arguments of the body.

        Returns:
            ``[N, K, hidden]``.
        """
        # Inside this module's own forward the unwrapped body may be called (FSDP gathers here).
        states: Tensor = self._base.model(**arguments).last_hidden_state
        selected = torch.take_along_dim(states, batch.logit_columns[..., None], dim=1)
        return selected.flatten(0, 1)[batch.slots]

    def _project(self, states: Tensor) -> Tensor:
        """Return the logits of hidden states, ``[N, K, vocabulary]`` of ``[N, K, hidden]``."""
        # As one matrix: a product of batches may copy the weights for each.
        logits: Tensor = self._base.lm_head(states.flatten(0, 1)).unflatten(0, states.shape[:2])
        return logits

    def _arguments(self, batch: TreeBatch, prefix: Prefix | None) -> dict[str, Any]:
        """Return the arguments of the backbone."""
        prefix = self._prefix(batch, prefix)
        return {
            "input_ids": batch.input_ids,
            "position_ids": self._positions(batch.position_ids),
            "attention_mask": self._mask(batch),
            "past_key_values": prefix.read_cache() if prefix else None,
            "use_cache": False,
            **batch.vision,
        }

    def _prefix(self, batch: TreeBatch, prefix: Prefix | None) -> Prefix | None:
        """Return the instruction of a batch, computed if it is not given; ``None`` without one."""
        if prefix is None and len(batch.prefix_ids):
            return self.prefill(batch.prefix_ids)
        return prefix

    def _mask(self, batch: TreeBatch) -> Tensor | None:
        """Return the additive mask of the queries that need one, or ``None`` if none does."""
        queries, past = batch.input_ids.shape[1], len(batch.prefix_ids)
        start = first_masked_query(self.backbone, batch.num_causal, queries, past + queries)
        if start == queries:
            return None
        return self._additive(nn.functional.pad(batch.visible(start), (past, 0), value=True))

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
            position_ids=self._positions(position_ids),
            attention_mask=self._additive(visible),
            past_key_values=cache,
            use_cache=True,
        ).logits
        return logits

    def _positions(self, position_ids: Tensor) -> Tensor:
        """Return positions ``[3, B, S]`` as the backbone takes them: ``[B, S]`` for text alone."""
        is_text = getattr(self.backbone.config, "vision_config", None) is None
        return position_ids[0] if is_text else position_ids

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


@dataclass(frozen=True)
class RowLayout:
    """Tokens of a row without padding, in preorder; ``n`` is their number."""

    tokens: Tensor
    """``[n]`` int64."""
    positions: Tensor
    """``[3, n]`` int64."""
    last: Tensor
    """``[n]`` int32: number of the last token that sees each token."""
    head: int
    """Tokens from the first that see all tokens before them."""
    slots: list[Tensor]
    """Numbers of the tokens at each prompt's slots."""

    def columns(self, num_causal: int) -> Tensor:
        """Return the column of each token, ``[n]``: the tail starts at ``num_causal`` or later."""
        columns = torch.arange(len(self.tokens))
        columns[self.head :] += max(0, num_causal - self.head)
        return columns


def lay_out_row(
    members: Sequence[tuple[EncodedPrompt, LabelTree]], share_prefix: bool
) -> RowLayout:
    """Lay out the prompts of a row, each followed by its tree.

    Args:
        members: Prompts with their trees.
        share_prefix: Leave the instruction out; otherwise the row starts with it.
    """
    items = [p.suffix_ids if share_prefix else (*p.prefix_ids, *p.suffix_ids) for p, _ in members]
    trunk = trunk_length(items)
    tokens = [torch.tensor(items[0][:trunk], dtype=torch.int64)]
    positions = [members[0][0].positions[:, -len(items[0]) :][:, :trunk]]
    last, slots, start = [], [], trunk
    for item, (prompt, tree) in zip(items, members, strict=True):
        item_positions = prompt.positions[:, -len(item) :]
        end, nodes = start + len(item) - trunk, len(tree.node_tokens)
        subtrees = torch.tensor(tree.subtrees(), dtype=torch.int64).view(-1, 2)
        order = subtrees[:, 0].argsort()
        depths = torch.tensor(tree.depths(), dtype=torch.int64)[order]
        tokens.append(torch.tensor(item[trunk:], dtype=torch.int64))
        tokens.append(torch.tensor(tree.node_tokens, dtype=torch.int64)[order])
        positions.append(item_positions[:, trunk:])
        positions.append((item_positions.max() + depths).expand(3, nodes))
        last.append(torch.full((end - start,), end + nodes - 1))
        last.append(end + subtrees[order, 1])
        slots.append(torch.cat([torch.tensor([end - 1]), end + subtrees[:, 0]]))
        start = end + nodes
    first_tree = members[0][1]
    return RowLayout(
        torch.cat(tokens),
        torch.cat(positions, dim=1),
        torch.cat([torch.full((trunk,), start - 1), *last]).int(),
        len(items[0]) + (len(first_tree.node_tokens) if first_tree.is_chain else 0),
        slots,
    )


def columns_of_rows(layouts: Sequence[RowLayout], column_step: int) -> tuple[int, int]:
    """Return in how many columns all tokens are causal, and the number of columns."""
    heads = [layout.head for layout in layouts]
    widths = [len(layout.tokens) for layout in layouts]
    aligned = max(heads) + max(w - head for w, head in zip(widths, heads, strict=True))
    is_aligned = (aligned - max(widths)) * ALIGNMENT_COST <= max(widths)
    num_causal = max(heads) if is_aligned else min(heads)
    # Few distinct widths, as CPU kernels are made per shape.
    width = -(-(aligned if is_aligned else max(widths)) // column_step) * column_step
    return (width if heads == widths else num_causal), width
