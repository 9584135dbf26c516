"""On a GPU: pictures are read together in PyTorch's flash kernel, as one by one.

pytest -m cuda tests/judging/models/test_vision_cuda.py

``CUSTOS_CUDA_REHEARSAL=1`` runs the checks on the CPU with a stand-in for the kernel.
"""

import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint

from judging.models import attention
from judging.models.attention import VARLEN, describe_attention, varlen_attention
from judging.models.backbones import load_backbone
from tests.conftest import HubFolders
from tests.gpu.figures import DEVICE, ON_GPU, REHEARSAL
from tests.gpu.host_waits import no_gpu_waits
from tests.gpu.pictures import GRIDS, Pieces, read_pictures
from tests.hub import LAYOUTS

pytestmark = ON_GPU
MATH = "aten::_scaled_dot_product_attention_math"
FLASH = "aten::_flash_attention_forward"
HEADS, SCALE = 4, 0.1


@pytest.fixture(autouse=True)
def _kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    if REHEARSAL:
        monkeypatch.setattr(attention, "varlen_attn", Pieces())


@pytest.mark.parametrize("size", [16, 64, 72, 80, 128])  # 64, 72 and 80 are published towers'
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_kernel_attends_within_pieces_and_nobody_waits(dtype: torch.dtype, size: int) -> None:
    lengths = torch.tensor([64, 64, 12, 4, 400, 64, 1], dtype=torch.int32)
    ends = torch.nn.functional.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0)).to(DEVICE)
    patches, longest = int(lengths.sum()), int(lengths.max())
    generator = torch.Generator().manual_seed(size)
    packed, weights = (
        torch.randn(patches, count, HEADS, size, generator=generator).to(DEVICE, dtype)
        for count in (3, 1)
    )

    def attend(packed: torch.Tensor) -> torch.Tensor:
        query, key, value = (x.transpose(0, 1)[None] for x in packed.unbind(1))
        layer = torch.nn.Module()
        return varlen_attention(
            layer, query, key, value, None, SCALE, cu_seq_lens_q=ends, max_length_q=longest
        )[0]

    exact = packed.float().requires_grad_()
    query, key, value = exact.unbind(1)
    expected = Pieces()(query, key, value, ends, ends, longest, longest, scale=SCALE)
    (expected * weights[:, 0].float()).sum().backward()
    rounded = packed.clone().requires_grad_()
    with profile(activities=[ProfilerActivity.CPU]) as profiler, no_gpu_waits():
        found = checkpoint(attend, rounded, use_reentrant=False)
        (found[0] * weights[:, 0]).sum().backward()
    assert found.shape == (1, patches, HEADS, size)
    assert rounded.grad is not None
    assert exact.grad is not None
    assert _error(found[0], expected) < 0.02
    assert _error(rounded.grad, exact.grad) < 0.02
    operators = {event.key for event in profiler.key_averages()}
    assert MATH not in operators
    assert REHEARSAL or FLASH in operators


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_tower_reads_pictures_together_as_one_by_one(name: str, hub_folders: HubFolders) -> None:
    model = load_backbone(hub_folders(name), dtype="bfloat16", device=DEVICE).model
    model.model.visual.requires_grad_(True)
    if REHEARSAL:
        model.bfloat16().set_attn_implementation({"vision_config": VARLEN})
    assert describe_attention(model).endswith(f"vision {VARLEN}")
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        found, gradients = read_pictures(model)
    operators = {event.key for event in profiler.key_averages()}
    assert MATH not in operators
    assert REHEARSAL or FLASH in operators
    model.float().set_attn_implementation({"vision_config": "sdpa"})
    expected, exact = read_pictures(model)
    assert len(found) == int(GRIDS.prod(-1).sum()) // 4
    assert _error(found, expected) < 0.05
    for weight in (name for name in exact if name.endswith("qkv.weight")):
        assert _error(gradients[weight], exact[weight]) < 0.1


def _error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the norm of the error as a share of the norm of what is expected."""
    found, expected = found.detach().float(), expected.detach()
    return float((found - expected).norm() / expected.norm())
