from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from losses import UnlikelihoodLoss
from losses.unlikelihood import MAX_LOGPROB, log1mexp

loss = UnlikelihoodLoss()


def test_hand_computed_value() -> None:
    # P_norm = (1/2 * 1/8)^(1/2) = 1/4: -ln(3/4); the masked token does not count.
    logprobs = torch.tensor([[1 / 2, 1 / 8, 1 / 1000]], dtype=torch.float64).log()
    value = loss(logprobs, torch.tensor([[True, True, False]]))
    assert value.item() == pytest.approx(math.log(4 / 3), rel=1e-12)


def test_float64_derivation_in_plain_python() -> None:
    rng = np.random.default_rng(5)
    probabilities = rng.uniform(0.01, 0.9, size=(6, 7))
    mask = rng.random((6, 7)) < 0.6
    mask[:, 0] = True
    expected = []
    for row, kept in zip(probabilities, mask, strict=True):
        chosen = [p for p, keep in zip(row, kept, strict=True) if keep]
        expected.append(-math.log(1 - math.prod(chosen) ** (1 / len(chosen))))
    arguments = torch.tensor(probabilities).log(), torch.tensor(mask)
    np.testing.assert_allclose(loss.per_sequence(*arguments).numpy(), expected, rtol=1e-12)
    assert loss(*arguments).item() == pytest.approx(sum(expected) / 6, rel=1e-12)


@pytest.mark.parametrize("x", [-1e-9, -1e-4, -0.1, -0.69, -0.7, -5.0, -40.0, -700.0])
def test_log1mexp_equals_exact_arithmetic(x: float) -> None:
    """exp by its power series in exact fractions, where floating point would cancel."""
    term, exponential = Fraction(1), Fraction(1)
    if x > -1:
        for k in range(1, 30):
            term *= Fraction(x) / k
            exponential += term
        expected = math.log(1 - exponential)
    else:
        expected = (
            -math.exp(x) - math.exp(2 * x) / 2 - sum(math.exp(k * x) / k for k in range(3, 60))
        )
    assert log1mexp(torch.tensor(x, dtype=torch.float64)).item() == pytest.approx(
        expected, rel=1e-12
    )


def test_gradcheck() -> None:
    logprobs = -torch.rand(4, 5, dtype=torch.float64) * 4 - 0.01
    logprobs.requires_grad_()
    mask = torch.tensor([[True] * 5, [True, False] * 2 + [True], [False, True] + [False] * 3,
                         [True] * 2 + [False] * 3])  # fmt: skip
    assert torch.autograd.gradcheck(lambda x: loss(x, mask), (logprobs,))
    assert torch.autograd.gradcheck(lambda x: loss.per_sequence(x, mask), (logprobs,))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("logprob", [0.0, -1e-30, -1e-4, -1e4, float("-inf")])
def test_finite_at_the_ends(dtype: torch.dtype, logprob: float) -> None:
    logprobs = torch.full((2, 3), logprob, dtype=dtype, requires_grad=True)
    value = loss(logprobs, torch.ones(2, 3, dtype=torch.bool))
    value.backward()
    assert math.isfinite(value.item())
    assert logprobs.grad is not None
    assert torch.isfinite(logprobs.grad).all()
    if logprob < -100:
        assert value.item() == 0.0
    if logprob == 0.0:
        assert value.item() == pytest.approx(-math.log(-math.expm1(MAX_LOGPROB)), rel=1e-3)


def test_a_sequence_without_tokens_costs_nothing() -> None:
    logprobs = torch.zeros(1, 3, requires_grad=True)
    value = loss(logprobs, torch.zeros(1, 3, dtype=torch.bool))
    value.backward()
    assert value.item() == 0.0
    assert logprobs.grad is not None
    assert not logprobs.grad.any()


@given(st.lists(st.floats(-8, -0.01), min_size=1, max_size=6), st.floats(0.01, 3))
def test_it_pushes_every_token_down(logprobs: list[float], less: float) -> None:
    mask = torch.ones(1, len(logprobs), dtype=torch.bool)
    before = torch.tensor([logprobs], dtype=torch.float64, requires_grad=True)
    value = loss(before, mask)
    value.backward()
    assert before.grad is not None
    assert (before.grad > 0).all()
    assert loss(before.detach() - less, mask).item() < value.item()
