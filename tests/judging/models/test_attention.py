"""Attention against a sum over keys in float64 under a dense mask."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from judging.models.attention import (
    FUSED,
    GROUPED,
    choose_attention,
    fused_attention,
    grouped_attention,
)

HEADS, KV_HEADS, SIZE, SCALE = 4, 2, 8, 0.3


def _dense(query: Tensor, key: Tensor, value: Tensor, visible: Tensor) -> Tensor:
    key, value = (x.repeat_interleave(HEADS // KV_HEADS, dim=1) for x in (key, value))
    scores = (query @ key.transpose(-1, -2) * SCALE).masked_fill(~visible[:, None], -torch.inf)
    return (scores.softmax(-1) @ value).transpose(1, 2)


@pytest.mark.parametrize("attend", [grouped_attention, fused_attention])
@pytest.mark.parametrize("past", [0, 3])
@pytest.mark.parametrize("masked", [0, 4, 9])
def test_outputs_and_gradients_equal_a_dense_mask(attend: Any, past: int, masked: int) -> None:
    queries, rows = 9, 2
    generator = torch.Generator().manual_seed(past + masked)
    inputs = [
        torch.randn(rows, heads, length, SIZE, generator=generator, dtype=torch.float64)
        for heads, length in (
            (HEADS, queries),
            (KV_HEADS, past + queries),
            (KV_HEADS, past + queries),
        )
    ]
    visible = torch.ones(rows, queries, past + queries, dtype=torch.bool).tril(past)
    visible[:, queries - masked :] &= (
        torch.rand(visible[:, queries - masked :].shape, generator=generator) < 0.6
    )
    visible |= torch.eye(past + queries, dtype=torch.bool)[past:]
    weights = torch.randn(rows, queries, HEADS, SIZE, generator=generator, dtype=torch.float64)
    mask = torch.zeros(visible.shape).masked_fill(~visible, torch.finfo(torch.float32).min)
    tail = mask[:, None, queries - masked :] if masked else None
    module = torch.nn.Module()
    module.num_key_value_groups = HEADS // KV_HEADS  # type: ignore[assignment]

    exact = [x.clone().requires_grad_() for x in inputs]
    expected = _dense(exact[0], exact[1], exact[2], visible)
    (expected * weights).sum().backward()
    single = [x.float().requires_grad_() for x in inputs]
    found, _ = attend(module, *single, tail, scaling=SCALE)
    (found * weights.float()).sum().backward()
    torch.testing.assert_close(found, expected.float(), rtol=0, atol=1e-5)
    for mine, reference in zip(single, exact, strict=True):
        assert mine.grad is not None
        assert reference.grad is not None
        torch.testing.assert_close(mine.grad, reference.grad.float(), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("device", "dtype", "flash", "text", "vision"),
    [
        ("cpu", torch.bfloat16, None, GROUPED, "sdpa"),
        ("cpu", torch.bfloat16, "flash_attention_2", GROUPED, "sdpa"),
        ("cuda", torch.bfloat16, None, FUSED, "sdpa"),
        ("cuda", torch.bfloat16, "flash_attention_2", FUSED, "flash_attention_2"),
        ("cuda", torch.float16, "flash_attention_3", FUSED, "flash_attention_3"),
        ("cuda", torch.float32, "flash_attention_2", FUSED, "sdpa"),
    ],
)
def test_text_and_vision_have_attention_of_their_own(
    device: str, dtype: torch.dtype, flash: str | None, text: str, vision: str
) -> None:
    chosen = choose_attention(device, dtype, flash)
    assert chosen == {"text_config": text, "vision_config": vision}
