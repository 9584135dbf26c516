from __future__ import annotations

import pytest
import torch
from torch import Tensor

from losses import chunked_token_logprobs, token_logprobs


def _inputs(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(4)
    hidden = torch.randn(11, 6, generator=generator, dtype=dtype)
    weight = torch.randn(23, 6, generator=generator, dtype=dtype)
    return hidden, weight, torch.randint(23, (11,), generator=generator)


@pytest.mark.parametrize("chunk_tokens", [1, 4, 11, 100])
@pytest.mark.parametrize("trainable_weight", [False, True])
def test_value_and_gradients_are_autograds(chunk_tokens: int, trainable_weight: bool) -> None:
    hidden, weight, targets = _inputs()
    above = torch.linspace(-1, 2, 11, dtype=torch.float64)
    found = []
    for chunked in (True, False):
        h = hidden.clone().requires_grad_()
        w = weight.clone().requires_grad_(trainable_weight)
        logprobs = (
            chunked_token_logprobs(h, w, targets, chunk_tokens)
            if chunked
            else token_logprobs(h @ w.T, targets)
        )
        (logprobs * above).sum().backward()
        assert (w.grad is not None) == trainable_weight
        found.append((logprobs.detach(), h.grad, w.grad if trainable_weight else h.grad))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def test_gradcheck() -> None:
    hidden, weight, targets = _inputs()
    hidden.requires_grad_()
    weight.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda h, w: chunked_token_logprobs(h, w, targets, 4), (hidden, weight)
    )


def test_frozen_states_get_no_gradient() -> None:
    hidden, weight, targets = _inputs()
    weight.requires_grad_()
    chunked_token_logprobs(hidden, weight, targets, 4).sum().backward()
    assert hidden.grad is None


def test_bfloat16_keeps_its_dtypes() -> None:
    hidden, weight, targets = _inputs(torch.bfloat16)
    hidden.requires_grad_()
    logprobs = chunked_token_logprobs(hidden, weight, targets, 4)
    logprobs.sum().backward()
    assert logprobs.dtype == torch.float32
    assert hidden.grad is not None
    assert hidden.grad.dtype == torch.bfloat16
    exact = token_logprobs(hidden.detach().double() @ weight.double().T, targets)
    torch.testing.assert_close(logprobs.detach().double(), exact, rtol=0, atol=0.1)
