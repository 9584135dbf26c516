"""Which way token log-probabilities are computed; Liger itself runs on a GPU alone."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from typing import Any

import pytest
import torch

from losses import chunked_token_logprobs, liger, projected_token_logprobs, token_logprobs


class _Hidden:
    """Says where it lies; nothing here computes with it."""

    def __init__(self, is_cuda: bool) -> None:
        self.is_cuda = is_cuda


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

    monkeypatch.setattr(liger, "version", version)
    monkeypatch.setattr(liger, "fused_token_logprobs", lambda *given: "liger")
    monkeypatch.setattr(liger, "chunked_token_logprobs", lambda *given: "chunks")
    hidden: Any = _Hidden(is_cuda)
    assert projected_token_logprobs(hidden, torch.ones(1), torch.ones(1)) == chosen


def test_on_a_cpu_it_is_our_own() -> None:
    generator = torch.Generator().manual_seed(3)
    hidden, weight = torch.randn(5, 4, generator=generator), torch.randn(9, 4, generator=generator)
    targets = torch.tensor([0, 8, 3, 3, 1])
    found = projected_token_logprobs(hidden, weight, targets)
    assert torch.equal(found, chunked_token_logprobs(hidden, weight, targets))


@pytest.mark.cuda
@pytest.mark.usefixtures("whole_float32")
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.skipif(not liger.liger_is_installed(), reason="Liger is not installed")
def test_liger_gives_the_plain_value_and_gradient() -> None:
    generator = torch.Generator().manual_seed(3)
    hidden = torch.randn(300, 64, generator=generator).cuda()
    weight = torch.randn(1000, 64, generator=generator).cuda()
    targets = torch.randint(1000, (300,), generator=generator).cuda()
    above = torch.linspace(-1, 2, 300).cuda()
    found = []
    for fused in (True, False):
        states = hidden.clone().requires_grad_()
        logprobs = (
            projected_token_logprobs(states, weight, targets)
            if fused
            else token_logprobs(states @ weight.T, targets)
        )
        (logprobs * above).sum().backward()
        found.append((logprobs.detach(), states.grad))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
