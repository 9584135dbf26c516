"""Weights of classes by the inverse square root of their frequency."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor


def class_weights(counts: Mapping[str, int] | Sequence[int], t_max: float = 5.0) -> Tensor:
    r"""Compute class weights: inverse square root of the frequency, normalised and clipped.

    HiEval section 3.1: :math:`w_c = \sqrt{N / N_c}`,
    :math:`\alpha_c = \min(w_c / \mathrm{mean}_j w_j,\ T_{max})`. The mean of the unclipped weights
    is one, so no weight can exceed the number of classes.

    Args:
        counts: Training examples per class; a mapping keeps its order.
        t_max: Largest weight.

    Returns:
        ``[classes]`` float32.

    Raises:
        ValueError: If a class has no examples (named), or there are no classes.
    """
    if not isinstance(counts, Mapping):
        counts = {str(i): count for i, count in enumerate(counts)}
    if not counts:
        raise ValueError("class_weights needs at least one class")
    for name, count in counts.items():
        if count <= 0:
            raise ValueError(
                f"class '{name}' has {count} training examples; every declared class "
                f"needs at least one"
            )
    numbers = torch.tensor(list(counts.values()), dtype=torch.float64)
    weights = (numbers.sum() / numbers).sqrt()
    return (weights / weights.mean()).clamp(max=t_max).float()
