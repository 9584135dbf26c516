"""A stand-in for ``torch.cuda``: what is refused, and what is set before a GPU is used."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from judging.errors import CustosError
from judging.judge import Judge
from judging.models.backbones import load_backbone
from judging.models.devices import (
    computes_bfloat16,
    device_name,
    has_gpu,
    move_model,
    num_cores,
    use_device,
)
from judging.scoring.tree_engine import TreeEngine
from tests.conftest import FAMILIES, Folders
from tests.cuda_stand_in import with_gpus
from tests.judging.made_up import ask, save_run
from tests.tiny import Family

GPU = torch.device("cuda", 0)


@pytest.fixture(autouse=True)
def _cudnn() -> Iterator[None]:
    before = torch.backends.cuda.cudnn_sdp_enabled(), torch.backends.cudnn.allow_tf32
    torch.backends.cuda.enable_cudnn_sdp(True)
    torch.backends.cudnn.allow_tf32 = True
    yield
    torch.backends.cuda.enable_cudnn_sdp(before[0])
    torch.backends.cudnn.allow_tf32 = before[1]


def test_gpus_that_cannot_be_used_are_refused_in_one_line(
    tiny_folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_gpus(monkeypatch, 8, usable=False)
    with pytest.raises(CustosError) as caught:
        load_backbone(tiny_folder)
    line = str(caught.value)
    assert "/whl/cu126" in line and "\n" not in line
    with pytest.raises(CustosError):
        use_device("cuda")
    assert load_backbone(tiny_folder, device="cpu").model.device.type == "cpu"
    assert load_backbone(tiny_folder, weights=False).model.device.type == "meta"


def test_a_gpu_is_prepared_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpus(monkeypatch, 0, usable=False)
    assert not has_gpu()
    assert device_name(use_device()) == "cpu"
    with_gpus(monkeypatch, 1)
    assert use_device("cpu").type == "cpu"
    assert torch.backends.cuda.cudnn_sdp_enabled()
    assert "PYTORCH_ALLOC_CONF" not in os.environ
    assert use_device().type == "cuda"
    assert os.environ["PYTORCH_ALLOC_CONF"] == "expandable_segments:True"
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert not torch.backends.cudnn.allow_tf32
    assert device_name(GPU).endswith("Stand-in")


@pytest.mark.parametrize("name", ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"])
def test_settings_of_the_user_stay(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpus(monkeypatch, 1)
    monkeypatch.setenv(name, "mine")
    use_device()
    assert [v for k, v in os.environ.items() if k.endswith("_ALLOC_CONF")] == ["mine"]


def test_a_fingerprint_names_the_kernels_of_a_gpu_alone(tiny_folder: str) -> None:
    backbone = load_backbone(tiny_folder, device="cpu").model

    def location(device: str) -> dict[str, str]:
        model = SimpleNamespace(device=torch.device(device), backbone=backbone)
        return TreeEngine(cast(Any, model), 0, text_budget=1).location

    with_cudnn = location("cuda")
    torch.backends.cuda.enable_cudnn_sdp(False)
    without = location("cuda")
    assert with_cudnn["kernels"] != without["kernels"]
    assert "flash" in without["kernels"]
    assert "cudnn" not in without["kernels"]
    assert location("cpu").keys() <= {"arithmetic"}


def test_weights_that_do_not_fit_are_the_users_to_mend(
    tiny_folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_gpus(monkeypatch, 1)
    model = load_backbone(tiny_folder, device="cpu").model

    def full(self: Any, *_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr(type(model), "to", full)
    with pytest.raises(CustosError, match="NVIDIA Stand-in"):
        move_model(model, GPU)
    with pytest.raises(CustosError, match="memory"):
        load_backbone(tiny_folder, device="cpu")


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "max 100000\n"}, 64),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 64),
        ({"cpu.max": "6500000 100000\n"}, 64),
        ({}, 64),
    ],
)
def test_the_quota_counts_if_it_is_smaller(
    files: dict[str, str], cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert num_cores(tmp_path) == cores


AVX2: dict[str, object] = {"architecture": "x86_64", "avx2": True, "avx512_bf16": False}
WITH_BFLOAT16: dict[str, object] = {**AVX2, "avx512_bf16": True, "cpu_name": "AMD EPYC"}


def on_cpu(monkeypatch: pytest.MonkeyPatch, capabilities: dict[str, object]) -> None:
    """Make PyTorch report another CPU."""
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        (AVX2, False),
        (WITH_BFLOAT16, True),
        (WITH_BFLOAT16 | {"cpu_name": "Intel Xeon"}, False),
        (WITH_BFLOAT16 | {"cpu_name": "Intel Xeon", "amx_bf16": True}, True),
        ({"neon": True, "bf16": True}, True),
        ({"neon": True}, False),
    ],
)
def test_cpus(
    capabilities: dict[str, object], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_cpu(monkeypatch, capabilities)
    assert computes_bfloat16(torch.device("cpu")) is expected
    assert computes_bfloat16(torch.device("cuda"))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_weights_are_the_rounded_ones_on_every_cpu(
    family: Family, tiny_folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_cpu(monkeypatch, WITH_BFLOAT16)
    rounded = load_backbone(tiny_folders(family), device="cpu").model.state_dict()
    on_cpu(monkeypatch, AVX2)
    held = load_backbone(tiny_folders(family), device="cpu").model.state_dict()
    exact = load_backbone(tiny_folders(family), dtype="float32", device="cpu").model.state_dict()
    assert {weight.dtype for weight in rounded.values()} == {torch.bfloat16}
    assert {weight.dtype for weight in held.values()} == {torch.float32}
    assert all(torch.equal(held[name], rounded[name].float()) for name in rounded)
    assert any(not torch.equal(held[name], exact[name]) for name in exact)


@pytest.mark.parametrize("trained", [True, False])
def test_a_calibration_fits_every_cpu_and_a_fingerprint_one(
    trained: bool, tiny_folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tiny_folders("qwen2_5_vl")
    if trained:
        backbone = load_backbone(source, dtype="float32", device="cpu")
        source = str(save_run(tmp_path / "mine", backbone, ("plain/all",)))
    on_cpu(monkeypatch, WITH_BFLOAT16)
    rounding = Judge.load(source, device="cpu")
    on_cpu(monkeypatch, AVX2)
    held = Judge.load(source, device="cpu")
    exact = Judge.load(source, dtype="float32", device="cpu")

    assert held.identity == rounding.identity != exact.identity
    assert len({judge.fingerprint(ask()) for judge in (held, rounding, exact)}) == 3
    assert rounding.engine.location == exact.engine.location == {}
    assert held.engine.location == {"arithmetic": "float32"}
    [one], [other] = rounding.grade([ask()]), held.grade([ask()])
    assert one.probabilities == pytest.approx(other.probabilities, abs=0.02)
    assert one.probabilities != other.probabilities
