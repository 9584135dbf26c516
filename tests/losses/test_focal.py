"""Focal loss and the weights of its classes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from losses import FocalLoss, class_weights


def test_hand_derived_weights() -> None:
    # N = 1 + 4 + 4 = 9; w = sqrt(9/1), sqrt(9/4), sqrt(9/4) = 3, 1.5, 1.5; mean = 2;
    # alpha = 1.5, 0.75, 0.75.
    weights = class_weights({"Partial": 1, "Correct": 4, "Wrong": 4})
    assert weights.tolist() == [1.5, 0.75, 0.75]
    assert weights.dtype == torch.float32


def test_mapping_and_sequence_agree_and_keep_their_order() -> None:
    assert class_weights({"b": 4, "a": 1}).tolist() == class_weights([4, 1]).tolist()
    # w = sqrt(5/4), sqrt(5): a ratio of two; mean one, so 2/3 and 4/3.
    assert class_weights([4, 1]).tolist() == pytest.approx([2 / 3, 4 / 3], rel=1e-6)


def test_equal_counts_and_a_single_class_weigh_one() -> None:
    assert class_weights([7, 7, 7]).tolist() == [1.0, 1.0, 1.0]
    assert class_weights([12]).tolist() == [1.0]


def test_clip_cuts_what_exceeds_it_and_nothing_else() -> None:
    # Unclipped 1.5, 0.75, 0.75 (above); the mean is taken before the clip.
    assert class_weights([1, 4, 4], t_max=1.2).tolist() == pytest.approx([1.2, 0.75, 0.75])


def test_the_papers_limit_cannot_bind_with_three_classes() -> None:
    # w_c / mean < number of classes, however rare a class: here w = 10^5, 1, 1.
    weights = class_weights([1, 10**10, 10**10])
    assert weights.max() < 3
    assert torch.equal(weights, class_weights([1, 10**10, 10**10], t_max=math.inf))


def test_the_papers_limit_binds_with_six_classes() -> None:
    # w = 10^5 x sqrt(5), then five of about sqrt(0.2) each: nearly 6 before the clip.
    weights = class_weights([1, *[10**10] * 5])
    assert weights[0] == 5.0
    assert weights[1:].max() < 1e-4


def test_zero_count_names_the_class() -> None:
    with pytest.raises(ValueError, match=r"class 'Partial' has 0 training examples"):
        class_weights({"Correct": 3, "Partial": 0, "Wrong": 5})


def test_no_classes() -> None:
    with pytest.raises(ValueError, match="at least one class"):
        class_weights([])


def _logits_for(probabilities: list[list[float]]) -> Tensor:
    """Logits whose softmax is exactly these rows."""
    return torch.tensor(probabilities, dtype=torch.float64).log()


def test_hand_computed_value() -> None:
    # Token 1: p = 1/2, alpha = 3/2, gamma = 1: -1.5 * (1 - 1/2) * ln(1/2) = 0.75 ln 2
    # Token 2: p = 1/4, alpha = 3/4:            -0.75 * (1 - 1/4) * ln(1/4) = 0.5625 * 2 ln 2
    # Mean: (0.75 + 1.125) / 2 * ln 2 = 0.9375 ln 2.
    loss = FocalLoss(torch.tensor([1.5, 0.75]), gamma=1.0)
    logits = _logits_for([[0.5, 0.3, 0.2], [0.25, 0.25, 0.5]])
    value = loss(logits, torch.tensor([0, 1]), torch.tensor([0, 1]))
    assert value.item() == pytest.approx(0.9375 * math.log(2), rel=1e-12)


def test_gamma_two_by_hand() -> None:
    # p = 1/5: -1 * (4/5)^2 * ln(1/5) = 0.64 ln 5.
    loss = FocalLoss(torch.ones(1), gamma=2.0)
    value = loss(_logits_for([[0.2, 0.8]]), torch.tensor([0]), torch.tensor([0]))
    assert value.item() == pytest.approx(0.64 * math.log(5), rel=1e-12)


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
    arguments = torch.tensor(logits), torch.tensor(targets), torch.tensor(classes)
    np.testing.assert_allclose(loss.per_token(*arguments).numpy(), expected, rtol=1e-10)
    assert loss(*arguments).item() == pytest.approx(sum(expected) / 6, rel=1e-10)


def test_without_focus_and_weights_it_is_cross_entropy() -> None:
    logits = torch.randn(7, 13, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    targets = torch.arange(7)
    value = FocalLoss(torch.ones(2), gamma=0.0)(logits, targets, torch.tensor([0, 1] * 3 + [0]))
    torch.testing.assert_close(
        value, functional.cross_entropy(logits, targets), rtol=1e-12, atol=1e-12
    )


def test_weight_is_taken_from_the_tokens_class() -> None:
    loss = FocalLoss(torch.tensor([1.0, 10.0]))
    logits, targets = torch.zeros(2, 4), torch.tensor([1, 1])
    light, heavy = loss.per_token(logits, targets, torch.tensor([0, 1])).tolist()
    assert heavy == pytest.approx(10 * light, rel=1e-6)


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
    per_token = loss.per_token(logits, torch.tensor([0, 0]), torch.tensor([0, 0]))
    per_token.sum().backward()
    sure, lost = per_token.tolist()
    assert 0 <= sure < 1e-10
    assert lost == pytest.approx(logits[1, 1].item(), rel=1e-6)  # -(1 - 0)^gamma * log(e^-height)
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
    # Where p -> 0 the slope is that of -log p: -1 on the target, +1 on its rival.
    assert logits.grad[1].tolist() == pytest.approx([-1, 1, 0], abs=1e-2)


def test_forward_never_waits_for_a_value() -> None:
    # Meta tensors hold no data: .item(), bool() or a data-dependent shape would raise.
    loss = FocalLoss(torch.ones(3), gamma=0.5).to("meta")
    logits = torch.empty(5, 7, device="meta", requires_grad=True)
    indices = torch.zeros(5, dtype=torch.int64, device="meta")
    value = loss(logits, indices, indices)
    value.backward()
    assert value.shape == ()
    with pytest.raises(RuntimeError, match="meta"):
        value.item()


def test_negative_gamma_is_refused() -> None:
    with pytest.raises(ValueError, match=r"gamma must be at least 0, got -1"):
        FocalLoss(torch.ones(1), gamma=-1)


def test_weights_move_with_the_module_and_are_not_trained() -> None:
    loss = FocalLoss(torch.tensor([0.5, 1.5]))
    assert list(loss.parameters()) == []
    assert loss.to(torch.float64).alpha.dtype == torch.float64
