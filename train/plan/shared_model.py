"""Memory of a model that the processes of a run share: what one of them holds and puts together."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from train.loop.sharding import text_layers, tower_parameters

LAYERS_TOGETHER = 2
"""Layers that are whole at the same time: the one that runs, and the next one on its way."""
GRADIENTS_TOGETHER = 3
"""Whole gradients of a layer at the same time: as computed, as sent, and those sent before."""


class SharedModel:
    """Sizes of an adapted model's parameters in one of the processes that share it (FSDP2).

    With one process they are those of the model.

    Args:
        model: Adapted model.
        processes: Number of processes.
        dtype: Format of the frozen weights; trained ones are in float32.
    """

    def __init__(self, model: nn.Module, processes: int, dtype: torch.dtype) -> None:
        self._processes, self._dtype = processes, dtype
        self._whole = {id(parameter) for parameter in tower_parameters(model)}
        layers = [list(layer.parameters()) for layer in text_layers(model)]
        of_layers = {id(parameter) for layer in layers for parameter in layer} | self._whole
        self._rest = [each for each in model.parameters() if id(each) not in of_layers]
        self._layer = max(layers, key=self._bytes)

    def held(self, parameter: nn.Parameter) -> int:
        """Return how many numbers of a parameter a process holds: of a sharded one, some rows."""
        if self._processes == 1 or id(parameter) in self._whole:
            return parameter.numel()
        rows = -(-len(parameter) // self._processes)
        return rows * (parameter.numel() // len(parameter))

    def gathered(self, peak: int) -> int:
        """Return the bytes of what is put together of all parts at the moment of the most memory.

        What belongs to no layer, such as embeddings, stays whole for a step. While it is put
        together it takes twice its bytes; at that time nothing is kept of the step yet.

        Args:
            peak: Bytes that the step takes besides.
        """
        if self._processes == 1:
            return 0
        rest, layer = self._bytes(self._rest), self._bytes(self._layer)
        gradients = sum(each.numel() * 4 for each in self._layer if each.requires_grad)
        in_step = rest + LAYERS_TOGETHER * layer + GRADIENTS_TOGETHER * gradients
        return max(in_step, 2 * rest + layer - peak)

    def _bytes(self, parameters: Iterable[nn.Parameter]) -> int:
        return sum(
            each.numel() * (4 if each.requires_grad else self._dtype.itemsize)
            for each in parameters
        )
