"""Class-balanced focal loss at scoring tokens, and the weights of its classes."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from losses.sequence import token_logprobs


class FocalLoss(nn.Module):
    r"""Cross-entropy with less weight on well predicted tokens and on frequent classes.

    HiEval section 3.1: :math:`-\alpha_c (1 - p_t)^\gamma \log p_t` at every token of the label,
    with ``p_t`` from the softmax over the whole vocabulary. ``gamma = 0`` and unit weights give
    cross-entropy.

    Args:
        alpha: Weight of each class, ``[classes]``; see :func:`losses.class_weights`.
        gamma: Focusing exponent, at least 0.
    """

    alpha: Tensor

    def __init__(self, alpha: Tensor, gamma: float = 1.0) -> None:
        super().__init__()
        self.register_buffer("alpha", alpha)
        self.gamma = gamma

    def forward(self, logits: Tensor, targets: Tensor, classes: Tensor) -> Tensor:
        """Compute the loss of each scoring token.

        Args:
            logits: ``[tokens, vocabulary]``, any float dtype; computed in at least float32.
            targets: Token ids, ``[tokens]`` int64.
            classes: Class index of the label each token belongs to, ``[tokens]`` int64.

        Returns:
            ``[tokens]`` float32 (float64 for float64 logits).
        """
        log_p = token_logprobs(logits, targets)
        # 1 - p without cancellation near p = 1; the floor keeps gamma < 1 differentiable there.
        miss = -torch.expm1(log_p)
        focus = miss.clamp_min(torch.finfo(miss.dtype).tiny) ** self.gamma
        return -self.alpha.to(log_p.dtype)[classes] * focus * log_p


def class_weights(counts: Sequence[int], t_max: float = 5.0) -> Tensor:
    r"""Compute class weights: inverse square root of the frequency, normalised and clipped.

    HiEval section 3.1: :math:`w_c = \sqrt{N / N_c}`,
    :math:`\alpha_c = \min(w_c / \mathrm{mean}_j w_j,\ T_{max})`. The mean of the unclipped weights
    is one, so no weight can exceed the number of classes.

    Args:
        counts: Training examples of each class, at least one of each.
        t_max: Largest weight.

    Returns:
        ``[classes]`` float32.
    """
    numbers = torch.tensor(counts, dtype=torch.float64)
    weights = (numbers.sum() / numbers).sqrt()
    return (weights / weights.mean()).clamp(max=t_max).float()
