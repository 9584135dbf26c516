"""The number format that losses are computed in."""

import torch
from torch import Tensor


def at_least_float32(values: Tensor) -> Tensor:
    """Return values in float32, or unchanged if they are float64."""
    return values if values.dtype == torch.float64 else values.float()
