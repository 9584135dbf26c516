"""Attention against a sum over keys under a dense mask, and the towers that are given it."""

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers import AutoModelForImageTextToText

from judging.models import attention
from judging.models.attention import (
    FUSED,
    GROUPED,
    VARLEN,
    choose_attention,
    describe_attention,
    fused_attention,
    grouped_attention,
)
from judging.models.backbones import Backbone, empty_model, load_backbone
from tests.conftest import HubFolders
from tests.cuda_stand_in import with_gpus
from tests.gpu.pictures import GRIDS, Pieces, read_pictures
from tests.hub import LAYOUTS

WITH_VISION = SimpleNamespace(vision_config=SimpleNamespace())
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
    ("device", "dtype", "text", "vision"),
    [
        ("cpu", torch.float32, GROUPED, "sdpa"),
        ("cpu", torch.bfloat16, GROUPED, "sdpa"),
        ("cuda", torch.float32, FUSED, "sdpa"),
        ("cuda", torch.bfloat16, FUSED, VARLEN),
        ("cuda", torch.float16, FUSED, VARLEN),
    ],
)
def test_text_and_vision_have_attention_of_their_own(
    device: str, dtype: torch.dtype, text: str, vision: str
) -> None:
    chosen = choose_attention(WITH_VISION, torch.device(device), dtype)
    assert chosen == {"text_config": text, "vision_config": vision}
    assert choose_attention(SimpleNamespace(), torch.device(device), dtype) == {"": text}


@pytest.mark.parametrize(
    ("capability", "vision"), [((7, 5), "sdpa"), ((8, 0), VARLEN), ((12, 0), VARLEN)]
)
def test_a_gpu_without_the_flash_kernel_reads_pictures_without_it(
    capability: tuple[int, int], vision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_gpus(monkeypatch, 1)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: capability)
    chosen = choose_attention(WITH_VISION, torch.device("cuda"), torch.bfloat16)
    assert chosen == {"text_config": FUSED, "vision_config": vision}


@pytest.fixture(params=LAYOUTS)
def of_hub(request: pytest.FixtureRequest, hub_folders: HubFolders) -> Backbone:
    """A tiny checkpoint of each family, whose tower is trained, and no longer tame."""
    backbone = load_backbone(hub_folders(request.param), dtype="float32", device="cpu")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        for parameter in backbone.model.model.visual.requires_grad_(True).parameters():
            parameter.data += 0.1 * torch.randn_like(parameter)
    return backbone


@pytest.mark.parametrize("checkpointing", [False, True])
def test_pictures_read_together_are_those_read_one_by_one(
    of_hub: Backbone, checkpointing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, kernel = of_hub.model, Pieces()
    tower = model.model.visual
    expected, exact = read_pictures(model)
    assert any(grad.abs().max() > 1e-2 for name, grad in exact.items() if "qkv" in name)
    monkeypatch.setattr(attention, "varlen_attn", kernel)
    model.set_attn_implementation({"vision_config": VARLEN})
    if checkpointing:
        tower.train().activation_checkpointing_enable()
    found, gradients = read_pictures(model)
    assert gradients.keys() == exact.keys()
    for name, tensor in {**gradients, "features": found}.items():
        wanted = {**exact, "features": expected}[name]
        size = max(1.0, float(wanted.abs().max()))
        torch.testing.assert_close(tensor, wanted, rtol=0, atol=1e-5 * size)
    assert len(kernel.lengths) == len(tower.blocks) * (1 + checkpointing)
    pictures = [int(t * h * w) for t, h, w in GRIDS.tolist()]
    assert pictures in kernel.lengths
    has_windows = model.config.model_type == "qwen2_5_vl"
    assert any(lengths != pictures for lengths in kernel.lengths) == has_windows


def test_a_layer_reads_no_values_back_and_learns_under_checkpointing(of_hub: Backbone) -> None:
    """Tensors without values cannot be read, and know the kernel's gradients all the same."""
    model = empty_model(of_hub.model.config)
    model.set_attn_implementation({"vision_config": VARLEN})
    vision, layer = model.config.vision_config, model.model.visual.blocks[0].bfloat16()
    with torch.device("meta"):
        width = layer.attn.qkv.in_features
        hidden = torch.empty(24, width, dtype=torch.bfloat16, requires_grad=True)
        angles = torch.empty(24, width // vision.num_heads)
        ends = torch.empty(4, dtype=torch.int32)
    pieces: dict[str, Any] = {
        "cu_seqlens": ends,
        "max_seqlen": 12,
        "position_embeddings": (angles, angles),
    }
    out = checkpoint(layer, hidden, use_reentrant=False, **pieces)
    out.sum().backward()
    assert hidden.grad is not None
    assert layer.attn.qkv.weight.grad.shape == layer.attn.qkv.weight.shape
    model.set_attn_implementation({"vision_config": "sdpa"})
    with pytest.raises((NotImplementedError, RuntimeError)):
        layer(hidden, **pieces)


def test_attention_of_a_gpu_is_not_in_files_and_empty_models(
    tiny_folder: str, tmp_path: Path
) -> None:
    backbone = load_backbone(tiny_folder, dtype="float32", device="cpu")
    model = backbone.model
    chosen = choose_attention(model.config, torch.device("cuda"), torch.bfloat16)
    model.set_attn_implementation(chosen)
    gpu = describe_attention(model)
    assert VARLEN in gpu
    for other in (empty_model(model.config), pickle.loads(pickle.dumps(backbone)).model):  # noqa: S301
        assert "custos" not in describe_attention(other)
    assert describe_attention(model) == gpu
    model.save_pretrained(tmp_path)
    assert "custos" not in (tmp_path / "config.json").read_text(encoding="utf-8")
    plain = AutoModelForImageTextToText.from_pretrained(tmp_path)
    assert describe_attention(plain) == "text sdpa, vision sdpa"
