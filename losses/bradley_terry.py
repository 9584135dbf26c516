"""Pairwise logistic loss of scalar rewards."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from losses.sequence import at_least_float32


class BradleyTerryLoss(nn.Module):
    r"""Negative log-likelihood of human preferences under the Bradley-Terry model.

    A decided pair costs :math:`-\log \sigma(r_c - r_r - m)`: the chosen response should score at
    least the margin ``m`` above the rejected one. A tie is half a win for each side,
    :math:`-\frac12 \log \sigma(r_c - r_r) - \frac12 \log \sigma(r_r - r_c)`, lowest at equal
    rewards; the margin does not apply to it.

    Args:
        margin: Margin of every decided pair.
    """

    def __init__(self, margin: float = 0.0) -> None:
        super().__init__()
        self.margin = margin

    def forward(self, chosen: Tensor, rejected: Tensor, ties: Tensor | None = None) -> Tensor:
        """Compute the loss of each pair.

        Args:
            chosen: Rewards of the preferred responses (of either one in a tie), ``[pairs]``.
            rejected: Rewards of the others, ``[pairs]``.
            ties: True where people saw no difference, ``[pairs]`` bool; default none.

        Returns:
            ``[pairs]`` in at least float32.
        """
        gap = at_least_float32(chosen) - at_least_float32(rejected)
        decided = functional.softplus(self.margin - gap)
        if ties is None:
            return decided
        tied = (functional.softplus(gap) + functional.softplus(-gap)) / 2
        return torch.where(ties, tied, decided)
