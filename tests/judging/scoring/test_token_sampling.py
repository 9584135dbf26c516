"""Tokens come with the probabilities that temperature and nucleus say."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from judging.scoring import generation
from judging.scoring.engine import Sampling
from judging.scoring.generation import nuclei, sample_tokens
from tests.cuda_stand_in import CountedCopies


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


@given(
    st.integers(0, 2**32),
    st.sampled_from([0.3, 0.9, 0.95, 0.9999]),
    st.floats(0.0, 6.0),
    st.sampled_from([1, 40, 256, 2000]),
)
def test_a_nucleus_is_the_fewest_likeliest_that_reach_top_p(
    seed: int, top_p: float, spread: float, width: int
) -> None:
    chances = _random_chances(seed, spread)
    found, tokens, is_whole = nuclei(torch.from_numpy(chances), top_p, width)
    assert found.shape == tokens.shape == (len(chances), width)
    for row, whole in zip(range(len(chances)), is_whole[:, 0].tolist(), strict=True):
        descending = -np.sort(-chances[row])
        reached = descending.astype(np.float64).cumsum()
        inside = found[row].numpy()[found[row].numpy() > 0]
        kept = tokens[row].numpy()[: len(inside)]
        if not whole:
            assert reached[width - 1] < top_p + 1e-5
            continue
        assert len(set(kept.tolist())) == len(kept)
        assert inside.tolist() == chances[row, kept].tolist() == descending[: len(kept)].tolist()
        # They reach top_p, and without the last of them do not.
        assert reached[len(kept) - 1] >= top_p - 1e-5
        assert len(kept) == 1 or reached[len(kept) - 2] < top_p + 1e-5


@pytest.mark.parametrize("top_p", [0.5, 0.95, 1.0])
def test_every_row_inverts_its_own_distribution(
    monkeypatch: pytest.MonkeyPatch, top_p: float
) -> None:
    """Rows with narrow and wide nuclei together, each against its own sums in NumPy."""
    monkeypatch.setattr(generation, "NUCLEUS_TOKENS", 20)
    chances = np.concatenate([_random_chances(1, spread) for spread in (0.5, 3.0, 6.0)])
    counted = CountedCopies(monkeypatch)
    for seed in range(20):
        draws = [torch.Generator().manual_seed(seed + row) for row in range(len(chances))]
        logits = torch.from_numpy(chances).log()
        counted.sizes.clear()
        drawn = sample_tokens(logits, Sampling(1, 1.0, top_p), draws)
        assert max(counted.sizes) <= len(chances), "more than tokens left the device"
        assert len(counted.sizes) <= 1 + (top_p < 1), "rows left the device one by one"
        assert drawn == [
            _inverted(logits[row].softmax(-1).numpy(), top_p, seed + row)
            for row in range(len(chances))
        ]


def test_a_number_next_to_one_draws_the_last_token_that_can_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    last = torch.tensor([[math.nextafter(1, 0)]], dtype=torch.float64)
    monkeypatch.setattr(torch, "rand", lambda *_, **__: last[0])
    logits = torch.tensor([[0.1, 0.2, 0.4, 0.0, 0.0]]).log()
    for top_p, token in ((1.0, 2), (0.99, 0), (0.7, 1)):
        assert sample_tokens(logits, Sampling(1, 1.0, top_p), [torch.Generator()]) == [token]


@pytest.mark.parametrize("least", [1e-38, 1e-46, 5e-324])
def test_the_smallest_temperature_and_nucleus_leave_the_likeliest_token(least: float) -> None:
    """Also where float32 has no such number."""
    logits = torch.randn(8, 1000, generator=torch.Generator().manual_seed(0))
    for sampling in (Sampling(1, least), Sampling(1, 1.0, least), Sampling(1, least, least)):
        draws = [torch.Generator().manual_seed(seed) for seed in range(8)]
        assert sample_tokens(logits, sampling, draws) == logits.argmax(-1).tolist()


def test_what_is_no_number_draws_some_token() -> None:
    logits = torch.full((2, 5), torch.nan)
    for top_p in (1.0, 0.9):
        drawn = sample_tokens(logits, Sampling(1, 1.0, top_p), [torch.Generator()] * 2)
        assert set(drawn) <= set(range(5))


def _random_chances(seed: int, spread: float) -> NDArray[np.float32]:
    """Return distributions of three rows over 2,000 tokens, from even to one-sided."""
    weights = np.exp(spread * np.random.default_rng(seed).standard_normal((3, 2000)))
    chances: NDArray[np.float32] = (weights / weights.sum(-1, keepdims=True)).astype(np.float32)
    return chances


def _inverted(chances: NDArray[np.float32], top_p: float, seed: int) -> int:
    """Return the token at which the sums pass a uniform number; a nucleus has its best first."""
    tokens = np.arange(len(chances))
    if top_p < 1:
        tokens = np.argsort(-chances, kind="stable")
        before = chances[tokens].astype(np.float64).cumsum() - chances[tokens]
        tokens = tokens[before < top_p]
    sums = chances[tokens].astype(np.float64).cumsum()
    number = torch.rand(1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return int(tokens[np.searchsorted(sums, number.item() * sums[-1], side="right")])
