"""Log-probabilities of tokens: whole, in chunks, or by Liger, which runs on a GPU alone."""

import math
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from losses import (
    chunked_token_logprobs,
    normalised_logprob,
    projected,
    projected_token_logprobs,
    token_logprobs,
)


def test_token_logprobs_match_a_float64_derivation() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=5, size=(2, 3, 11))
    targets = rng.integers(11, size=(2, 3))
    expected = np.array(
        [
            [
                logits[i, j, targets[i, j]] - math.log(sum(math.exp(x) for x in logits[i, j]))
                for j in range(3)
            ]
            for i in range(2)
        ]
    )
    double = token_logprobs(torch.tensor(logits), torch.tensor(targets))
    assert double.dtype == torch.float64
    np.testing.assert_allclose(double.numpy(), expected, rtol=1e-12)
    single = token_logprobs(torch.tensor(logits).float(), torch.tensor(targets))
    assert single.dtype == torch.float32
    np.testing.assert_allclose(single.numpy(), expected, rtol=1e-5)


def test_half_precision_logits_are_normalised_in_float32() -> None:
    logits = torch.randn(4, 1000, generator=torch.Generator().manual_seed(0)).bfloat16()
    targets = torch.arange(4)
    found = token_logprobs(logits, targets)
    assert found.dtype == torch.float32
    # The inputs are the same numbers, so only float32 rounding may differ; a bfloat16 softmax
    # would be off by about 0.03.
    expected = token_logprobs(logits.double(), targets)
    torch.testing.assert_close(found.double(), expected, rtol=1e-6, atol=1e-6)


def test_normalised_logprob_by_hand() -> None:
    logprobs = torch.tensor([[-1.0, -2.0, -9.0], [-4.0, -9.0, -9.0]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    # (-1 - 2) / 2 = -1.5; -4 / 1 = -4.
    assert normalised_logprob(logprobs, mask).tolist() == [-1.5, -4.0]


def test_masked_tokens_count_for_nothing_even_when_impossible() -> None:
    logprobs = torch.tensor([[-1.0, -math.inf]], requires_grad=True)
    result = normalised_logprob(logprobs, torch.tensor([[True, False]]))
    result.sum().backward()
    assert result.tolist() == [-1.0]
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == [[1.0, 0.0]]


def test_a_row_without_tokens_gives_zero() -> None:
    result = normalised_logprob(torch.tensor([[-3.0, -5.0]]), torch.zeros(1, 2, dtype=torch.bool))
    assert result.tolist() == [0.0]


def test_gradcheck() -> None:
    logits = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([0, 4, 2])
    assert torch.autograd.gradcheck(lambda x: token_logprobs(x, targets), (logits,))


def _inputs(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(4)
    hidden = torch.randn(11, 6, generator=generator, dtype=dtype)
    weight = torch.randn(23, 6, generator=generator, dtype=dtype)
    return hidden, weight, torch.randint(23, (11,), generator=generator)


def _plain(hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    return token_logprobs(hidden @ weight.T, targets)


def _value_and_gradients(
    logprobs_of: Callable[..., Tensor], hidden: Tensor, weight: Tensor, *others: Any
) -> tuple[Tensor | None, ...]:
    """The log-probabilities, and the gradients of a weighted sum of them."""
    hidden = hidden.clone().requires_grad_()
    weight = weight.detach().clone().requires_grad_(weight.requires_grad)
    logprobs = logprobs_of(hidden, weight, *others)
    (logprobs * torch.linspace(-1, 2, len(logprobs)).to(logprobs)).sum().backward()
    return logprobs.detach(), hidden.grad, weight.grad


@pytest.mark.parametrize("chunk_tokens", [1, 4, 11, 100])
@pytest.mark.parametrize("trainable_weight", [False, True])
def test_value_and_gradients_are_autograds(chunk_tokens: int, trainable_weight: bool) -> None:
    hidden, weight, targets = _inputs()
    weight.requires_grad_(trainable_weight)
    expected = _value_and_gradients(_plain, hidden, weight, targets)
    found = _value_and_gradients(chunked_token_logprobs, hidden, weight, targets, chunk_tokens)
    assert (found[2] is not None) == trainable_weight
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


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


@pytest.mark.parametrize(
    ("is_cuda", "installed", "chosen"),
    [
        (True, "0.8.5", "liger"),
        (True, "0.9.0", "liger"),
        (True, "1.0.0.dev3", "liger"),
        (True, "0.8.4", "chunks"),  # its gradient is wrong without a reduction
        (True, "0.5", "chunks"),
        (True, None, "chunks"),
        (False, "0.8.5", "chunks"),
    ],
)
def test_liger_where_it_is_installed_and_right(
    is_cuda: bool, installed: str | None, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if installed is None:
            raise PackageNotFoundError(name)
        return installed

    monkeypatch.setattr(projected, "version", version)
    monkeypatch.setattr(projected, "fused_token_logprobs", lambda *given: "liger")
    monkeypatch.setattr(projected, "chunked_token_logprobs", lambda *given: "chunks")
    hidden: Any = SimpleNamespace(is_cuda=is_cuda)  # says where it lies
    assert projected_token_logprobs(hidden, torch.ones(1), torch.ones(1)) == chosen


@pytest.mark.cuda
@pytest.mark.usefixtures("whole_float32")
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.skipif(not projected.liger_is_installed(), reason="Liger is not installed")
def test_liger_gives_the_plain_value_and_gradient() -> None:
    generator = torch.Generator().manual_seed(3)
    hidden = torch.randn(300, 64, generator=generator).cuda()
    weight = torch.randn(1000, 64, generator=generator).cuda()
    targets = torch.randint(1000, (300,), generator=generator).cuda()
    found = _value_and_gradients(projected_token_logprobs, hidden, weight, targets)
    expected = _value_and_gradients(_plain, hidden, weight, targets)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
