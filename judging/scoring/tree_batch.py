"""One forward pass over many prompts, each with its label tree, for training and judging alike.

A row is ``[trunk | item tokens | tree nodes | item tokens | tree nodes | ...]``. It holds one or
more prompts that share their first item tokens, the trunk; a prompt sees no other token of another.
The row's first prompt is read from left to right, and so are tree nodes after it that have no
branches. This part of a row, its head, needs no mask; what comes after it, its tail, needs one. All
rows of a batch may share one instruction prefix, which is computed once and read by every row, with
gradients in training.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Cache, DynamicCache, DynamicLayer
from transformers.modeling_layers import GradientCheckpointingLayer

from judging.models.attention import first_masked_query, is_recurrent
from judging.models.devices import to_device
from judging.scoring.label_tree import LabelTree


class _RecordedLayer(DynamicLayer):  # type: ignore[misc]  # transformers' classes have no types
    """Keys and values that a layer computes first; what it recomputes is not kept."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *arguments: Any, **options: Any
    ) -> tuple[Tensor, Tensor]:
        """Return the layer's own keys and values."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.keys, self.values = key_states, value_states
        return key_states, value_states


class _ReadLayer(DynamicLayer):  # type: ignore[misc]  # transformers' classes have no types
    """Keys and values before those of every row; nothing is added, so a layer may run again."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        super().__init__()
        self.lazy_initialization(keys, values)
        self.keys, self.values = keys, values

    def update(
        self, key_states: Tensor, value_states: Tensor, *arguments: Any, **options: Any
    ) -> tuple[Tensor, Tensor]:
        """Return these keys and values followed by those of each row."""
        rows = len(key_states)
        keys, values = (x.expand(rows, -1, -1, -1) for x in (self.keys, self.values))
        return torch.cat([keys, key_states], dim=2), torch.cat([values, value_states], dim=2)


Prefix = tuple[tuple[Tensor, Tensor], ...]
"""Keys and values of an instruction, one pair ``[1, kv_heads, P, head_dim]`` per layer."""


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
        """Tell which tokens of its row each token from column ``start`` on sees.

        ``[B, S - start, S]`` bool, computed where the batch is.
        """
        first, last = self.subtrees
        queries = first[:, start:, None]
        seen: Tensor = (first[:, None] <= queries) & (queries <= last[:, None])
        return seen


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
        """Tell whether some layers are recurrent (Qwen3.5); their batches differ."""
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
        """Compute keys and values of the instruction, ``[P]`` int64, ``P > 0``."""
        length = prefix_ids.shape[0]
        num_layers = self.backbone.config.get_text_config().num_hidden_layers
        cache = Cache(layers=[_RecordedLayer() for _ in range(num_layers)])
        # Nobody reads its logits, so the body runs alone.
        self._base.model(
            input_ids=prefix_ids[None],
            position_ids=self._positions(
                torch.arange(length, device=prefix_ids.device).expand(3, 1, length)
            ),
            past_key_values=cache,
            use_cache=False,
        )
        return tuple((layer.keys, layer.values) for layer in cache.layers)

    def forward(self, batch: TreeBatch, prefix: Prefix | None = None) -> Tensor:
        """Compute the next-token logits at every slot.

        Without the ``prefix`` of the rows, their instruction is prefilled here, with gradients.
        Returns ``[N, K, vocabulary]`` in the backbone's compute dtype, in the order of the prompts.
        Slots that a prompt does not have hold arbitrary values.
        """
        return self._project(self.hidden(batch, prefix))

    def begin(self, batch: TreeBatch, prefix: Prefix | None) -> tuple[Tensor, DynamicCache]:
        """Return what :meth:`forward` does, and the cache of prefix and rows for :meth:`extend`."""
        prefix, num_rows = self._prefix(batch, prefix), len(batch.input_ids)
        cache = DynamicCache(config=self.backbone.config)
        for index, pair in enumerate(prefix or ()):
            cache.update(*(states.expand(num_rows, -1, -1, -1) for states in pair), index)
        arguments = self._arguments(batch, prefix)
        arguments |= {"past_key_values": cache, "use_cache": True}
        return self._project(self._states(batch, arguments)), cache

    def resume(self, batch: TreeBatch, cache: DynamicCache, seen: Tensor) -> Tensor:
        """Compute the logits at every slot of rows that continue the tokens in a cache.

        ``batch`` is what comes after those tokens, a prompt a row; ``cache`` is from :meth:`begin`,
        of as many rows; ``seen``, ``[B, columns]`` bool, says which of its columns belong before
        each row. The cache is then as it was before. Returns what :meth:`forward` does.
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
        """Compute the last hidden states at every slot, ``[N, K, hidden]`` in the compute dtype."""
        return self._states(batch, self._arguments(batch, prefix))

    def _states(self, batch: TreeBatch, arguments: dict[str, Any]) -> Tensor:
        """Run the body of the backbone; return its last hidden states, ``[N, K, hidden]``."""
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
            "past_key_values": Cache([_ReadLayer(*pair) for pair in prefix]) if prefix else None,
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
        """Feed one more token per row and return the logits after it, ``[B, 1, vocabulary]``.

        ``visible`` says which keys the token sees, itself last, ``[B, 1, keys]`` bool; the cache
        grows.
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

    Of ``[N, K, vocabulary]`` logits, ``K >= tree.num_slots``, it makes ``[N, labels]`` float32.
    """
    used = logits[:, : tree.num_slots].float()
    normaliser = used.logsumexp(-1)
    columns = [
        torch.stack([used[:, slot, token] - normaliser[:, slot] for slot, token in path]).sum(0)
        for path in tree.paths
    ]
    return torch.stack(columns, dim=1)
