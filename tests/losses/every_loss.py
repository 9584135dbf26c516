"""A step of every loss: its value from inputs that lie on a device, for the tests of devices."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from losses import (
    BradleyTerryLoss,
    FocalLoss,
    UnlikelihoodLoss,
    chunked_token_logprobs,
    class_weights,
    normalised_logprob,
    token_logprobs,
)

ON_THE_HOST = {"class_weights", "projected_token_logprobs"}
"""Of the losses' names those without a step: one reads counts, the other chooses a function."""


@dataclass(frozen=True)
class LossStep:
    """A loss and what it is differentiated by."""

    leaves: list[Tensor]
    loss: Callable[[], Tensor]
    """Returns a scalar."""


def loss_steps(device: torch.device | str) -> dict[str, LossStep]:
    """Return a step of every loss by its name, with the same inputs on every device."""
    generator = torch.Generator().manual_seed(11)

    def made(*shape: int) -> Tensor:
        values = 3 * torch.randn(*shape, generator=generator)
        return values.to(device).requires_grad_()

    def whole(high: int, *shape: int) -> Tensor:
        return torch.randint(high, shape, generator=generator).to(device)

    logits, hidden, weight = made(24, 97), made(24, 16), made(97, 16)
    targets, classes, is_part = whole(97, 24), whole(3, 24), whole(2, 6, 4).bool()
    chosen, rejected, ties = made(24), made(24), whole(2, 24).bool()
    above = torch.linspace(-1, 2, 24).to(device)
    focal = FocalLoss(class_weights([700, 100, 200]), gamma=1.0).to(device)

    def sequences() -> Tensor:
        return token_logprobs(logits, targets).view(6, 4)

    return {
        "BradleyTerryLoss": LossStep(
            [chosen, rejected], lambda: BradleyTerryLoss(0.5)(chosen, rejected, ties).mean()
        ),
        "FocalLoss": LossStep([logits], lambda: focal(logits, targets, classes).mean()),
        "UnlikelihoodLoss": LossStep(
            [logits], lambda: UnlikelihoodLoss()(sequences(), is_part).mean()
        ),
        "chunked_token_logprobs": LossStep(
            [hidden, weight],
            lambda: (above * chunked_token_logprobs(hidden, weight, targets, 10)).sum(),
        ),
        "normalised_logprob": LossStep(
            [logits], lambda: normalised_logprob(sequences(), is_part).sum()
        ),
        "token_logprobs": LossStep(
            [logits], lambda: (above * token_logprobs(logits, targets)).sum()
        ),
    }
