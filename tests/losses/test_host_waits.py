"""No loss has the host wait for a GPU, in the forward pass or the backward pass."""

from collections.abc import Callable

import pytest
import torch

import losses
from tests.gpu.host_waits import META, HostWait, no_host_waits
from tests.losses.every_loss import ON_THE_HOST, loss_steps

STEPS = loss_steps(META)
VALUES, COUNTS = torch.ones(4, 9, device=META), torch.ones(4, dtype=torch.int64, device=META)
MASK = torch.ones(4, 9, dtype=torch.bool, device=META)


WAITS: dict[str, Callable[[], object]] = {
    "item": lambda: VALUES.sum().item(),
    "mask": lambda: VALUES[MASK],
    "list": lambda: VALUES[[0, 1]],
    "tensor": lambda: torch.tensor([1, 2], device=META),
    "to the device": lambda: torch.ones(3).to(META),
}


@pytest.mark.parametrize("name", WAITS)
def test_a_wait_is_seen(name: str) -> None:
    with no_host_waits(), pytest.raises(HostWait):
        WAITS[name]()


def test_what_runs_on_the_device_alone_is_none() -> None:
    with no_host_waits():
        torch.where(MASK, VALUES[COUNTS, COUNTS].sum() * 2 + torch.tensor(1.0), 0.0)


def test_a_wait_in_the_backward_pass_is_seen() -> None:
    values = torch.ones(4, device=META, requires_grad=True)
    values.register_hook(lambda gradient: gradient * gradient.max().item())
    with no_host_waits(), pytest.raises(HostWait):
        values.sum().backward()


def test_every_loss_has_a_step() -> None:
    assert STEPS.keys() == set(losses.__all__) - ON_THE_HOST


@pytest.mark.parametrize("name", STEPS)
def test_no_loss_waits(name: str) -> None:
    step = STEPS[name]
    with no_host_waits():
        step.loss().backward()
    assert all(leaf.grad is not None for leaf in step.leaves)
