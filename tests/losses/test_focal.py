"""Focal loss and the weights of its classes."""

import math

import numpy as np
import pytest
import torch

from losses import FocalLoss, class_weights


def test_hand_derived_weights() -> None:
    # N = 1 + 4 + 4 = 9; w = sqrt(9/1), sqrt(9/4), sqrt(9/4) = 3, 1.5, 1.5; mean = 2;
    # alpha = 1.5, 0.75, 0.75.
    weights = class_weights([1, 4, 4])
    assert weights.tolist() == [1.5, 0.75, 0.75]
    assert weights.dtype == torch.float32


def test_clip_cuts_what_exceeds_it_and_nothing_else() -> None:
    # Unclipped 1.5, 0.75, 0.75 (above); the mean is taken before the clip.
    assert class_weights([1, 4, 4], t_max=1.2).tolist() == pytest.approx([1.2, 0.75, 0.75])


def test_the_papers_limit_binds_with_six_classes() -> None:
    # w = 10^5 x sqrt(5), then five of about sqrt(0.2) each: nearly 6 before the clip.
    weights = class_weights([1, *[10**10] * 5])
    assert weights[0] == 5.0
    assert weights[1:].max() < 1e-4


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 2.0])
def test_float64_derivation_in_plain_python(gamma: float) -> None:
    rng = np.random.default_rng(1)
    logits = rng.normal(scale=3, size=(6, 9))
    targets, classes = rng.integers(9, size=6), rng.integers(3, size=6)
    alpha = class_weights([5, 2, 9])
    expected = []
    for row, target, c in zip(logits, targets, classes, strict=True):
        p = math.exp(row[target]) / sum(math.exp(x) for x in row)
        expected.append(-alpha[c].item() * (1 - p) ** gamma * math.log(p))
    loss = FocalLoss(alpha, gamma)
    found = loss(torch.tensor(logits), torch.tensor(targets), torch.tensor(classes))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 2.0])
def test_gradcheck(gamma: float) -> None:
    loss = FocalLoss(torch.tensor([0.5, 1.5], dtype=torch.float64), gamma)
    logits = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    targets, classes = torch.tensor([0, 5, 2, 2]), torch.tensor([0, 1, 1, 0])
    assert torch.autograd.gradcheck(lambda x: loss(x, targets, classes), (logits,))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("height", [30.0, 200.0, 1e4])
def test_value_and_gradient_stay_finite_at_the_ends(
    dtype: torch.dtype, gamma: float, height: float
) -> None:
    # p -> 1 for the first token, p -> 0 for the second: exp(-30) is below bfloat16's and
    # float32's resolution at one, exp(-200) and exp(-1e4) are below float32's smallest number.
    logits = torch.tensor([[height, 0, 0], [0, height, 0]], dtype=dtype, requires_grad=True)
    loss = FocalLoss(torch.ones(1), gamma)
    per_token = loss(logits, torch.tensor([0, 0]), torch.tensor([0, 0]))
    per_token.sum().backward()
    sure, lost = per_token.tolist()
    assert 0 <= sure < 1e-10
    assert lost == pytest.approx(logits[1, 1].item(), rel=1e-6)  # -(1 - 0)^gamma * log(e^-height)
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
    # Where p -> 0 the slope is that of -log p: -1 on the target, +1 on its rival.
    assert logits.grad[1].tolist() == pytest.approx([-1, 1, 0], abs=1e-2)


def test_weights_move_with_the_module_and_are_not_trained() -> None:
    loss = FocalLoss(torch.tensor([0.5, 1.5]))
    assert list(loss.parameters()) == []
    assert loss.to(torch.float64).alpha.dtype == torch.float64
