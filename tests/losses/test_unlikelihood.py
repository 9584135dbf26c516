import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from losses import UnlikelihoodLoss, token_logprobs
from losses.unlikelihood import log1mexp

loss = UnlikelihoodLoss()


def test_float64_derivation_in_plain_python() -> None:
    rng = np.random.default_rng(5)
    probabilities = rng.uniform(0.01, 0.9, size=(6, 7))
    mask = rng.random((6, 7)) < 0.6
    mask[:, 0] = True
    expected = []
    for row, kept in zip(probabilities, mask, strict=True):
        chosen = [p for p, keep in zip(row, kept, strict=True) if keep]
        expected.append(-math.log(1 - math.prod(chosen) ** (1 / len(chosen))))
    found = loss(torch.tensor(probabilities).log(), torch.tensor(mask))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


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


@pytest.mark.parametrize("rest", ["1e-3", "1e-5", "4e-8", "1e-8", "1e-12", "1e-15"])
def test_equation_8_near_certainty(rest: str) -> None:
    """-log(1 - P) and its slope P / (1 - P), given log P, where P is all but 1."""
    with localcontext(prec=60):
        missing = Decimal(rest)
        logprob, expected = (1 - missing).ln(), -missing.ln()
        slope = (1 - missing) / missing
    logprobs = torch.tensor([[float(logprob)]], dtype=torch.float64, requires_grad=True)
    value = loss(logprobs, torch.tensor([[True]]))
    value.backward()
    assert value.item() == pytest.approx(float(expected), rel=1e-12)
    assert logprobs.grad is not None
    assert logprobs.grad.item() == pytest.approx(float(slope), rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("lead", [0.0, 9.0, 18.0, 40.0, 80.0])
def test_equation_8_from_logits(lead: float, dtype: torch.dtype) -> None:
    """Two tokens whose logit leads one other by this much: 1 - P is 1 / (1 + e^lead)."""
    logits = torch.tensor([[[lead, 0.0]] * 2], dtype=dtype, requires_grad=True)
    logprobs = token_logprobs(logits, torch.tensor([[0, 0]]))
    value = loss(logprobs, torch.ones(1, 2, dtype=torch.bool))
    value.backward()
    expected = math.log1p(math.exp(lead))
    assert value.item() == pytest.approx(expected, rel=1e-6)
    assert logits.grad is not None
    # Half of the loss's derivative in the lead, 1 / (1 + e^-lead), falls to each token.
    half = 0.5 / (1 + math.exp(-lead))
    torch.testing.assert_close(logits.grad[0], torch.tensor([[half, -half]] * 2, dtype=dtype))


def test_gradcheck() -> None:
    logprobs = -torch.rand(4, 5, dtype=torch.float64) * 4 - 0.01
    logprobs.requires_grad_()
    mask = torch.tensor([[True] * 5, [True, False] * 2 + [True], [False, True] + [False] * 3,
                         [True] * 2 + [False] * 3])  # fmt: skip
    assert torch.autograd.gradcheck(lambda x: loss(x, mask), (logprobs,))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("logprob", [0.0, -1e-30, -1e-4, -1e4, float("-inf")])
def test_finite_at_the_ends(dtype: torch.dtype, logprob: float) -> None:
    logprobs = torch.full((2, 3), logprob, dtype=dtype, requires_grad=True)
    value = loss(logprobs, torch.ones(2, 3, dtype=torch.bool)).sum()
    value.backward()
    assert math.isfinite(value.item())
    assert logprobs.grad is not None
    assert torch.isfinite(logprobs.grad).all()
    if logprob < -100:
        assert value.item() == 0.0


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
