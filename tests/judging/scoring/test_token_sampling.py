"""Tokens come with the probabilities that temperature and nucleus say."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from judging.scoring.engine import Sampling
from judging.scoring.token_sampling import nucleus, sample_tokens


def test_nucleus_and_temperature() -> None:
    chances = torch.tensor([[0.5, 0.3, 0.15, 0.05]])
    draw = [torch.Generator().manual_seed(0)]

    def shares(sampling: Sampling, count: int = 4000) -> list[float]:
        drawn = Counter(sample_tokens(chances.log(), sampling, draw)[0] for _ in range(count))
        return [drawn[i] / count for i in range(4)]

    # .5 + .3 reach .8; the rest is cut off and the two share out the whole.
    assert shares(Sampling(1, 1.0, 0.8)) == pytest.approx([0.625, 0.375, 0, 0], abs=0.03)
    assert shares(Sampling(1, 1.0, 0.81)) == pytest.approx([0.526, 0.316, 0.158, 0], abs=0.03)
    assert shares(Sampling(1, 1.0, 1.0)) == pytest.approx([0.5, 0.3, 0.15, 0.05], abs=0.03)
    # At temperature 1/2 chances are squared: .25, .09, .0225, .0025 of .365.
    assert shares(Sampling(1, 0.5, 1.0)) == pytest.approx([0.685, 0.247, 0.062, 0.007], abs=0.03)
    assert shares(Sampling(1, 0.0, 1.0), 5) == [1, 0, 0, 0]


@given(st.integers(0, 2**32), st.sampled_from([0.3, 0.9, 0.95, 0.9999]), st.floats(0.0, 6.0))
def test_a_nucleus_is_the_fewest_likeliest_that_reach_top_p(
    seed: int, top_p: float, spread: float
) -> None:
    rng = np.random.default_rng(seed)
    weights = np.exp(spread * rng.standard_normal(2000))
    chances = (weights / weights.sum()).astype(np.float32)
    found, tokens = nucleus(torch.from_numpy(chances), top_p)
    kept = tokens.numpy()
    assert len(set(kept.tolist())) == len(kept)
    assert found.tolist() == chances[kept].tolist() == sorted(chances[kept].tolist(), reverse=True)
    # Nothing left out is likelier, they reach top_p, and without the last of them do not.
    assert np.delete(chances, kept).max(initial=0.0) <= found[-1]
    reached = chances[kept].astype(np.float64).cumsum()
    assert reached[-1] >= top_p - 1e-5
    assert len(kept) == 1 or reached[-2] < top_p + 1e-5
