import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from losses import BradleyTerryLoss

REWARD = st.floats(-20, 20)


def test_a_margin_moves_decided_pairs_alone() -> None:
    # Gap ln 3 less margin ln 3: sigma(0) = 1/2.
    chosen, rejected = torch.tensor([math.log(3.0)] * 2), torch.zeros(2)
    ties = torch.tensor([False, True])
    fixed = BradleyTerryLoss(margin=math.log(3.0))(chosen, rejected, ties)
    assert fixed[0].item() == pytest.approx(math.log(2), rel=1e-6)
    assert fixed[1] == BradleyTerryLoss()(chosen, rejected, ties)[1]


@given(st.lists(st.tuples(REWARD, REWARD, st.booleans()), min_size=1, max_size=8), REWARD)
def test_equals_plain_python_and_ignores_a_common_shift(
    pairs: list[tuple[float, float, bool]], shift: float
) -> None:
    expected = []
    for chosen, rejected, tie in pairs:
        win, loss = (math.log1p(math.exp(-(s * (chosen - rejected)))) for s in (1, -1))
        expected.append((win + loss) / 2 if tie else win)
    rewards = torch.tensor([pair[:2] for pair in pairs], dtype=torch.float64)
    chosen_, rejected_ = rewards.unbind(1)
    ties = torch.tensor([tie for _, _, tie in pairs])
    loss_ = BradleyTerryLoss()
    values = loss_(chosen_, rejected_, ties).tolist()
    assert values == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert loss_(chosen_ + shift, rejected_ + shift, ties).tolist() == pytest.approx(
        values, abs=1e-9
    )


def test_half_precision_rewards_are_subtracted_in_float32() -> None:
    # 10 and 0.01 are 10.0 and 0.01000214 in bfloat16, where their difference rounds to 10.0.
    chosen, rejected = torch.tensor([10.0]).bfloat16(), torch.tensor([0.01]).bfloat16()
    expected = math.log1p(math.exp(-(10.0 - rejected.item())))
    found = BradleyTerryLoss()(chosen, rejected)
    assert found.item() == pytest.approx(expected, rel=1e-4)


def test_gradcheck_and_finite_at_the_ends() -> None:
    rewards = torch.randn(2, 6, dtype=torch.float64, requires_grad=True)
    ties = torch.tensor([True, False] * 3)
    assert torch.autograd.gradcheck(lambda r: BradleyTerryLoss(0.3)(r[0], r[1], ties), (rewards,))
    for dtype in (torch.bfloat16, torch.float32):
        far = torch.tensor([1e4, -1e4], dtype=dtype, requires_grad=True)
        value = BradleyTerryLoss()(far, -far).sum()
        value.backward()
        assert math.isfinite(value.item())
        assert far.grad is not None
        assert torch.isfinite(far.grad).all()
