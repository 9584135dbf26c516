"""Keys and values of an instruction that all rows of a batch share, with gradients in training.

The caches here can be read as often as one likes. Checkpointed layers, which run a second time in
the backward pass, therefore compute the same again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import Cache, DynamicCache, DynamicLayer


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


@dataclass(frozen=True)
class Prefix:
    """Keys and values of an instruction, one pair ``[1, kv_heads, P, head_dim]`` per layer."""

    layers: tuple[tuple[Tensor, Tensor], ...]

    @staticmethod
    def recording_cache(num_layers: int) -> Cache:
        """Make an empty cache that keeps what every layer computes first."""
        return Cache(layers=[_RecordedLayer() for _ in range(num_layers)])

    @classmethod
    def of_recording(cls, cache: Cache) -> Prefix:
        """Return what :meth:`recording_cache` has kept."""
        return cls(tuple((layer.keys, layer.values) for layer in cache.layers))

    def read_cache(self) -> Cache:
        """Make a cache in which every row finds the prefix, and which keeps no row's own keys."""
        return Cache(layers=[_ReadLayer(key, value) for key, value in self.layers])

    def growing_cache(self, config: Any, num_rows: int) -> DynamicCache:
        """Make a cache that holds the prefix for every row and keeps what comes after it."""
        cache = DynamicCache(config=config)
        for index, (key, value) in enumerate(self.layers):
            cache.update(
                key.expand(num_rows, -1, -1, -1), value.expand(num_rows, -1, -1, -1), index
            )
        return cache
