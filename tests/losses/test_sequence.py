import math

import numpy as np
import pytest
import torch

from losses import normalised_logprob, token_logprobs


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


def test_a_probability_that_rounds_to_one_has_a_logarithm() -> None:
    """1 - p is 2 e^-40 / (1 + 2 e^-40), which is far below the rounding of 1."""
    found = token_logprobs(torch.tensor([40.0, 0.0, 0.0]), torch.tensor(0)).item()
    assert found == pytest.approx(-math.log1p(2 * math.exp(-40)), rel=1e-6)


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
