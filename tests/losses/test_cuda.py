"""On a GPU: the same numbers as on the CPU, no waiting for the host, bounded memory and time.

pytest -m cuda tests/losses/test_cuda.py
"""

import time
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from losses import FocalLoss, class_weights
from tests.gpu.host_waits import no_gpu_waits
from tests.losses.every_loss import loss_steps

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    pytest.mark.usefixtures("whole_float32"),
]

VOCABULARY = 151_936
TOKENS = 64
LOSSES = list(loss_steps("cpu"))


def _inputs(dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(11)
    logits = 6 * torch.randn(TOKENS, VOCABULARY, generator=generator)
    targets = torch.randint(VOCABULARY, (TOKENS,), generator=generator)
    logits[: TOKENS // 2, targets[: TOKENS // 2]] += 30  # half of them predicted well
    classes = torch.randint(3, (TOKENS,), generator=generator)
    return logits.to(dtype), targets, classes


def _focal() -> FocalLoss:
    return FocalLoss(class_weights([700, 100, 200]), gamma=1.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_focal_loss_and_gradient_equal_the_cpu(dtype: torch.dtype) -> None:
    found = {}
    for device in ("cpu", "cuda"):
        logits, targets, classes = (tensor.to(device) for tensor in _inputs(dtype))
        logits.requires_grad_()
        loss = _focal().to(device)(logits, targets, classes).mean()
        loss.backward()
        assert logits.grad is not None
        found[device] = (loss.detach().cpu(), logits.grad.cpu())
    rtol, atol = (1e-5, 1e-7) if dtype is torch.float32 else (1.6e-2, 1e-5)
    for on_cpu, on_gpu in zip(found["cpu"], found["cuda"], strict=True):
        torch.testing.assert_close(on_gpu, on_cpu, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_and_its_gradients_equal_the_cpu(name: str) -> None:
    found = {}
    for device in ("cpu", "cuda"):
        step = loss_steps(device)[name]
        loss = step.loss()
        loss.backward()
        found[device] = [loss, *(leaf.grad for leaf in step.leaves)]
    for on_cpu, on_gpu in zip(found["cpu"], found["cuda"], strict=True):
        assert on_cpu is not None
        assert on_gpu is not None
        torch.testing.assert_close(on_gpu.cpu(), on_cpu, rtol=1e-4, atol=1e-5)


def test_a_wait_for_the_device_is_an_error() -> None:
    values = torch.ones(4, device="cuda")
    with no_gpu_waits(), pytest.raises(RuntimeError):
        values.sum().item()


@pytest.mark.parametrize("name", LOSSES)
def test_forward_and_backward_never_wait_for_the_device(name: str) -> None:
    step = loss_steps("cuda")[name]  # copies its inputs, which waits
    step.loss().backward()  # loads what runs once
    with no_gpu_waits():
        step.loss().backward()


def test_peak_memory_is_a_few_copies_of_the_logits() -> None:
    logits, targets, classes = (tensor.cuda() for tensor in _inputs(torch.float32))
    logits.requires_grad_()
    loss = _focal().cuda()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    loss(logits, targets, classes).mean().backward()
    copies = (torch.cuda.max_memory_allocated() - before) / logits.untyped_storage().nbytes()
    # Logits without the targets, three in the gradient of their sum, and the logits' own gradient:
    # 5.0 on a CPU, where cross-entropy takes 3.0.
    assert copies < 5.5, copies


def test_time_is_near_that_of_cross_entropy() -> None:
    logits, targets, classes = (tensor.cuda() for tensor in _inputs(torch.float32))
    logits.requires_grad_()
    loss = _focal().cuda()

    def seconds(step: Callable[[], Tensor]) -> float:
        for _ in range(3):
            step().backward()
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(20):
            step().backward()
        torch.cuda.synchronize()
        return time.perf_counter() - started

    ratio = seconds(lambda: loss(logits, targets, classes).mean()) / seconds(
        lambda: torch.nn.functional.cross_entropy(logits, targets)
    )
    assert ratio < 3, ratio  # about twice as many passes over memory
