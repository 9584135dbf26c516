"""A stand-in for ``torch.cuda``: what is refused, and what is set before a GPU is used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from judging.errors import CustosError
from judging.models import devices
from judging.models.backbones import load_backbone
from judging.models.devices import device_name, has_gpu, move_model, to_device, use_device
from judging.scoring.tree_engine import TreeEngine
from tests.cuda_stand_in import with_gpus

GPU = torch.device("cuda", 0)
KERNEL = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n"


@pytest.fixture(autouse=True)
def _cudnn() -> Iterator[None]:
    before = torch.backends.cuda.cudnn_sdp_enabled(), torch.backends.cudnn.allow_tf32
    torch.backends.cuda.enable_cudnn_sdp(True)
    torch.backends.cudnn.allow_tf32 = True
    yield
    torch.backends.cuda.enable_cudnn_sdp(before[0])
    torch.backends.cudnn.allow_tf32 = before[1]


@pytest.mark.parametrize("count", [1, 8])
def test_gpus_that_cannot_be_used_are_refused_in_one_line(
    count: int, tiny_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_gpus(monkeypatch, count, usable=False)
    monkeypatch.setattr(devices, "DRIVER", tmp_path / "version")
    for expected in ("NVIDIA driver", "550.54.15"):
        with pytest.raises(CustosError) as caught:
            load_backbone(tiny_folder)
        line = str(caught.value)
        assert expected in line
        assert "/whl/cu126" in line
        assert "\n" not in line
        (tmp_path / "version").write_text(KERNEL, encoding="utf-8")
    with pytest.raises(CustosError):
        use_device("cuda")
    assert load_backbone(tiny_folder, device="cpu").model.device.type == "cpu"
    assert load_backbone(tiny_folder, weights=False).model.device.type == "meta"


def test_a_machine_without_gpus_has_its_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpus(monkeypatch, 0, usable=False)
    assert not has_gpu()
    assert device_name(use_device()) == "cpu"
    assert torch.backends.cuda.cudnn_sdp_enabled()
    assert "PYTORCH_ALLOC_CONF" not in os.environ


def test_a_gpu_is_prepared_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpus(monkeypatch, 1)
    assert use_device("cpu").type == "cpu"
    assert "PYTORCH_ALLOC_CONF" not in os.environ
    assert use_device().type == "cuda"
    assert os.environ["PYTORCH_ALLOC_CONF"] == "expandable_segments:True"
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert not torch.backends.cudnn.allow_tf32
    assert device_name(GPU).endswith("Stand-in")


@pytest.mark.parametrize("name", ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"])
def test_settings_of_the_user_stay(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpus(monkeypatch, 1)
    monkeypatch.setenv(name, "max_split_size_mb:512")
    use_device()
    assert [v for k, v in os.environ.items() if k.endswith("_ALLOC_CONF")] == [
        "max_split_size_mb:512"
    ]


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


class _OnHost:
    """A tensor in the host's memory that records what it is asked for."""

    def __init__(self) -> None:
        self.device, self.calls = torch.device("cpu"), list[str]()

    def pin_memory(self) -> _OnHost:
        self.calls.append("pinned")
        return self

    def to(self, device: torch.device, *, non_blocking: bool = False) -> _OnHost:
        self.calls.append("copied" if non_blocking else "waited")
        self.device = device
        return self


def test_copies_to_a_gpu_are_pinned_and_waited_for_by_nobody() -> None:
    tensor = _OnHost()
    to_device(cast(Any, tensor), GPU)
    assert tensor.calls == ["pinned", "copied"]
    to_device(cast(Any, tensor), GPU)  # pinning what is there already would be an error
    assert tensor.calls == ["pinned", "copied", "copied"]
    here = torch.arange(3)
    assert to_device(here, torch.device("cpu")) is here


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
